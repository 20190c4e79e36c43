/**
 * The recorder's own cost: CPU time, RSS, and the time that `run` needs before and after the program.
 * `npm run bench -- recorder [--only ROW,...] [--ways run,attach] [--first 60] [--later 60] [--pairs 20] [--jobs 1]`
 *
 * Real programs, each under `run` from its start and under `attach` after it has run for a few seconds. The cost is
 * read from /proc four times a second: that of the command, of Node and of all that they start, including ended
 * children and threads, without the program. Seconds: `--first` from the command's start, then `--later`. Rows:
 * idle, busy, ten (processes), dataloader (needs torch), growing, and growing beside 1, 2 and 4 million objects. The
 * row `start` compares `run -- python -c pass` with the plain command, alternately. Only a run of all rows is written
 * to docs/benchmarks.md.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { findInterpreters } from "../scripts/environment/interpreters.mjs";
import { makeTorch } from "../scripts/environment/packages.mjs";
import { describeMachine } from "./machine.mjs";
import { recorderCost } from "./process_cost.mjs";
import { markdownTable, writeResults } from "./results.mjs";
import { differenceWithInterval, median } from "./statistics.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const tidemark = join(here, "../bin/tidemark");
const script = join(here, "workloads/recorded_program.py");
const SAMPLE_MS = 250;
/** How long a program runs before `attach`, and after its recording is complete. */
const RUNS_BEFORE_S = 6;
const RUNS_AFTER_S = 15;
/** By then, the processes have given back the memory that starting up took. */
const AT_REST_AFTER_MS = 5_000;

/** @type {Record<string, {kind: string, objects?: number, torch?: boolean}>} */
const programs = {
  idle: { kind: "idle" },
  busy: { kind: "busy" },
  ten: { kind: "ten" },
  dataloader: { kind: "dataloader", torch: true },
  growing: { kind: "growing" },
  "growing, 1 M objects": { kind: "growing", objects: 1_000_000 },
  "growing, 2 M objects": { kind: "growing", objects: 2_000_000 },
  "growing, 4 M objects": { kind: "growing", objects: 4_000_000 },
};
const START_ROW = "start";
const rowNames = [...Object.keys(programs), START_ROW];

const { values: options } = parseArgs({
  options: {
    only: { type: "string", multiple: true },
    ways: { type: "string", default: "run,attach" },
    first: { type: "string", default: "60" },
    later: { type: "string", default: "60" },
    pairs: { type: "string", default: "20" },
    jobs: { type: "string", default: "1" },
  },
});
const firstS = Number(options.first);
const laterS = Number(options.later);
const ways = options.ways.split(",");
// A row's name may contain a comma, so the beginning of the name selects it.
const chosen =
  options.only === undefined
    ? rowNames
    : options.only
        .flatMap((words) => words.split(","))
        .map(
          (word) => rowNames.find((name) => name.replace("growing, ", "").startsWith(word)) ?? word,
        );
for (const name of chosen) {
  if (!rowNames.includes(name)) {
    throw new Error(`no row ${name}: it is one of ${rowNames.join("; ")}`);
  }
}

const interpreters = await findInterpreters();
const python = interpreters.findLast(({ freeThreaded }) => !freeThreaded)?.path ?? "python3";
const scratch = mkdtempSync(join(tmpdir(), "tidemark-bench-"));

/**
 * @typedef {object} Cost
 * @property {number} firstCpuS
 * @property {number} laterShare of a core
 * @property {number} restMib RSS of all processes of the recorder, median of the samples
 * @property {number} highestMib
 * @property {number | null} endS from the program's end to the first line of the summary; null: it kept running
 * @property {string} verdict
 */

/** Waits until a file matches. @param {string} path @param {RegExp} wanted */
async function readWhenPresent(path, wanted) {
  for (;;) {
    try {
      const [, value] = wanted.exec(readFileSync(path, "utf8")) ?? [];
      if (value !== undefined) {
        return Number(value);
      }
    } catch {
      // Not there yet.
    }
    await pause(20);
  }
}

/**
 * @param {string} row
 * @param {string} way
 * @returns {Promise<Cost>}
 */
async function measure(row, way) {
  const { kind, objects = 0, torch = false } = programs[row] ?? { kind: row };
  const interpreter = torch ? await makeTorch(interpreters) : python;
  const folder = mkdtempSync(join(scratch, "row-"));
  const state = join(folder, "state");
  const recording = join(folder, "recording.tidemark");
  const attached = way === "attach";
  const runsS = firstS + laterS + (attached ? RUNS_BEFORE_S + RUNS_AFTER_S : 0);
  const program = [interpreter, script, kind, String(runsS), state, String(objects)];
  const alone = attached ? spawn(program[0] ?? "", program.slice(1), { stdio: "ignore" }) : null;
  if (alone) {
    await Promise.all([readWhenPresent(state, /^(\d+)$/m), pause(RUNS_BEFORE_S * 1000)]);
  }
  const words = alone
    ? ["attach", String(alone.pid), "--for", `${firstS + laterS}s`, "-o", recording]
    : ["run", "-o", recording, "--", ...program];
  const command = spawn(tidemark, words, { stdio: ["ignore", "pipe", "pipe"] });
  const startMs = performance.now();
  let text = "";
  /** CLOCK_MONOTONIC, like the program's time. @type {number | null} */
  let summaryMs = null;
  for (const stream of [command.stdout, command.stderr]) {
    stream.setEncoding("utf8").on("data", (/** @type {string} */ part) => {
      text += part;
      if (/^Verdict/m.test(text)) {
        summaryMs ??= Number(process.hrtime.bigint() / 1_000_000n);
      }
    });
  }
  const ended = once(command, "close");
  const samples = await sampled(command, await readWhenPresent(state, /^(\d+)$/m), startMs);
  await ended;
  const endMs = attached ? null : await readWhenPresent(state, /^ended (\d+)$/m);
  alone?.kill("SIGKILL");
  const at = (/** @type {number} */ seconds) =>
    samples.findLast(({ ms }) => ms <= seconds * 1000) ?? { ms: 0, cpuMs: 0, rssBytes: 0 };
  const first = at(firstS);
  const last = at(firstS + laterS - 0.5);
  const rss = samples.filter(({ ms }) => ms >= AT_REST_AFTER_MS).map(({ rssBytes }) => rssBytes);
  return {
    firstCpuS: first.cpuMs / 1000,
    laterShare: (last.cpuMs - first.cpuMs) / Math.max(1, last.ms - first.ms),
    restMib: median(rss) / 2 ** 20,
    highestMib: Math.max(...samples.map(({ rssBytes }) => rssBytes)) / 2 ** 20,
    endS: endMs === null || summaryMs === null ? null : (summaryMs - endMs) / 1000,
    verdict: verdictOf(recording),
  };
}

/** The verdict's kind, and the holder of the first suspect. @param {string} recording */
function verdictOf(recording) {
  const { stdout } = spawnSync(tidemark, ["diagnose", recording, "--json", "--quiet"]);
  const { verdict, suspects } = JSON.parse(stdout.toString());
  const path = suspects[0]?.holder?.path;
  return path === undefined ? verdict.kind : `${verdict.kind}, held by ${path.join(" → ")}`;
}

/**
 * @param {import("node:child_process").ChildProcess} command
 * @param {number} program pid
 * @param {number} startMs by performance.now
 */
async function sampled(command, program, startMs) {
  /** @type {{ms: number, cpuMs: number, rssBytes: number}[]} */
  const samples = [];
  while (command.exitCode === null && command.signalCode === null) {
    const cost = recorderCost(Number(command.pid), program);
    if (cost !== null) {
      samples.push({ ms: performance.now() - startMs, ...cost });
    }
    await pause(SAMPLE_MS);
  }
  return samples;
}

/** Wall and CPU time of a command, in seconds. @param {string[]} words */
function timed([file = "", ...args]) {
  const begun = performance.now();
  const { status } = spawnSync(file, args, { stdio: "ignore", cwd: scratch });
  if (status !== 0) {
    throw new Error(`${file} ${args.join(" ")} ended with ${status}`);
  }
  return (performance.now() - begun) / 1000;
}

/** Compares `run -- python -c pass` with `python -c pass`. */
function measureStart() {
  const plain = [python, "-c", "pass"];
  const recorded = [tidemark, "run", "-f", "-o", join(scratch, "start.tidemark"), "--", ...plain];
  timed(plain);
  timed(recorded);
  const differences = [];
  for (let pair = 0; pair < Number(options.pairs); pair++) {
    const alone = timed(plain);
    differences.push(timed(recorded) - alone);
  }
  return differences;
}

const tasks = chosen
  .filter((row) => row !== START_ROW)
  .flatMap((row) => ways.map((way) => ({ row, way })));
/** @type {string[][]} */
const rows = [];
let next = 0;
await Promise.all(
  Array.from({ length: Number(options.jobs) }, async () => {
    while (next < tasks.length) {
      const index = next++;
      const { row, way } = /** @type {{row: string, way: string}} */ (tasks[index]);
      const cost = await measure(row, way);
      rows[index] = [
        row,
        way,
        `${cost.firstCpuS.toFixed(2)} s`,
        `${(100 * cost.laterShare).toFixed(2)} %`,
        `${cost.restMib.toFixed(0)} MiB`,
        `${cost.highestMib.toFixed(0)} MiB`,
        cost.endS === null ? "" : `${cost.endS.toFixed(2)} s`,
        cost.verdict,
      ];
      console.error(rows[index]?.join(" | "));
    }
  }),
);
const starts = chosen.includes(START_ROW) ? measureStart() : [];
rmSync(scratch, { recursive: true, force: true });

const { mean, low, high } = differenceWithInterval(starts);
const startLine =
  starts.length === 0
    ? ""
    : `\`run -- python -c pass\` takes ${mean.toFixed(3)} s (95 %: ${low.toFixed(3)} to ${high.toFixed(3)}) more than ` +
      `\`python -c pass\`, including summary and verdict; ${starts.length} alternating pairs, median ${median(starts).toFixed(3)} s.`;
const markdown = `## The recorder

\`npm run bench -- recorder\` on ${describeMachine(python)}.
CPU and RSS of everything except the program: the command, Node with its threads, and their child processes. "At rest" is
the median of four readings a second, "highest" their maximum. "To the verdict" is the time from the end of the program's
work to the verdict.

${markdownTable(
  [
    "program",
    "command",
    `CPU, first ${firstS} s`,
    `CPU, next ${laterS} s, of a core`,
    "RSS at rest",
    "RSS highest",
    "to the verdict",
    "verdict",
  ],
  rows,
)}

${startLine}
`;
console.log(markdown);
if (options.only === undefined) {
  writeResults("recorder", markdown);
}
