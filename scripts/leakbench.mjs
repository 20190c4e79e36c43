/**
 * `npm run leakbench`, with the words of `usage` below.
 *
 * Runs labelled programs as a user would (`tidemark run`, then `tidemark diagnose --json`), compares each
 * verdict with its label, prints a table and writes JSON; recordings of misjudged cases are kept in
 * leakbench/results. A complete run of the repository's own cases also writes docs/leakbench.md. With
 * `--peers` the same cases run under other tools instead, and the page's part about those tools is
 * written.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { benchPython } from "../bench/environment.mjs";
import { build } from "./build.mjs";
import { runAsScript, SetupError } from "./command.mjs";
import { makeEnvironment, readEnvironment } from "./environment.mjs";
import { readCases } from "./leakbench/cases.mjs";
import { page, row, table, withRun } from "./leakbench/page.mjs";
import { askable, peerNames, runPeer } from "./leakbench/peers.mjs";
import { peersOf, peersPart, peersTable, withPeers } from "./leakbench/peers_page.mjs";
import { runCase } from "./leakbench/run_case.mjs";
import { total } from "./leakbench/score.mjs";
import { ways } from "./leakbench/ways.mjs";
import { root } from "./setup.mjs";

const ownCases = join(root, "leakbench/cases");
/** @typedef {import("./leakbench/score.mjs").CaseResult} CaseResult */

const pageFile = join(root, "docs/leakbench.md");
const measuredFile = join(root, "leakbench/measured.json");
/** How long each case runs under a peer, unless LEAKBENCH_SECONDS is set. */
const peerSeconds = 20;

const usage = `usage: npm run leakbench -- [CASE...] [OPTIONS]

  --cases DIR    labelled programs of your own: DIR/CASE/case.py and expect.json beside it
  --python PATH  the interpreter for all of them
  --jobs N       how many at a time; default: half the cores
  --json FILE    where the results go; default: leakbench/results
  --way WAY      default: run; one of
${[...ways].map(([name, { is }]) => `                   ${name.padEnd(9)} ${is}`).join("\n")}
  --windows S,S  seconds of each window, as in 20,60,200; default: each case's own
  --peers        the same programs under tracemalloc, memray and scalene

  npm run leakbench -- lru_cache_method
  npm run leakbench -- --cases ~/leaks --python .venv/bin/python
  npm run leakbench -- --way attach --windows 20,60,200
`;

/** @param {string[]} words */
function readWords(words) {
  try {
    return parseWords(words);
  } catch (error) {
    throw new SetupError(`${/** @type {Error} */ (error).message}\n${usage}`);
  }
}

/** @param {string[]} args */
function parseWords(args) {
  return parseArgs({
    args,
    allowPositionals: true,
    options: {
      help: { type: "boolean", short: "h", default: false },
      cases: { type: "string", default: ownCases },
      python: { type: "string" },
      jobs: { type: "string", default: String(Math.max(1, Math.floor(cpus().length / 2))) },
      json: { type: "string" },
      way: { type: "string", default: "run" },
      windows: { type: "string", default: "" },
      peers: { type: "boolean", default: false },
    },
  });
}

async function leakbench() {
  const { values, positionals } = readWords(process.argv.slice(2));
  if (values.help) {
    process.stdout.write(usage);
    return;
  }
  const folder = resolve(values.cases);
  const jobs = Number(values.jobs);
  if (!Number.isInteger(jobs) || jobs < 1) {
    throw new SetupError("--jobs needs a whole number from 1");
  }
  const way = ways.get(values.way);
  if (way === undefined) {
    throw new SetupError(`--way is one of ${[...ways.keys()].join(", ")}`);
  }
  const windows = windowsOf(values.windows);
  const cases = readCases(folder, positionals);
  const whole = folder === ownCases && positionals.length === 0 && values.python === undefined;
  await (values.peers
    ? underPeers(cases, jobs, values, whole)
    : underTidemark(cases, jobs, { ...values, way: way.way, windows }, whole ? values.way : null));
}

/**
 * @param {import("./leakbench/cases.mjs").LabelledCase[]} cases
 * @param {number} jobs
 * @param {{json?: string} & import("./leakbench/run_case.mjs").CaseOptions} options
 * @param {string | null} whole the way, if every case of the repository runs on the set-up's interpreters
 */
async function underTidemark(cases, jobs, options, whole) {
  await build();
  const environment = await knownEnvironment();
  const byCase = await inParallel(cases, jobs, async (labelled) => {
    const results = await runCase(labelled, environment, options);
    process.stdout.write(`${results.map((result) => row(result)).join("\n")}\n`);
    return results;
  });
  const results = byCase.flat();
  const document = {
    schema: "tidemark.leakbench/1",
    cases: results,
    totals: total(results),
  };
  const file = writeResults(options.json ?? join(root, "leakbench/results/latest.json"), document);
  process.stdout.write(`\n${table(results)}\n\n${file}\n`);
  if (whole !== null) {
    const measured = remember(whole, results);
    writeFileSync(pageFile, withPeers(page(measured), peersOf(knownPage())));
  }
}

/** Adds a complete run to those that the page is made from. @param {string} way @param {CaseResult[]} results */
function remember(way, results) {
  const known = existsSync(measuredFile) ? JSON.parse(readFileSync(measuredFile, "utf8")) : {};
  const measured = withRun(known, way, results);
  writeFileSync(measuredFile, `${JSON.stringify(measured, null, 1)}\n`);
  return measured;
}

/** @param {string} words @returns {number[]} */
function windowsOf(words) {
  const windows = words === "" ? [] : words.split(",").map(Number);
  if (windows.some((seconds) => !Number.isInteger(seconds) || seconds < 1)) {
    throw new SetupError("--windows needs seconds from 1, separated by commas: 20,60,200");
  }
  return windows.sort((a, b) => a - b);
}

/**
 * @param {import("./leakbench/cases.mjs").LabelledCase[]} cases
 * @param {number} jobs
 * @param {{json?: string, python?: string}} options
 * @param {boolean} whole
 */
async function underPeers(cases, jobs, options, whole) {
  const python = options.python ?? (await benchPython());
  const seconds = Number(process.env.LEAKBENCH_SECONDS ?? peerSeconds);
  const runs = askable(cases).flatMap((labelled) => peerNames.map((peer) => ({ labelled, peer })));
  // Scalene's processes wait for one another, and hang if several end together, so run one at a time.
  const alone = runs.filter(({ peer }) => peer === "scalene");
  const others = runs.filter(({ peer }) => peer !== "scalene");
  const ask = async (/** @type {typeof runs[number]} */ { labelled, peer }) => {
    const result = await runPeer(labelled, peer, python, seconds);
    process.stdout.write(`${peersTable([result])}\n`);
    return result;
  };
  const results = (
    await Promise.all([inParallel(alone, 1, ask), inParallel(others, Math.max(1, jobs - 1), ask)])
  ).flat();
  const measured = new Date().toISOString().slice(0, 10);
  const document = { schema: "tidemark.leakbench-peers/1", seconds, measured, runs: results };
  const file = writeResults(options.json ?? join(root, "leakbench/results/peers.json"), document);
  process.stdout.write(`\n${peersTable(results)}\n\n${file}\n`);
  if (whole) {
    writeFileSync(pageFile, withPeers(knownPage(), peersPart(document)));
  }
}

/** @param {string} path @param {unknown} document @returns {string} the file that was written */
function writeResults(path, document) {
  const file = resolve(path);
  mkdirSync(join(file, ".."), { recursive: true });
  writeFileSync(file, `${JSON.stringify(document, null, 2)}\n`);
  return file;
}

/** The current page; "" if there is none. */
function knownPage() {
  try {
    return readFileSync(pageFile, "utf8");
  } catch {
    return "";
  }
}

/** The environment that the set-up found; runs the set-up if none has run. */
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
