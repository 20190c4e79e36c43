/**
 * `npm run leakbench -- [CASE...] [--cases DIR] [--python PATH] [--jobs N] [--json FILE]`
 *
 * Runs labelled programs as a user would (`tidemark run`, then `tidemark diagnose --json`), holds each
 * verdict against the label beside it, prints a table and writes JSON. A whole run of the repository's
 * own cases also writes docs/leakbench.md.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { build } from "./build.mjs";
import { runAsScript, SetupError } from "./command.mjs";
import { makeEnvironment, readEnvironment } from "./environment.mjs";
import { readCases } from "./leakbench/cases.mjs";
import { page, table } from "./leakbench/page.mjs";
import { runCase } from "./leakbench/run_case.mjs";
import { total } from "./leakbench/score.mjs";
import { root } from "./setup.mjs";

const ownCases = join(root, "leakbench/cases");

async function leakbench() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      cases: { type: "string", default: ownCases },
      python: { type: "string" },
      jobs: { type: "string", default: String(Math.max(1, Math.floor(cpus().length / 2))) },
      json: { type: "string", default: join(root, "leakbench/results/latest.json") },
    },
  });
  const folder = resolve(values.cases);
  const jobs = Number(values.jobs);
  if (!Number.isInteger(jobs) || jobs < 1)
    throw new SetupError("--jobs needs a whole number from 1");
  await build();
  const environment = await knownEnvironment();
  const cases = readCases(folder, positionals);
  const results = await inParallel(cases, jobs, async (labelled) => {
    const result = await runCase(labelled, environment, values.python);
    process.stdout.write(`${table([result])}\n`);
    return result;
  });
  const document = {
    schema: "tidemark.leakbench/1",
    cases: results,
    totals: total(results),
  };
  const file = resolve(values.json);
  mkdirSync(join(file, ".."), { recursive: true });
  writeFileSync(file, `${JSON.stringify(document, null, 2)}\n`);
  process.stdout.write(`\n${table(results)}\n\n${file}\n`);
  if (folder === ownCases && positionals.length === 0 && values.python === undefined)
    writeFileSync(join(root, "docs/leakbench.md"), page(document));
}

/** What the set-up found; made where no set-up has run. */
async function knownEnvironment() {
  try {
    return readEnvironment();
  } catch {
    return makeEnvironment();
  }
}

/**
 * @template Item, Result
 * @param {Item[]} items
 * @param {number} jobs at a time
 * @param {(item: Item) => Promise<Result>} work
 * @returns {Promise<Result[]>} in the order of the items
 */
async function inParallel(items, jobs, work) {
  /** @type {Result[]} */
  const results = [];
  let next = 0;
  const worker = async () => {
    while (next < items.length) {
      const index = next++;
      results[index] = await work(/** @type {Item} */ (items[index]));
    }
  };
  await Promise.all(Array.from({ length: jobs }, worker));
  return results;
}

await runAsScript(import.meta, leakbench);
