/** The interpreter that benchmarks run: a virtual environment with the workloads' packages and the peer
 * tools, pinned in bench/requirements.txt, created once in the user's cache folder. */
import { dirname, join } from "node:path";
import { findInterpreters } from "../scripts/environment/interpreters.mjs";
import { makeVenv } from "../scripts/environment/packages.mjs";

/** torch and the peer tools take about 7 GB, and twice that while pip unpacks them. */
const needsBytes = 16e9;

/** @returns {Promise<string>} path of the executable */
export async function benchPython() {
  return makeVenv("bench", "bench/requirements.txt", await findInterpreters(), needsBytes);
}

/** @returns {Promise<string>} path of py-spy's executable, which needs no interpreter */
export async function benchPySpy() {
  const python = await makeVenv(
    "bench-stacks",
    "bench/requirements-stacks.txt",
    await findInterpreters(),
  );
  return join(dirname(python), "py-spy");
}
