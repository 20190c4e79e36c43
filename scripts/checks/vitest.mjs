/** Runs the TypeScript tests: unit tests next to the code, and tests of whole programs in test/ (vitest.config.ts). */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { seconds } from "../command.mjs";
import { root } from "../setup.mjs";
import { say, stream } from "./stream.mjs";

/**
 * @param {object} [chosen]
 * @param {string[]} [chosen.filters] parts of test files' paths; none: every test
 * @param {string[]} [chosen.projects] of vitest.config.ts; none: every project
 * @returns {Promise<import("./stream.mjs").Count | undefined>} undefined: it ran no test
 */
export async function checkVitest(chosen = {}) {
  const run = await runVitest(chosen);
  if (run === undefined) {
    return undefined;
  }
  const count = countOfVitest(run.result, run.status);
  return (
    count && {
      ...count,
      slowest: slowestTests(run.result, SLOWEST),
      slowestFiles: slowestFiles(run.result, SLOWEST),
    }
  );
}

/**
 * @param {object} chosen
 * @param {string[]} [chosen.filters]
 * @param {string[]} [chosen.projects]
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {Promise<{result: Result, status: number} | undefined>} undefined: it left no result
 */
export async function runVitest({ filters = [], projects = [] }, env = process.env) {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-vitest-"));
  const file = join(folder, "result.json");
  try {
    const args = [
      ...[join(root, "node_modules/vitest/vitest.mjs"), "run", ...filters],
      ...projects.map((project) => `--project=${project}`),
      ...["--reporter=default", "--reporter=json", `--outputFile.json=${file}`],
    ];
    const { status } = await stream(process.execPath, args, { env });
    return { result: JSON.parse(readFileSync(file, "utf8")), status };
  } catch (error) {
    if (!(error instanceof Error)) {
      throw error;
    }
    say(`vitest left no result: ${error.message}`);
    return undefined;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * @typedef {object} Assertion one test
 * @property {string} status
 * @property {string} fullName
 * @property {number | null} [duration] ms
 * @property {string[]} [failureMessages]
 *
 * @typedef {object} TestFile
 * @property {string} name
 * @property {string} status
 * @property {number} [startTime] ms since 1970, of its first test
 * @property {number} [endTime]
 * @property {string} [message]
 * @property {Assertion[]} assertionResults
 *
 * @typedef {{testResults: TestFile[]}} Result
 */

/** Number of tests, and of files, whose time is printed at the end of a run. */
const SLOWEST = 20;

/**
 * @param {Result} result
 * @param {number} count
 * @returns {string[]} "12.3 s  FILE > TEST", the slowest first, without the time of hooks
 */
export function slowestTests({ testResults }, count) {
  return testResults
    .flatMap(({ name, assertionResults }) =>
      assertionResults.map(({ fullName, duration }) => ({
        test: `${relative(root, name)} > ${fullName}`,
        ms: duration ?? 0,
      })),
    )
    .sort((a, b) => b.ms - a.ms)
    .slice(0, count)
    .map(({ test, ms }) => `${seconds(ms).padStart(8)}  ${test}`);
}

/**
 * @param {Result} result
 * @param {number} count
 * @returns {string[]} "12.3 s  FILE (number of its tests)", the slowest first, without what its first hooks took
 */
export function slowestFiles({ testResults }, count) {
  return testResults
    .map(({ name, startTime = 0, endTime = 0, assertionResults }) => ({
      file: `${relative(root, name)} (${assertionResults.length})`,
      ms: endTime - startTime,
    }))
    .sort((a, b) => b.ms - a.ms)
    .slice(0, count)
    .map(({ file, ms }) => `${seconds(ms).padStart(8)}  ${file}`);
}

/**
 * @param {Result} result @param {number} status
 * @returns {import("./stream.mjs").Count | undefined} undefined: no test ran
 */
export function countOfVitest({ testResults }, status) {
  const tests = testResults.flatMap(({ assertionResults }) => assertionResults);
  const passed = tests.filter((test) => test.status === "passed").length;
  const failedTests = tests.filter((test) => test.status === "failed").length;
  // A file that could not be loaded has no tests that could fail, but must be reported.
  const broken = testResults.filter(
    (file) =>
      file.status === "failed" && !file.assertionResults.some((test) => test.status === "failed"),
  );
  const failed = failedTests + broken.length || (status === 0 ? 0 : 1);
  const left = tests.filter((test) => !["passed", "failed"].includes(test.status));
  if (tests.length + broken.length === 0) {
    return undefined;
  }
  return {
    ...{ passed, failed, skipped: left.length, reasons: left.map((test) => test.fullName) },
    failures: testResults.flatMap(failuresOf),
  };
}

/** Number of lines of a failure's message that are repeated at the end. */
const MESSAGE_LINES = 12;

/** @param {TestFile} file @returns {string[]} */
function failuresOf({ name, status, message, assertionResults }) {
  const failed = assertionResults.filter((test) => test.status === "failed");
  const file = relative(root, name);
  if (status === "failed" && failed.length === 0) {
    return [file, ...beginning(message ?? "")];
  }
  return failed.flatMap(({ fullName, failureMessages }) => [
    `${file} > ${fullName}`,
    ...(failureMessages ?? []).flatMap(beginning),
  ]);
}

/** @param {string} message */
function beginning(message) {
  return message
    .trimEnd()
    .split("\n")
    .slice(0, MESSAGE_LINES)
    .map((line) => `    ${line}`);
}
