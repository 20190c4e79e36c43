/**
 * The overhead of each tool: every workload runs alternately plain and under a tool, A B A C ...,
 * and each run is compared with the plain run just before it.
 *
 *   npm run bench -- overhead [--minutes 15] [--pairs 5] [--only WORKLOAD,...] [--tools "tidemark;scalene"]
 *     [--repeat 1,5]
 *
 * `--repeat 1,5,30` runs each workload that often in one process, under Tidemark alone: a short program bears the cost of
 * the agent's start, a long one does not. Each length has a row of its own.
 *
 * The program's own CPU time is the kernel's account of the interpreter process and its children
 * (measure.py, inside the tool); what the tool spends outside it (Tidemark's recorder) is the account
 * of the whole command minus that.
 *
 * Tidemark's pairs run first, at least three; then each peer gets one pair, the least recently measured
 * first, while time remains. The ratios of every tool's last complete round are kept in
 * bench/results/overhead.json, and the page shows them all: the next run measures what this run had no time for.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { SetupError } from "../scripts/command.mjs";
import { benchPython } from "./environment.mjs";
import { describeMachine } from "./machine.mjs";
import { markdownTable, writeResults } from "./results.mjs";
import { formatRatio, mean, median, overall, ratioWithInterval } from "./statistics.mjs";
import { toolNames, tools } from "./tools.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const resultsFile = join(here, "results/overhead.json");
/** Some peers hang on some programs; after two failures in a row the tool is skipped. */
const RUN_TIMEOUT_MS = 60_000;
/** For each repetition; longer than any of them takes plain. */
const REPETITION_TIMEOUT_MS = 10_000;
/** Minimum number of our own pairs, however long they take. */
const LEAST_PAIRS = 3;
const workloads = [
  "json_service",
  "log_analysis",
  "object_graph",
  "richards",
  "word_index",
  "sqlite_orders",
  "async_pipeline",
  "numpy_arrays",
  "pandas_groups",
  "torch_training",
  "torch_inference",
  "dataloader",
  "small_allocations",
];
/** Allocation-bound: it has its own budget (5 %), so it is not part of the mean. */
const micro = new Set(["small_allocations"]);

const { values: options } = parseArgs({
  options: {
    minutes: { type: "string", default: "15" },
    pairs: { type: "string", default: "5" },
    only: { type: "string" },
    tools: { type: "string" },
    repeat: { type: "string", default: "1" },
  },
});
const chosenTools = toolNames(options.tools);
const chosenWorkloads = options.only?.split(",") ?? workloads;
for (const name of chosenWorkloads) {
  if (!workloads.includes(name)) {
    throw new SetupError(`no workload ${name}: it is one of ${workloads.join(", ")}`);
  }
}

const python = await benchPython();
const scratch = mkdtempSync(join(tmpdir(), "tidemark-bench-"));
const environment = {
  ...process.env,
  DD_PROFILING_ENABLED: "1",
  DD_PROFILING_MEMORY_ENABLED: "1",
  DD_PROFILING_STACK_ENABLED: "0",
  DD_PROFILING_LOCK_ENABLED: "0",
  DD_TRACE_ENABLED: "0",
  DD_INSTRUMENTATION_TELEMETRY_ENABLED: "0",
  DD_TRACE_AGENT_URL: "http://127.0.0.1:1",
  OMP_NUM_THREADS: "1",
  OPENBLAS_NUM_THREADS: "1",
  // Sets and dicts of texts cost up to 5 % more or less from one seed to the next: both runs of a pair have the same one.
  PYTHONHASHSEED: "0",
};

/**
 * @param {string[]} command
 * @param {string} [innerFile] where a measure.py inside wrote
 * @param {number} [times] how often the workload runs
 * @returns {{cpu: number, wall: number, whole: number} | null} null: the command failed
 */
function once(command, innerFile, times = 1) {
  const outer = join(scratch, "outer.json");
  const result = spawnSync(python, [join(here, "measure.py"), outer, ...command], {
    env: environment,
    cwd: scratch,
    stdio: ["ignore", "ignore", "pipe"],
    encoding: "utf8",
    timeout: RUN_TIMEOUT_MS + (times - 1) * REPETITION_TIMEOUT_MS,
  });
  if (result.status !== 0) {
    console.error(
      `  failed (${result.status}): ${command.slice(0, 6).join(" ")}\n  ${result.stderr.trim().split("\n").at(-1)}`,
    );
    return null;
  }
  const whole = JSON.parse(readFileSync(outer, "utf8"));
  const inner = innerFile ? JSON.parse(readFileSync(innerFile, "utf8")) : whole;
  return { cpu: inner.cpuSeconds, wall: inner.wallSeconds, whole: whole.cpuSeconds };
}

/**
 * One entry per pair. plainSeconds: CPU time of the plain runs; older results have none.
 * @typedef {{cpu: number[], wall: number[], besideSeconds: number[], plainSeconds?: number[]}} Ratios
 */
/** @typedef {{measured: string, atMs?: number, ratios: Record<string, Ratios>}} Result ratios by workload */
/** @type {Record<string, Result>} by tool */
const results = existsSync(resultsFile) ? JSON.parse(readFileSync(resultsFile, "utf8")) : {};
const measured = describeMachine(python);
const endMs = Date.now() + Number(options.minutes) * 60_000;
/** @type {Map<string, number>} runs in a row that failed, by tool */
const failures = new Map();

/** Rows of our own tools: each tool, with each number of repetitions. */
const ours = chosenTools
  .filter(isOurs)
  .flatMap((tool) => options.repeat.split(",").map((times) => rowName(tool, Number(times))));
for (const workload of chosenWorkloads) {
  once([python, scriptOf(workload)]); // files into the page cache
}
/** @type {Record<string, Result>} */
const fresh = Object.fromEntries(ours.map((tool) => [tool, newResult()]));
for (let pair = 0; pair < Number(options.pairs); pair++) {
  if (pair >= LEAST_PAIRS && Date.now() > endMs - reserveMs()) {
    break;
  }
  environment.PYTHONHASHSEED = `${pair + 1}`;
  for (const workload of chosenWorkloads) {
    for (const tool of ours) {
      measurePair(tool, workload, fresh[tool]);
    }
  }
  progress(`pair ${pair + 1}`, ours, fresh);
}
Object.assign(results, fresh);
const peers = chosenTools
  .filter((tool) => !isOurs(tool))
  .sort((one, other) => (results[one]?.atMs ?? 0) - (results[other]?.atMs ?? 0));
for (const tool of peers) {
  const result = newResult();
  const left = chosenWorkloads.filter((workload) => {
    if (Date.now() > endMs) {
      return true;
    }
    measurePair(tool, workload, result);
    return false;
  });
  if (left.length > 0) {
    console.error(`${tool}: no time left; its last figures stay`);
    break;
  }
  results[tool] = result;
  progress("one pair", [tool], results);
}
rmSync(scratch, { recursive: true, force: true });

/** Time reserved for the peers: half of the total. */
function reserveMs() {
  return chosenTools.some((tool) => !isOurs(tool)) ? Number(options.minutes) * 30_000 : 0;
}

/** @returns {Result} */
function newResult() {
  return { measured, atMs: Date.now(), ratios: {} };
}

/** @param {string} tool @param {number} times in one process */
function rowName(tool, times) {
  return times === 1 ? tool : `${tool}, ${times} times`;
}

/** The inverse of {@link rowName}. @param {string} row */
function toolAndTimes(row) {
  const [, tool = row, times = "1"] = /^(.*), (\d+) times$/.exec(row) ?? [];
  return { tool, times: Number(times) };
}

/** @param {string} workload */
function scriptOf(workload) {
  return join(here, "workloads", `${workload}.py`);
}

/**
 * One plain run and one under the tool; adds the ratios to the row's.
 * @param {string} row
 * @param {string} workload
 * @param {Result} result
 */
function measurePair(row, workload, result) {
  const { tool, times } = toolAndTimes(row);
  if ((failures.get(row) ?? 0) >= 2) {
    return;
  }
  const script = scriptOf(workload);
  const innerFile = join(scratch, "inner.json");
  const repeated = times === 1 ? [script] : [join(here, "repeat.py"), `${times}`, script];
  const inner = [python, join(here, "measure.py"), innerFile, python, ...repeated];
  // Both runs of our pairs are inside measure.py; for a peer, the cost is that of the whole command.
  const own = isOurs(tool);
  const plain = own ? once(inner, innerFile, times) : once([python, script]);
  const command = tools[tool]({ python, script, inner, scratch });
  const watched = once(command, own ? innerFile : undefined, times);
  failures.set(row, watched ? 0 : (failures.get(row) ?? 0) + 1);
  if (!plain || !watched) {
    return;
  }
  result.ratios[workload] ??= { cpu: [], wall: [], besideSeconds: [], plainSeconds: [] };
  const ratios = result.ratios[workload];
  ratios.cpu.push(watched.cpu / plain.cpu);
  ratios.wall.push(watched.wall / plain.wall);
  ratios.besideSeconds.push(own ? watched.whole - watched.cpu : 0);
  ratios.plainSeconds?.push(plain.cpu);
}

/** @param {string} what @param {string[]} of @param {Record<string, Result>} from */
function progress(what, of, from) {
  for (const tool of of) {
    const each = Object.entries(from[tool].ratios).map(
      ([workload, { cpu }]) => `${workload} ${cpu.at(-1)?.toFixed(3)}`,
    );
    console.error(`${tool}, ${what}: ${each.join(", ")}`);
  }
}

/** @param {string} tool */
function isOurs(tool) {
  return tool.startsWith("tidemark");
}

/** @param {string} tool @param {string} workload */
function cpuRatio(tool, workload) {
  const ratios = results[tool]?.ratios[workload];
  return ratios ? formatRatio(ratioWithInterval(ratios.cpu)) : "failed";
}

/** @param {string} tool as in the results @returns {string[]} */
function rowOf(tool) {
  const ordinary = Object.entries(results[tool]?.ratios ?? {}).filter(([name]) => !micro.has(name));
  if (ordinary.length === 0) {
    return [tool, "", "failed", "failed", "", ...[...micro].map(() => "failed"), "", "0", "0"];
  }
  const each = ordinary.map(([, ratios]) => ratioWithInterval(ratios.cpu));
  const seconds = ordinary.flatMap(([, { plainSeconds = [] }]) => plainSeconds);
  const beside = ordinary.flatMap(([, ratios]) => ratios.besideSeconds);
  return [
    tool,
    seconds.length > 0 ? `${median(seconds).toFixed(1)} s` : "",
    formatRatio(overall(each)),
    Math.max(...each.map(({ ratio }) => ratio)).toFixed(3),
    formatRatio(overall(ordinary.map(([, ratios]) => ratioWithInterval(ratios.wall)))),
    ...[...micro].map((workload) => cpuRatio(tool, workload)),
    isOurs(tool) ? `${mean(beside).toFixed(2)} s a run` : "in the program",
    `${ordinary.length}`,
    `${Math.max(...ordinary.map(([, ratios]) => ratios.cpu.length))}`,
  ];
}

const shown = Object.keys(tools)
  .flatMap((tool) => Object.keys(results).filter((row) => toolAndTimes(row).tool === tool))
  .sort((a, b) => Number(isOurs(b)) - Number(isOurs(a)));
const markdown = `## Overhead

\`npm run bench -- overhead\`. CPU and wall time are ratios to the plain run just before: the geometric mean over the
workloads, with its 95 % interval (none if there is only one pair). Tidemark's figure is the program's own time; its
recorder, a separate process, has its own column. The other tools work inside the program. Measured on ${[...new Set(shown.map((tool) => results[tool].measured))].join("; ")}.
A run that has not ended after ${RUN_TIMEOUT_MS / 1000} s (${REPETITION_TIMEOUT_MS / 1000} s more for each repetition) counts as failed; after two failures in a row, the tool is not run again.

${markdownTable(
  [
    "tool",
    "plain run, median",
    "CPU",
    "the worst workload",
    "wall",
    ...[...micro].map((name) => `CPU, ${name}`),
    "recorder's CPU",
    "workloads",
    "pairs",
  ],
  shown.map(rowOf),
)}

CPU ratio by workload:

${markdownTable(
  ["workload", ...shown],
  workloads.map((workload) => [workload, ...shown.map((tool) => cpuRatio(tool, workload))]),
)}
`;
console.log(markdown);
if (!options.only) {
  mkdirSync(dirname(resultsFile), { recursive: true });
  writeFileSync(resultsFile, `${JSON.stringify(results, null, 1)}\n`);
  writeResults("overhead", markdown);
}
