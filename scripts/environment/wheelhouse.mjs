/** A folder of wheels from PyPI, for pip in environments without an index. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { step } from "../command.mjs";
import { root } from "../setup.mjs";
import { cached } from "./cache.mjs";
import { pipFor } from "./packages.mjs";

/** @typedef {import("../environment.mjs").Interpreter} Interpreter */

const requirements = "test/requirements-wheelhouse.txt";

/**
 * @param {Interpreter[]} interpreters whose pip may download
 * @returns {Promise<string>} absolute path of the folder
 * @throws {Error} why it is unavailable
 */
export async function makeWheelhouse(interpreters) {
  const file = join(root, requirements);
  return await cached("wheelhouse", [readFileSync(file, "utf8")], async (folder) => {
    const { path } = await pipFor("3.12", interpreters);
    await step(`pip download -r ${requirements}`, path, [
      ...["-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"],
      ...["--no-cache-dir", "--no-deps", "--only-binary", ":all:"],
      ...["--platform", "manylinux_2_28_x86_64", "--dest", folder, "-r", file],
    ]);
  });
}
