/** The agent's own tests, in C: under sanitizers, Valgrind, and uninstrumented (agent/Makefile). */
import { findOnPath } from "../command.mjs";
import { stream, verdicts } from "./stream.mjs";

/**
 * @param {"core" | "library"} part
 * @returns {Promise<import("./stream.mjs").Count | undefined>} undefined: no count was printed
 */
export async function checkAgent(part) {
  if (findOnPath("make") === undefined) {
    return { ...verdicts([]), skipped: 1, reasons: ["the agent's tests in C: no make"] };
  }
  const { status, lines } = await stream("make", ["-s", "-C", "agent", `check-${part}`]);
  return countOfAgent(lines, status);
}

/**
 * Reads the closing line, "12 passed, 0 failed" with or without ", 1 skipped", and TAP's
 * "ok - NAME # SKIP REASON" above it.
 * @param {string[]} lines @param {number} status
 * @returns {import("./stream.mjs").Count | undefined} undefined: there is no closing line
 */
export function countOfAgent(lines, status) {
  const closing = /^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$/;
  const [, passed, failed, skipped] =
    lines.findLast((line) => closing.test(line))?.match(closing) ?? [];
  if (passed === undefined) {
    return undefined;
  }
  return {
    passed: Number(passed),
    failed: Number(failed) || (status === 0 ? 0 : 1),
    skipped: Number(skipped ?? 0),
    // Everything but the passed checks: a failed check's messages may be some lines below it.
    failures: lines.filter((line) => !/^ok |^\d+ passed/.test(line)),
    reasons: lines.flatMap(
      (line) => /^ok - (.*) # SKIP (.*)$/.exec(line)?.slice(1).join(": ") ?? [],
    ),
  };
}
