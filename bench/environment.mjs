/** The interpreter that benchmarks run: a virtual environment with the workloads' packages and the
 * peers, pinned in bench/requirements.txt, made once in the user's cache folder. */
import { dirname, join } from "node:path";
import { findInterpreters } from "../scripts/environment/interpreters.mjs";
import { makeVenv } from "../scripts/environment/packages.mjs";

/** torch and the peers take about 7 GB, twice while pip unpacks them. */
const needsBytes = 16e9;

/** @returns {Promise<string>} path of the executable */
export async function benchPython() {
  return makeVenv("bench", "bench/requirements.txt", await findInterpreters(), needsBytes);
}

/** @returns {Promise<string>} path of py-spy's executable; it runs without the interpreter beside it */
export async function benchPySpy() {
  const python = await makeVenv(
    "bench-stacks",
    "bench/requirements-stacks.txt",
    await findInterpreters(),
  );
  return join(dirname(python), "py-spy");
}
