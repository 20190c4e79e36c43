/** The agent's own tests, in C: under sanitizers, Valgrind, and uninstrumented (agent/Makefile). */
import { findOnPath } from "../command.mjs";
import { stream, verdicts } from "./stream.mjs";

/** @returns {Promise<import("./stream.mjs").Count | undefined>} undefined: it printed no count */
export async function checkAgent() {
  if (findOnPath("make") === undefined) {
    return { ...verdicts([]), skipped: 1, reasons: ["the agent's tests in C: no make"] };
  }
  const { status, lines } = await stream("make", ["-s", "-C", "agent", "check"]);
  const closing = /^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$/;
  const [, passed, failed, skipped] =
    lines.findLast((line) => closing.test(line))?.match(closing) ?? [];
  if (passed === undefined) return undefined;
  const count = { passed: Number(passed), failed: Number(failed), skipped: Number(skipped ?? 0) };
  const reasons = lines.filter((line) => /^(skip|skipped)\b/i.test(line));
  return { ...count, failed: count.failed || (status === 0 ? 0 : 1), reasons };
}
