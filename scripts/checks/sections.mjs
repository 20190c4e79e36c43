/**
 * Runs the sections of `npm test` and `npm run check`, each under a heading with its duration, and repeats
 * the failures at the end. The last line is "N passed, N failed, N skipped".
 */
import { availableParallelism } from "node:os";
import { SetupError, seconds } from "../command.mjs";
import { say, sum, verdicts } from "./stream.mjs";
import { Transcript, withTranscript } from "./transcript.mjs";

/**
 * @typedef {import("./stream.mjs").Count} Count
 * @typedef {Count & {name: string, next?: string}} Named what a section reported
 *
 * @typedef {object} Section
 * @property {string} name
 * @property {() => Promise<Count | undefined>} run undefined: the section printed no count
 * @property {string} [fix] command that fixes what the section reports
 * @property {string} [again] command that runs this section alone
 */

/**
 * Runs one section and prints its output as it arrives.
 * @param {Section} section @returns {Promise<Named>}
 */
export function runAlone(section) {
  return runSection(section, new Transcript({ live: true }));
}

/**
 * Runs sections that use one core each, as many at a time as there are cores. The output of each is
 * printed when it ends.
 * @param {Section[]} sections the longest first
 * @returns {Promise<Named[]>} in the order of `sections`
 */
export async function runSideBySide(sections) {
  /** @type {Named[]} */
  const counts = [];
  let next = 0;
  const lane = async () => {
    while (next < sections.length) {
      const index = next++;
      const transcript = new Transcript({ live: false });
      counts[index] = await runSection(/** @type {Section} */ (sections[index]), transcript);
      transcript.flush();
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, lane));
  return counts;
}

/**
 * A section that reports no count has not run properly: that is a failure.
 * @param {Section} section
 * @param {Transcript} transcript
 * @returns {Promise<Named>}
 */
async function runSection({ name, run, fix, again }, transcript) {
  transcript.print(`\n== ${name}\n`);
  const begun = Date.now();
  const count = await withTranscript(transcript, async () => {
    const reported = await run().catch((error) => {
      say(error instanceof SetupError ? error.message : error.stack);
      return verdicts([false]);
    });
    if (reported === undefined) {
      say("printed no count of tests");
    }
    return reported ?? verdicts([false]);
  });
  transcript.print(
    `== ${name}: ${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped ` +
      `(${seconds(Date.now() - begun)})\n`,
  );
  const next = fix ? `to fix it: ${fix}` : again ? `to run it again: ${again}` : undefined;
  if (count.failed > 0 && next !== undefined) {
    transcript.print(`== ${name}: ${next}\n`);
  }
  return {
    ...count,
    name,
    ...(next === undefined ? {} : { next }),
    failures: count.failures?.length ? count.failures : transcript.lines,
  };
}

/**
 * Prints the closing lines of a test command.
 * @param {Named[]} counts @returns {number} exit code
 */
export function conclude(counts) {
  const { passed, failed, skipped, reasons } = sum(counts);
  for (const reason of reasons) {
    process.stdout.write(`skipped: ${reason}\n`);
  }
  for (const { slowest = [], slowestFiles = [] } of counts) {
    printList("slowest files", slowestFiles);
    printList("slowest tests", slowest);
  }
  repeatFailures(counts);
  process.stdout.write(`${passed} passed, ${failed} failed, ${skipped} skipped\n`);
  return failed === 0 ? 0 : 1;
}

/** @param {string} title @param {string[]} lines */
function printList(title, lines) {
  if (lines.length > 0) {
    process.stdout.write(`\n== the ${lines.length} ${title}\n`);
  }
  for (const line of lines) {
    process.stdout.write(`  ${line}\n`);
  }
}

/** Maximum number of lines that are repeated per section. */
const REPEATED_LINES = 150;

/**
 * Repeats the failures for readers who only see the end of a long run.
 * @param {Named[]} counts
 */
function repeatFailures(counts) {
  for (const { name, failed, next, failures = [] } of counts) {
    if (failed === 0) {
      continue;
    }
    process.stdout.write(`\n== failed in ${name}: ${failed}\n`);
    for (const line of failures.slice(-REPEATED_LINES)) {
      process.stdout.write(`  ${line}\n`);
    }
    if (next !== undefined) {
      process.stdout.write(`  ${next}\n`);
    }
  }
}
