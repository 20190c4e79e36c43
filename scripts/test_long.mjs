/**
 * `npm run test:long`: the tests of test/long.mjs with their full counts, and the table of their results
 * in docs/test-long.md. `npm run test:long -- NAME...` runs some of them and keeps the other rows.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";
import { join } from "node:path";
import { longTests } from "../test/long.mjs";
import { build } from "./build.mjs";
import { verdicts } from "./checks/stream.mjs";
import { countOfVitest, runVitest } from "./checks/vitest.mjs";
import { capture, runAsScript, SetupError, seconds } from "./command.mjs";
import { makeEnvironment } from "./environment.mjs";
import { root } from "./setup.mjs";

/** @typedef {import("../test/long.mjs").LongTest} LongTest */

const page = join(root, "docs/test-long.md");
const head = `# Long tests

With this page you can see how often each long test was last repeated, when, and on which machine. \`npm run test:long\`
runs all of them and writes this page; \`npm run test:long -- NAME\` runs one and replaces its row. \`npm test\` runs a
sample of most of them ([test/long.mjs](../test/long.mjs)).

| name | repeated | count | tests passed | tests failed | duration | date | commit | machine |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
`;

/** @param {string[]} wanted @returns {Promise<number>} exit code */
async function testLong(wanted) {
  const all = new Map(/** @type {[string, LongTest][]} */ (Object.entries(longTests)));
  const unknown = wanted.filter((name) => !all.has(name));
  if (unknown.length > 0) {
    throw new SetupError(
      `no long test ${unknown.join(", ")}; there are ${[...all.keys()].join(", ")}`,
    );
  }
  const chosen = [...all].filter(([name]) => wanted.length === 0 || wanted.includes(name));
  await makeEnvironment({ needs: new Set(chosen.flatMap(([, { needs = [] }]) => needs)) });
  await build();
  const total = { passed: 0, failed: 0, skipped: 0 };
  for (const [name, test] of chosen) {
    const { row, count } = await runOne(name, test);
    // After each test, so that an interrupted run keeps its results; and read again, so that two runs at a time keep both.
    const rows = readRows().set(name, row);
    writeFileSync(
      page,
      head + [...all].map(([key, one]) => rows.get(key) ?? notRun(key, one)).join(""),
    );
    total.passed += count.passed;
    total.failed += count.failed;
    total.skipped += count.skipped;
  }
  process.stdout.write(
    `${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped\n`,
  );
  return total.failed === 0 ? 0 : 1;
}

/** @param {string} name @param {LongTest} test */
async function runOne(name, { what, file, full }) {
  process.stdout.write(`\n== ${name}: ${full} ${what}\n`);
  const begun = Date.now();
  const run = await runVitest({ filters: [file] }, { ...process.env, TIDEMARK_LONG: "1" });
  // A run that ran no test is a failure.
  const count = (run && countOfVitest(run.result, run.status)) ?? verdicts([false]);
  const cells = [
    ...[name, what, full, count.passed, count.failed, seconds(Date.now() - begun)],
    ...[new Date().toISOString().slice(0, 10), await commit(), machine()],
  ];
  return { row: `| ${cells.join(" | ")} |\n`, count };
}

/** The row of a test without a full run. @param {string} name @param {LongTest} test */
const notRun = (name, { what, full }) =>
  `| ${[name, what, full, "", "", "", "not run yet", "", ""].join(" | ")} |\n`;

/** @returns {Map<string, string>} name -> its row of the page as it is */
function readRows() {
  const text = existsSync(page) ? readFileSync(page, "utf8") : "";
  return new Map([...text.matchAll(/^\| (\w+) \|.*\n/gm)].map(([row, name = ""]) => [name, row]));
}

function machine() {
  const memory = `${(totalmem() / 2 ** 30).toFixed(0)} GiB`;
  return `${cpus().length} cores, ${memory}, Linux ${release()}, Node ${process.versions.node}`;
}

async function commit() {
  const { status, output } = await capture("git", ["rev-parse", "--short", "HEAD"], { cwd: root });
  return status === 0 ? output.trim() : "unknown";
}

await runAsScript(import.meta, () => testLong(process.argv.slice(2)));
