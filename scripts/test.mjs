/**
 * `npm test`: set-up, build, every check. The last line is "N passed, N failed, N skipped".
 * `npm test -- NAME...` runs parts: a section's name, or part of a test file's path.
 */
import { build } from "./build.mjs";
import { checkAgent } from "./checks/agent.mjs";
import { checkGenerated } from "./checks/generated.mjs";
import { checkHouse } from "./checks/house.mjs";
import { checkImports } from "./checks/imports.mjs";
import { checkStyle, checkTypes } from "./checks/language.mjs";
import { checkPython } from "./checks/python.mjs";
import { say, sum, takeSaid, verdicts } from "./checks/stream.mjs";
import { checkVitest } from "./checks/vitest.mjs";
import { runAsScript, SetupError, seconds } from "./command.mjs";
import { makeEnvironment } from "./environment.mjs";

/** @typedef {import("./checks/stream.mjs").Count} Count */
/** @typedef {Count & {name: string}} Named what a section reported */

/** @type {Record<string, (filters: string[]) => Promise<Count | undefined>>} */
const sections = {
  house: checkHouse,
  style: checkStyle,
  types: checkTypes,
  imports: checkImports,
  generated: checkGenerated,
  agent: checkAgent,
  python: checkPython,
  vitest: checkVitest,
};

/** @param {string[]} wanted @returns {Promise<number>} exit code */
async function test(wanted) {
  const filters = wanted.filter((name) => !(name in sections));
  const chosen = Object.keys(sections).filter(
    (name) =>
      wanted.length === 0 || wanted.includes(name) || (name === "vitest" && filters.length > 0),
  );
  const counts = [await section("set-up", setUpForTests)];
  if (sum(counts).failed === 0) {
    counts.push(await section("build", buildOnce));
    for (const name of chosen) {
      counts.push(await section(name, async () => await sections[name]?.(filters)));
    }
  }
  const { passed, failed, skipped, reasons } = sum(counts);
  repeatFailures(counts);
  for (const reason of reasons) process.stdout.write(`skipped: ${reason}\n`);
  process.stdout.write(`${passed} passed, ${failed} failed, ${skipped} skipped\n`);
  return failed === 0 ? 0 : 1;
}

/**
 * Runs one section under a heading. One that reports nothing has not done its work: a failure.
 * @param {string} name
 * @param {() => Promise<Count | undefined>} run
 * @returns {Promise<Named>}
 */
async function section(name, run) {
  takeSaid();
  process.stdout.write(`\n== ${name}\n`);
  const begun = Date.now();
  const reported = await run().catch((error) => {
    say(error instanceof SetupError ? error.message : error.stack);
    return verdicts([false]);
  });
  if (reported === undefined) say("printed no count of tests");
  const count = reported ?? verdicts([false]);
  process.stdout.write(
    `== ${name}: ${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped ` +
      `(${seconds(Date.now() - begun)})\n`,
  );
  return { ...count, name, failures: count.failures?.length ? count.failures : takeSaid() };
}

/** Lines that a section repeats at most. */
const REPEATED_LINES = 150;

/**
 * Whoever sees only the end of a long run must see what failed in it, and why.
 * @param {Named[]} counts
 */
function repeatFailures(counts) {
  for (const { name, failed, failures = [] } of counts) {
    if (failed === 0) continue;
    process.stdout.write(`\n== failed in ${name}: ${failed}\n`);
    for (const line of failures.slice(-REPEATED_LINES)) process.stdout.write(`  ${line}\n`);
  }
}

async function setUpForTests() {
  const { skipped } = await makeEnvironment();
  const reasons = skipped.map(({ what, why }) => `${what}: ${why}`);
  return { ...verdicts([true]), skipped: skipped.length, reasons };
}

async function buildOnce() {
  await build();
  return verdicts([true]);
}

await runAsScript(import.meta, () => test(process.argv.slice(2)));
