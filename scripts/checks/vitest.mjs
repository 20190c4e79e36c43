/** Every test in TypeScript: beside the code, and of whole programs in test/. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { root } from "../setup.mjs";
import { say, stream } from "./stream.mjs";

/**
 * @param {string[]} filters parts of test files' paths; none: every test
 * @returns {Promise<import("./stream.mjs").Count | undefined>} undefined: it ran no test
 */
export async function checkVitest(filters) {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-vitest-"));
  const file = join(folder, "result.json");
  try {
    const { status } = await stream(process.execPath, [
      ...[join(root, "node_modules/vitest/vitest.mjs"), "run", ...filters],
      ...["--reporter=default", "--reporter=json", `--outputFile.json=${file}`],
    ]);
    return countOfVitest(JSON.parse(readFileSync(file, "utf8")), status);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    say(`vitest left no result: ${error.message}`);
    return undefined;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * @typedef {{status: string, fullName: string, failureMessages?: string[]}} Assertion
 * @typedef {{name: string, status: string, message?: string, assertionResults: Assertion[]}} TestFile
 */

/**
 * @param {{testResults: TestFile[]}} result @param {number} status
 * @returns {import("./stream.mjs").Count | undefined} undefined: no test ran
 */
export function countOfVitest({ testResults }, status) {
  const tests = testResults.flatMap(({ assertionResults }) => assertionResults);
  const passed = tests.filter((test) => test.status === "passed").length;
  const failedTests = tests.filter((test) => test.status === "failed").length;
  // A file that could not be loaded has no tests to fail, and must not be silent.
  const broken = testResults.filter(
    (file) =>
      file.status === "failed" && !file.assertionResults.some((test) => test.status === "failed"),
  );
  const failed = failedTests + broken.length || (status === 0 ? 0 : 1);
  const left = tests.filter((test) => !["passed", "failed"].includes(test.status));
  if (tests.length + broken.length === 0) return undefined;
  return {
    ...{ passed, failed, skipped: left.length, reasons: left.map((test) => test.fullName) },
    failures: testResults.flatMap(failuresOf),
  };
}

/** Lines of a failure's message that are repeated at the end. */
const MESSAGE_LINES = 12;

/** @param {TestFile} file @returns {string[]} */
function failuresOf({ name, status, message, assertionResults }) {
  const failed = assertionResults.filter((test) => test.status === "failed");
  const file = relative(root, name);
  if (status === "failed" && failed.length === 0) return [file, ...beginning(message ?? "")];
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
