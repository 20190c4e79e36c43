/**
 * Where the time of a sample goes: the agent's slow path, timed within real programs.
 * `npm run bench -- sample [--samples 20000] [--library FILE]`
 *
 * The agent is compiled with the timers of agent/src/core/measure.c. Each program runs twice: once for the whole of
 * each sample, with the time stamp counter read at its start and end; and once for its parts, with a reading at every
 * change of part, minus the cost of a reading. The kernel's counts of page faults and context switches are read outside
 * the measured time. Samples in which the thread lost its core are counted, but left out of the times. `--library`
 * measures another library that was compiled with -DTM_MEASURE, for comparison.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { compileMeasured } from "../scripts/build/native.mjs";
import { findInterpreters } from "../scripts/environment/interpreters.mjs";
import { describeMachine } from "./machine.mjs";
import { markdownTable, writeResults } from "./results.mjs";
import { mean, median, quantile } from "./statistics.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const { values: options } = parseArgs({
  options: { samples: { type: "string", default: "20000" }, library: { type: "string" } },
});
/** In the order of enum tm_part in agent/src/core/measure.h. */
const parts = [
  "outside",
  "entry, next gap",
  "checks",
  "stack",
  "lock",
  "interning",
  "table",
  "period",
  "clock",
];
const WHAT_SAMPLE = 1;
const WHAT_END = 2;
const HEAD_BYTES = 32;
const RECORD_BYTES = 12 + 4 * parts.length;
const FIRST_SAMPLES = 5000;

const interpreters = await findInterpreters();
const python = interpreters.filter(({ freeThreaded }) => !freeThreaded).at(-1)?.path ?? "python3";
const load = loadavg()
  .map((value) => value.toFixed(1))
  .join(", ");
const scratch = mkdtempSync(join(tmpdir(), "tidemark-bench-"));
const library = options.library ?? (await compileMeasured(scratch));

/**
 * @typedef {object} Measured one sample or one free of a sample
 * @property {number} what
 * @property {number} faults page faults
 * @property {number} switches context switches
 * @property {number[]} ns by part; in a run without parts, all of it counts as "entry"
 */

/**
 * @param {string[]} program
 * @param {"whole" | "parts"} by
 * @returns {Measured[]}
 */
function run(program, by) {
  const file = join(scratch, "measured");
  const result = spawnSync(python, program, {
    cwd: scratch,
    stdio: ["ignore", "ignore", "inherit"],
    env: {
      ...process.env,
      LD_PRELOAD: library,
      TIDEMARK: `dir=${scratch}`,
      TIDEMARK_MEASURE: file,
      TIDEMARK_MEASURE_BY: by,
    },
  });
  if (result.status !== 0) {
    throw new Error(`${program.join(" ")}: ${result.status}`);
  }
  const bytes = readFileSync(file);
  const [ns, ticks, reading, count] = [0, 8, 16, 24].map((at) => Number(bytes.readBigUInt64LE(at)));
  return Array.from({ length: count ?? 0 }, (_, n) => {
    const at = HEAD_BYTES + n * RECORD_BYTES;
    const each = parts.map((_name, part) => bytes.readUInt32LE(at + 12 + 4 * part));
    return {
      what: bytes.readUInt32LE(at),
      faults: bytes.readUInt32LE(at + 4),
      switches: bytes.readUInt32LE(at + 8),
      // A part that was entered includes at least one reading.
      ns: each.map(
        (own) =>
          (Math.max(0, own - (by === "parts" && own > 0 ? (reading ?? 0) : 0)) * (ns ?? 0)) /
          (ticks ?? 1),
      ),
    };
  });
}

const wholeOf = (/** @type {Measured} */ { ns }) => ns.reduce((sum, part) => sum + part, 0);
const inMicroseconds = (/** @type {number} */ ns) => `${(ns / 1000).toFixed(2)}`;

/** @type {{name: string, program: string[], first?: number}[]} */
const programs = [
  {
    name: "ten known frames",
    program: [join(here, "workloads/known_stack.py"), options.samples, "0"],
  },
  {
    name: "the same, 4 MiB read between two samples",
    program: [join(here, "workloads/known_stack.py"), options.samples, String(4 << 20)],
  },
  {
    name: `the first ${FIRST_SAMPLES} of a program`,
    program: [join(here, "workloads/start_phase.py"), "120"],
    first: FIRST_SAMPLES,
  },
];

const kinds = /** @type {const} */ ([
  ["samples", WHAT_SAMPLE],
  ["ends", WHAT_END],
]);
const rows = [];
const partRows = [];
for (const { name, program, first } of programs) {
  const whole = run(program, "whole");
  const byPart = run(program, "parts");
  for (const [kind, what] of kinds) {
    const chosen = (/** @type {Measured[]} */ of) =>
      of.filter((record) => record.what === what).slice(0, first);
    const undisturbed = (/** @type {Measured[]} */ of) =>
      chosen(of).filter(({ switches }) => switches === 0);
    const counted = undisturbed(whole);
    if (counted.length === 0) {
      continue;
    }
    const times = counted.map(wholeOf);
    const faulted = counted.filter(({ faults }) => faults > 0).map(wholeOf);
    const others = counted.filter(({ faults }) => faults === 0).map(wholeOf);
    rows.push([
      `${name}: ${kind}`,
      `${counted.length}`,
      `${chosen(whole).length - counted.length}`,
      ...[median(times), mean(times), quantile(times, 0.99)].map(inMicroseconds),
      mean(counted.map(({ faults }) => faults)).toFixed(3),
      faulted.length > 0 ? inMicroseconds(mean(faulted) - mean(others)) : "-",
    ]);
    const of = undisturbed(byPart);
    partRows.push([
      `${name}: ${kind}`,
      ...parts.slice(1).map((_part, index) => {
        const each = of.map((record) => record.ns[index + 1] ?? 0);
        return `${inMicroseconds(median(each))} / ${inMicroseconds(mean(each))}`;
      }),
    ]);
  }
}
rmSync(scratch, { recursive: true, force: true });

const markdown = `## A sample

\`npm run bench -- sample --samples ${options.samples}\` on ${describeMachine(python)}. In microseconds. The cost of a
sample, and of freeing a sampled allocation, on the agent's slow path, without the program's own allocator. Load by other
programs: ${load}.

${markdownTable(
  [
    "program",
    "number",
    "left out",
    "median",
    "mean",
    "99 %",
    "page faults each",
    "one with a fault takes longer by",
  ],
  rows,
)}

Parts, median / mean. "Lock" is taking and releasing the lock; "checks" looks for newly loaded libraries and replaced
hooks.

${markdownTable(["program", ...parts.slice(1)], partRows)}
`;
console.log(markdown);
if (options.library === undefined) {
  writeResults("sample", markdown);
}
