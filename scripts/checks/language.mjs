/** Checks style and types of all TypeScript and JavaScript, and the wording of all text. */
import { join } from "node:path";
import { root } from "../setup.mjs";
import { checkPhrases } from "./phrases.mjs";
import { oneCheck, sum } from "./stream.mjs";

const binary = (/** @type {string} */ path) => join(root, "node_modules", path);

export async function checkStyle() {
  const biome = await oneCheck(process.execPath, [
    ...[binary("@biomejs/biome/bin/biome"), "check", "--error-on-warnings", "."],
  ]);
  return sum([biome, await checkPhrases()]);
}

/** The build checks the types of src/; this checks the types of the page, the tests and the scripts. */
export async function checkTypes() {
  const counts = [];
  for (const part of ["web", "test"]) {
    const args = ["-p", `${part}/tsconfig.json`];
    // The next run skips what this run has checked.
    const incremental = ["--incremental", "--tsBuildInfoFile", `dist/.made/${part}.tsbuildinfo`];
    counts.push(
      await oneCheck(process.execPath, [binary("typescript/bin/tsc"), ...args, ...incremental]),
    );
  }
  return sum(counts);
}
