/** Folders of labelled programs: NAME/case.py with NAME/expect.json (docs/leakbench.md). */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { SetupError } from "../command.mjs";

/**
 * @typedef {object} Expectation
 * @property {string[]} verdict kinds that are correct
 * @property {{file: string, functions: string[]}} [culprit]
 * @property {string} [holder] a name of the holder's path
 * @property {string[]} packages that must be importable
 * @property {number} seconds
 * @property {boolean} negative it does not leak
 *
 * @typedef {{name: string, folder: string, expect: Expectation}} LabelledCase
 */

/**
 * @param {string} folder
 * @param {string[]} wanted names; none: all
 * @returns {LabelledCase[]}
 */
export function readCases(folder, wanted) {
  if (!existsSync(folder)) {
    throw new SetupError(`no such folder: ${folder}`);
  }
  const names = readdirSync(folder)
    .filter((name) => existsSync(join(folder, name, "case.py")))
    .sort();
  const unknown = wanted.filter((name) => !names.includes(name));
  if (unknown.length > 0) {
    throw new SetupError(`no such case in ${folder}: ${unknown.join(", ")}`);
  }
  return names
    .filter((name) => wanted.length === 0 || wanted.includes(name))
    .map((name) => ({
      name,
      folder: join(folder, name),
      expect: expectation(join(folder, name, "expect.json")),
    }));
}

/** @param {string} file @returns {Expectation} */
function expectation(file) {
  const found = JSON.parse(readFileSync(file, "utf8"));
  if (!Array.isArray(found.verdict) || found.verdict.length === 0) {
    throw new SetupError(`${file} names no verdict`);
  }
  return { packages: [], seconds: 40, negative: false, ...found };
}
