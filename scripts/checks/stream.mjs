/** Runs a check's command with its output shown, indented under the check's heading, and counts checks. */
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { root } from "../setup.mjs";
import { currentTranscript, say } from "./transcript.mjs";

export { say };

/**
 * @typedef {object} Count what a section of the tests reports
 * @property {number} passed
 * @property {number} failed
 * @property {number} skipped
 * @property {string[]} reasons why checks were skipped, where known
 * @property {string[]} [failures] lines that name the failed and give the reason; none: all of the
 *   section's output
 * @property {string[]} [slowest] the slowest tests, one a line
 * @property {string[]} [slowestFiles]
 */

/**
 * @param {string} file
 * @param {string[]} args
 * @param {import("node:child_process").SpawnOptions} [options]
 * @returns {Promise<{status: number, lines: string[]}>} status -1: not started, or ended by a signal
 */
export async function stream(file, args, options = {}) {
  // Events of a child may arrive outside the section's asynchronous context.
  const transcript = currentTranscript();
  const child = spawn(file, args, { cwd: root, ...options, stdio: ["ignore", "pipe", "pipe"] });
  /** @type {string[]} */
  const lines = [];
  /** @type {Promise<number>} */
  const ended = new Promise((resolve) => {
    child.on("error", (error) => {
      say(error.message, transcript);
      resolve(-1);
    });
    child.on("close", (code) => resolve(code ?? -1));
  });
  for (const pipe of [child.stdout, child.stderr]) {
    if (pipe === null) {
      continue;
    }
    createInterface({ input: pipe }).on("line", (line) => {
      lines.push(line);
      say(line, transcript);
    });
  }
  return { status: await ended, lines };
}

/**
 * The count of a command that is one check.
 * @param {string} file
 * @param {string[]} args
 * @param {import("node:child_process").SpawnOptions} [options]
 * @returns {Promise<Count>}
 */
export async function oneCheck(file, args, options) {
  const { status } = await stream(file, args, options);
  return verdicts([status === 0]);
}

/** @param {boolean[]} passed one for each check @returns {Count} */
export function verdicts(passed) {
  const good = passed.filter(Boolean).length;
  return { passed: good, failed: passed.length - good, skipped: 0, reasons: [] };
}

/** @param {Count[]} counts @returns {Count} */
export function sum(counts) {
  const total = { passed: 0, failed: 0, skipped: 0, reasons: /** @type {string[]} */ ([]) };
  for (const { passed, failed, skipped, reasons } of counts) {
    total.passed += passed;
    total.failed += failed;
    total.skipped += skipped;
    total.reasons.push(...reasons);
  }
  return total;
}
