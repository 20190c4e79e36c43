/**
 * Estimates against exact truth: programs that know what they allocated.
 * `npm run bench -- accuracy [--runs 10] [--only load,churn] [--seconds 60]`
 *
 * For each site with at least 400 expected samples at the configured period: is its live-bytes figure within 10 %? For
 * each site with at least 20 samples: does the 95 % interval (src/model/base/interval.ts) contain the true value? And how
 * much can an unlisted site hold, as a share of all live bytes? Each run has its own seeds. The program that churns, whose
 * runs are long, is run a tenth as often as the others.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { interval95 } from "../dist/model/base/interval.js";
import { SetupError } from "../scripts/command.mjs";
import { findInterpreters } from "../scripts/environment/interpreters.mjs";
import { makeTorch } from "../scripts/environment/packages.mjs";
import { describeMachine } from "./machine.mjs";
import { markdownTable, writeResults } from "./results.mjs";
import { mean, median } from "./statistics.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const tidemark = join(here, "../bin/tidemark");
const { values: options } = parseArgs({
  options: {
    runs: { type: "string", default: "10" },
    seconds: { type: "string", default: "60" },
    only: { type: "string" },
  },
});
const PERIOD = 64 << 10;
const EXPECTED_SAMPLES = 400;
const SAMPLES_FOR_INTERVAL = 20;
const WITHIN = 0.1;

/** @typedef {{name: string, what: string, script: string, more?: string[], torch?: boolean, runs?: number, atPeak?: boolean}} Program */
/** @type {Program[]} */
const programs = [
  { name: "load", what: "loads 300 MB at once, then idles", script: "known_load.py" },
  {
    name: "churn",
    what: `churns 1 GB/s beside two leaks of 1 MB/s, ${options.seconds} s`,
    script: "known_churn.py",
    more: [options.seconds],
    runs: Math.ceil(Number(options.runs) / 10),
  },
  { name: "many", what: "10,000 sites", script: "known_many.py" },
  { name: "threads", what: "32 threads", script: "known_threads.py" },
  {
    name: "forks",
    what: "six forked workers, at the peak",
    script: "known_forks.py",
    atPeak: true,
  },
  { name: "mixed", what: "blocks of 40 B to 64 MB", script: "known_mixed.py" },
  {
    name: "libraries",
    what: "NumPy, torch, malloc by ctypes",
    script: "known_libraries.py",
    torch: true,
  },
];
const names = programs.map(({ name }) => name);
const chosen = options.only?.split(",") ?? names;
for (const name of chosen) {
  if (!names.includes(name)) {
    throw new SetupError(`no program ${name}: it is one of ${names.join(", ")}`);
  }
}
const interpreters = await findInterpreters();
const python = interpreters.filter(({ freeThreaded }) => !freeThreaded).at(-1)?.path ?? "python3";
const scratch = mkdtempSync(join(tmpdir(), "tidemark-bench-"));

/** @param {string[]} command */
function output(command) {
  const result = spawnSync(command[0] ?? "", command.slice(1), {
    encoding: "utf8",
    cwd: scratch,
    maxBuffer: 1 << 30,
  });
  if (result.status !== 0) {
    throw new Error(`${command.join(" ")}: ${result.status}\n${result.stderr}`);
  }
  return result.stdout;
}

/** @typedef {{live: number, variance: number}} Estimate */
/** @typedef {{truth: Record<string, {liveBytes: number}>, estimates: Map<string, Estimate>, agent: any, liveBytes: number}} Run */

/** @param {Program} program @param {string} interpreter @param {number} seed @returns {Run} */
function record(program, interpreter, seed) {
  const recording = join(scratch, "r.tidemark");
  const script = join(here, "workloads", program.script);
  const truth = output([
    ...[tidemark, "run", "--quiet", "-f", "-o", recording, "--"],
    ...[interpreter, script, String(seed), ...(program.more ?? [])],
  ]);
  const summary = JSON.parse(output([tidemark, "summary", recording, "--json", "--top", "100000"]));
  const estimates = new Map();
  for (const site of summary.sites) {
    const frame = site.stack.find((/** @type {{function: string}} */ { function: name }) =>
      name.startsWith("site_"),
    );
    if (frame) {
      const sum = estimates.get(frame.function) ?? { live: 0, variance: 0 };
      sum.live += program.atPeak ? site.liveBytesAtPeak : site.liveBytes;
      sum.variance +=
        (program.atPeak ? site.standardErrorAtPeakBytes : site.standardErrorBytes) ** 2;
      estimates.set(frame.function, sum);
    }
  }
  const liveBytes = summary.sites.reduce(
    (/** @type {number} */ sum, /** @type {{liveBytes: number, liveBytesAtPeak: number}} */ site) =>
      sum + (program.atPeak ? site.liveBytesAtPeak : site.liveBytes),
    0,
  );
  return { truth: JSON.parse(truth), estimates, agent: summary.agent, liveBytes };
}

/** The results of one program over its runs. */
class Score {
  /** @type {Map<string, boolean[]>} by site: within 10 %, run by run */
  within = new Map();
  /** @type {number[]} */
  errors = [];
  held = 0;
  judged = 0;
  /** @type {number[]} of live bytes */
  unseen = [];
  /** @type {number[]} */
  coarsest = [];

  /** @param {Run} run */
  add({ truth, estimates, agent, liveBytes }) {
    for (const [name, { liveBytes: exact }] of Object.entries(truth)) {
      const { live, variance } = estimates.get(name) ?? { live: 0, variance: 0 };
      if (exact >= EXPECTED_SAMPLES * PERIOD) {
        const error = Math.abs(live - exact) / exact;
        this.errors.push(error);
        this.within.set(name, [...(this.within.get(name) ?? []), error <= WITHIN]);
      }
      // The number of equal samples that would give this error.
      if (live ** 2 >= SAMPLES_FOR_INTERVAL * variance && live > 0) {
        const { low, high } = interval95(live, Math.sqrt(variance));
        this.judged++;
        this.held += low - 1e-6 <= exact && exact <= high + 1e-6 ? 1 : 0;
      }
    }
    this.unseen.push(agent.unseenUpToBytes / liveBytes);
    this.coarsest.push(agent.coarsestPeriodBytes);
  }

  row() {
    const all = [...this.within.values()].flat();
    const percent = (/** @type {number} */ part, /** @type {number} */ whole) =>
      whole ? `${((100 * part) / whole).toFixed(1)} % of ${whole}` : "-";
    const worst = Math.min(...[...this.within.values()].map((each) => mean(each.map(Number))));
    return [
      percent(all.filter(Boolean).length, all.length),
      this.within.size > 0 ? `${(100 * worst).toFixed(0)} %` : "-",
      this.errors.length > 0 ? `${(100 * median(this.errors)).toFixed(1)} %` : "-",
      this.errors.length > 0 ? `${(100 * Math.max(...this.errors)).toFixed(1)} %` : "-",
      percent(this.held, this.judged),
      `${(100 * Math.max(...this.unseen)).toFixed(1)} %`,
      `${Math.max(...this.coarsest) / 1024} KiB`,
    ];
  }
}

const rows = [];
for (const program of programs.filter(({ name }) => chosen.includes(name))) {
  const interpreter = program.torch ? await makeTorch(interpreters) : python;
  const score = new Score();
  const { what, runs = Number(options.runs) } = program;
  for (let run = 0; run < runs; run++) {
    score.add(record(program, interpreter, run));
  }
  rows.push([what, String(runs), ...score.row()]);
  console.error(rows.at(-1)?.join("  "));
}
rmSync(scratch, { recursive: true, force: true });

const markdown = `## Accuracy

\`npm run bench -- accuracy --runs ${options.runs} --seconds ${options.seconds}\` on ${describeMachine(python)}.
Estimated live bytes of each site, compared with the true figures of programs that count them, at the default period of
64 KiB. "Large" sites have at least ${EXPECTED_SAMPLES} expected samples at that period.

${markdownTable(
  [
    "program",
    "runs",
    "large: within 10 %",
    "worst site",
    "large: error, median",
    "largest",
    `interval contains the true value, sites of ${SAMPLES_FOR_INTERVAL} samples and more`,
    "sites not listed: at most this share of live bytes",
    "coarsest period",
  ],
  rows,
)}
`;
console.log(markdown);
if (!options.only) {
  writeResults("accuracy", markdown);
}
