/** Tests the Python package without a preloaded agent, on every supported interpreter of this machine. The
 * agent's checks run the tests of labels and steps, with and without an agent. */
import { join } from "node:path";
import { readEnvironment } from "../environment.mjs";
import { root } from "../setup.mjs";
import { say, stream, sum } from "./stream.mjs";

const TESTS = ["test_without_agent.py", "test_in_program.py", "test_limits.py", "test_traffic.py"];

/** @returns {Promise<import("./stream.mjs").Count | undefined>} undefined: one printed no count */
export async function checkPython() {
  const counts = [];
  for (const { version, path, chroot } of readEnvironment().interpreters) {
    if (chroot !== undefined) {
      continue;
    }
    say(`Python ${version}`);
    const env = { ...process.env, PYTHONPATH: join(root, "python") };
    for (const file of TESTS) {
      const args = ["-B", "-m", "unittest", "discover", "-s", "python/tests", "-p", file];
      const { status, lines } = await stream(path, args, { env });
      const count = countOfUnittest(lines, status);
      if (count === undefined) {
        return undefined;
      }
      counts.push(count);
    }
  }
  return sum(counts);
}

/**
 * Reads unittest's closing lines: "Ran 12 tests in 0.1s", "FAILED (failures=1, errors=2, skipped=3)".
 * @param {string[]} lines @param {number} status
 * @returns {import("./stream.mjs").Count | undefined} undefined: no test ran
 */
export function countOfUnittest(lines, status) {
  const ran = Number(
    /^Ran (\d+) tests? /.exec(lines.findLast((line) => /^Ran \d/.test(line)) ?? "")?.[1],
  );
  if (!(ran > 0)) {
    return undefined;
  }
  const closing = lines.findLast((line) => /^(OK|FAILED)/.test(line)) ?? "";
  const number = (/** @type {string} */ name) =>
    Number(new RegExp(`\\b${name}=(\\d+)`).exec(closing)?.[1] ?? 0);
  const skipped = number("skipped");
  const failed = number("failures") + number("errors") || (status === 0 ? 0 : 1);
  const failures = lines.slice(0, lines.indexOf(closing));
  return { passed: ran - failed - skipped, failed, skipped, reasons: [], failures };
}
