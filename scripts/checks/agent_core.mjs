/**
 * Checks the order of the agent's folders, and runs its unit tests on the core compiled without instrumentation
 * (`npm test` runs all of its tests).
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { makeVariables } from "../build/native.mjs";
import { findOnPath, SetupError } from "../command.mjs";
import { root } from "../setup.mjs";
import { countOfAgent } from "./agent.mjs";
import { stream, sum, verdicts } from "./stream.mjs";

/** @returns {Promise<import("./stream.mjs").Count | undefined>} undefined: a test printed no count */
export async function checkAgentCore() {
  if (findOnPath("make") === undefined) {
    return { ...verdicts([]), skipped: 1, reasons: ["the agent's unit tests in C: no make"] };
  }
  const names = wordsOf("CORE_TESTS");
  const programs = names.map((name) => `build/test/plain/${name}`);
  const libraries = wordsOf("LATE_KINDS").map((kind) => `build/test/late/${kind}.so`);
  const made = await stream("make", ["-s", "-j2", "-C", "agent", ...programs, ...libraries]);
  if (made.status !== 0) {
    return verdicts([false]);
  }
  const counts = [];
  const folders = ["sh", "test/folders.sh", "build/test/plain/objects"];
  for (const [file = "", ...args] of [
    folders,
    ...programs.map((program) => [join(root, "agent", program)]),
  ]) {
    const { status, lines } = await stream(file, args, { cwd: join(root, "agent") });
    const count = countOfAgent([...lines, closingLine(lines)], status);
    if (count === undefined || count.passed + count.failed === 0) {
      return undefined;
    }
    counts.push(count);
  }
  return { ...sum(counts), failures: counts.flatMap(({ failures }) => failures ?? []) };
}

/** Counts TAP lines as agent/test/run.sh does. @param {string[]} lines */
function closingLine(lines) {
  const passed = lines.filter((line) => /^ok /.test(line)).length;
  const failed = lines.filter((line) => /^not ok /.test(line)).length;
  return `${passed} passed, ${failed} failed`;
}

/** @param {string} variable of agent/Makefile */
function wordsOf(variable) {
  const words = makeVariables(readFileSync(join(root, "agent/Makefile"), "utf8")).get(variable);
  if (!words) {
    throw new SetupError(`agent/Makefile has no variable ${variable}`);
  }
  return words.split(/\s+/);
}
