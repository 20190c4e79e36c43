/**
 * Splits the overhead by cause: each workload runs plain and in several modes, each of which adds one thing.
 * `npm run bench -- breakdown [--rounds 5] [--repeat 1,5] [--only WORKLOAD,...]`
 *
 *   idle      the library is preloaded and does nothing
 *   hooks     armed, with a period so large that nothing is sampled
 *   samples   armed as usual, into a pool of its own
 *   recorder  as `tidemark run` starts it: the guard's shared memory, and a recorder that reads it
 *
 * Figures are the program's own CPU time as a ratio to the plain run of the same round, instructions where the
 * CPU's counters can be read (perf stat), and the share of CPU time within the agent's code where perf can interrupt the
 * program (one run more in each way, perf record). That share varies much less than CPU time does, but lacks what the agent
 * costs the program's own code: caches, and sampled blocks that come from malloc. `--repeat`: how often a workload runs in one
 * process.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { SetupError } from "../scripts/command.mjs";
import { findInterpreters } from "../scripts/environment/interpreters.mjs";
import { describeMachine } from "./machine.mjs";
import { markdownTable, writeResults } from "./results.mjs";
import { formatRatio, mean, median, overall, ratioWithInterval } from "./statistics.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
/** Workloads that need only the standard library. */
const workloads = [
  "json_service",
  "log_analysis",
  "object_graph",
  "richards",
  "word_index",
  "sqlite_orders",
  "async_pipeline",
  "small_allocations",
];
const { values: options } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    repeat: { type: "string", default: "1,5" },
    only: { type: "string" },
  },
});
const chosen = options.only?.split(",") ?? workloads;
for (const name of chosen) {
  if (!workloads.includes(name)) {
    throw new SetupError(`no workload ${name}: it is one of ${workloads.join(", ")}`);
  }
}
const interpreters = await findInterpreters();
const python = interpreters.filter(({ freeThreaded }) => !freeThreaded).at(-1)?.path ?? "python3";
const scratch = mkdtempSync(join(tmpdir(), "tidemark-bench-"));
const library = join(here, "../dist/native/libtidemark.so");
const ways = ["plain", "idle", "hooks", "samples", "recorder"];
/** So large that even one sample in a run is unlikely. */
const NEVER = "1024G";
const hasCounters =
  spawnSync("perf", ["stat", "-x", ",", "-e", "instructions:u", "true"], {
    encoding: "utf8",
  }).stderr?.startsWith("<not") === false;

/** Samples a second of `perf record`, by a timer of the kernel's: it needs no counters. */
const PERF_RATE = "4000";
const PERF_RECORD = ["record", "-q", "-F", PERF_RATE, "-e", "cpu-clock", "-o"];
const hasProfiler =
  spawnSync("perf", [...PERF_RECORD, join(scratch, "try"), "true"], { stdio: "ignore" }).status ===
  0;

/**
 * Share of a program's CPU time within the agent's library, its children included.
 * @param {string} way @param {string[]} program @returns {number}
 */
function shareWithin(way, program) {
  const file = join(scratch, "perf.data");
  run(way, ["perf", ...PERF_RECORD, file, ...inEnvironment(way), ...program]);
  const report = ["report", "-i", file, "--no-children", "--sort", "dso", "--stdio"];
  const { stdout } = spawnSync("perf", report, { encoding: "utf8" });
  const shares = [...stdout.matchAll(/^\s*([\d.]+)%\s+(\S+)/gm)];
  if (shares.length === 0) {
    throw new Error(`perf ${report.join(" ")} lists no library`);
  }
  return shares.reduce(
    (sum, [, percent, file]) => sum + (file === "libtidemark.so" ? Number(percent) / 100 : 0),
    0,
  );
}

/** @param {string} way @returns {Record<string, string>} */
function environmentOf(way) {
  /** @type {Record<string, string>} */
  const tidemark = { hooks: `dir=${scratch},period=${NEVER}`, samples: `dir=${scratch}` };
  return way === "plain" || way === "recorder"
    ? {}
    : { LD_PRELOAD: library, ...(tidemark[way] ? { TIDEMARK: tidemark[way] } : {}) };
}

/** @param {string} way @returns {string[]} words before the program */
function inEnvironment(way) {
  return ["env", ...Object.entries(environmentOf(way)).map(([name, value]) => `${name}=${value}`)];
}

/** Runs a command, under the recorder in that way. @param {string} way @param {string[]} command */
function run(way, command) {
  const recorder = [join(here, "../bin/tidemark"), "run", "--quiet", "-f"];
  const whole =
    way === "recorder"
      ? [...recorder, "-o", join(scratch, "r.tidemark"), "--", ...command]
      : command;
  const result = spawnSync(whole[0] ?? "", whole.slice(1), {
    cwd: scratch,
    stdio: ["ignore", "ignore", "inherit"],
  });
  if (result.status !== 0) {
    throw new Error(`${whole.join(" ")}: ${result.status}`);
  }
}

/** @param {string} way @param {string[]} program @returns {{cpu: number, wall: number, instructions: number}} */
function once(way, program) {
  const file = join(scratch, "measured.json");
  const counts = join(scratch, "counts");
  run(way, [
    ...[python, join(here, "measure.py"), file],
    ...(hasCounters ? ["perf", "stat", "-x", ",", "-e", "instructions:u", "-o", counts] : []),
    ...[...inEnvironment(way), ...program],
  ]);
  const { cpuSeconds, wallSeconds } = JSON.parse(readFileSync(file, "utf8"));
  const instructions = hasCounters
    ? Number(/^(\d+),/m.exec(readFileSync(counts, "utf8"))?.[1] ?? Number.NaN)
    : Number.NaN;
  return { cpu: cpuSeconds, wall: wallSeconds, instructions };
}

/** @param {number} share */
function percent(share) {
  return `${(share * 100).toFixed(2)} %`;
}

const load = loadavg()
  .map((value) => value.toFixed(1))
  .join(", ");
const rows = [];
for (const repeat of options.repeat.split(",")) {
  /** @type {Map<string, ReturnType<typeof ratioWithInterval>[]>} by way, one entry per workload */
  const cpu = new Map(ways.map((way) => [way, []]));
  /** @type {Map<string, ReturnType<typeof ratioWithInterval>[]>} */
  const instructions = new Map(ways.map((way) => [way, []]));
  /** @type {Map<string, number[]>} by way, one entry per workload */
  const shares = new Map(ways.map((way) => [way, []]));
  const seconds = [];
  for (const name of chosen) {
    const program = [python, join(here, "repeat.py"), repeat, join(here, `workloads/${name}.py`)];
    const rounds = [];
    for (let round = 0; round < Number(options.rounds); round++) {
      rounds.push(new Map(ways.map((way) => [way, once(way, program)])));
    }
    seconds.push(...rounds.map((round) => round.get("plain")?.cpu ?? 0));
    for (const way of ways.slice(1)) {
      const ratios = (/** @type {"cpu" | "instructions"} */ figure) =>
        ratioWithInterval(
          rounds.map(
            (round) => (round.get(way)?.[figure] ?? 0) / (round.get("plain")?.[figure] ?? 1),
          ),
        );
      cpu.get(way)?.push(ratios("cpu"));
      instructions.get(way)?.push(ratios("instructions"));
      if (hasProfiler) {
        shares.get(way)?.push(shareWithin(way, program));
      }
    }
    console.error(
      `${name} x ${repeat}: ${ways
        .slice(1)
        .map((way) => {
          const ratio = formatRatio(/** @type {any} */ (cpu.get(way)?.at(-1)));
          const share = shares.get(way)?.at(-1);
          return share === undefined ? `${way} ${ratio}` : `${way} ${ratio} ${percent(share)}`;
        })
        .join(", ")}`,
    );
  }
  for (const way of ways.slice(1)) {
    const each = cpu.get(way) ?? [];
    rows.push([
      way,
      `${median(seconds).toFixed(1)} s`,
      formatRatio(overall(each)),
      Math.max(...each.map(({ ratio }) => ratio)).toFixed(3),
      hasCounters ? formatRatio(overall(instructions.get(way) ?? [])) : "-",
      hasProfiler ? percent(mean(shares.get(way) ?? [])) : "-",
      hasProfiler ? percent(Math.max(...(shares.get(way) ?? []))) : "-",
    ]);
  }
}
rmSync(scratch, { recursive: true, force: true });

const markdown = `## Overhead, part by part

\`npm run bench -- breakdown --rounds ${options.rounds} --repeat ${options.repeat}\` on ${describeMachine(python)}. Load of others: ${load}.
The program's own CPU time as a ratio to the plain run of the same round, geometric mean over ${chosen.length} workloads with its 95 %
interval. Idle: preloaded, inert. Hooks: armed, nothing sampled. Samples: as usual, without a recorder; the program then makes and
clears the 16 MiB of shared memory, which is the guard's work otherwise. Recorder: \`tidemark run\`. Instructions: "-" where the
processor's counters cannot be read. Within the agent: the share of CPU time in the agent's own code, by perf.

${markdownTable(
  [
    "way",
    "CPU of a plain run, median",
    "CPU",
    "the worst workload",
    "instructions",
    "within the agent",
    "within it, the worst workload",
  ],
  rows,
)}
`;
console.log(markdown);
if (!options.only) {
  writeResults("breakdown", markdown);
}
