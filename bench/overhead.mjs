/**
 * What watching a program costs: every workload runs plain and under each tool in turn, A B A C ...,
 * and each run is set against the plain run just before it.
 *
 *   npm run bench -- overhead [--pairs 15] [--peer-pairs 3] [--only WORKLOAD,...] [--tools tidemark,...]
 *
 * The program's own CPU time is the kernel's account of the interpreter process and its children
 * (measure.py, inside the tool); what the tool spends beside it (Tidemark's recorder) is the account
 * of the whole command less that.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { benchPython } from "./environment.mjs";
import { describeMachine } from "./machine.mjs";
import { markdownTable, writeResults } from "./results.mjs";
import { formatRatio, overall, ratioWithInterval } from "./statistics.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const root = join(here, "..");
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
/** Bound by allocation: has a budget of its own (5 %), so it stands apart from the mean. */
const micro = new Set(["small_allocations"]);

/**
 * Each tool: the words before the program. `run` is the interpreter with the workload; `inner` is
 * measure.py around it, for tools that leave the interpreter's command line as it is.
 * @type {Record<string, (c: {python: string, script: string, inner: string[], scratch: string}) => string[]>}
 */
const tools = {
  tidemark: ({ inner, scratch }) => [
    join(root, "bin/tidemark"),
    "run",
    "--quiet",
    "-f",
    "-o",
    join(scratch, "r.tidemark"),
    "--",
    ...inner,
  ],
  "tidemark --native": ({ inner, scratch }) => [
    join(root, "bin/tidemark"),
    "run",
    "--native",
    "--quiet",
    "-f",
    "-o",
    join(scratch, "r.tidemark"),
    "--",
    ...inner,
  ],
  memray: ({ python, script, scratch }) => [
    python,
    "-m",
    "memray",
    "run",
    "-q",
    "-f",
    "-o",
    join(scratch, "m.bin"),
    script,
  ],
  "memray --native": ({ python, script, scratch }) => [
    python,
    "-m",
    "memray",
    "run",
    "-q",
    "--native",
    "-f",
    "-o",
    join(scratch, "m.bin"),
    script,
  ],
  "memray --trace-python-allocators": ({ python, script, scratch }) => [
    python,
    "-m",
    "memray",
    "run",
    "-q",
    "--trace-python-allocators",
    "-f",
    "-o",
    join(scratch, "m.bin"),
    script,
  ],
  "tracemalloc, 1 frame": ({ python, script }) => [python, "-X", "tracemalloc=1", script],
  "tracemalloc, 25 frames": ({ python, script }) => [python, "-X", "tracemalloc=25", script],
  scalene: ({ python, script, scratch }) => [
    python,
    "-m",
    "scalene",
    "run",
    "--outfile",
    join(scratch, "s.json"),
    script,
  ],
  "memory_profiler (mprof)": ({ python, script, scratch }) => [
    python,
    "-m",
    "mprof",
    "run",
    "-o",
    join(scratch, "m.dat"),
    python,
    script,
  ],
  "ddtrace, memory": ({ python, script }) => [
    python,
    "-m",
    "ddtrace.commands.ddtrace_run",
    python,
    script,
  ],
};
const peers = Object.keys(tools).filter((name) => !name.startsWith("tidemark"));

const { values: options } = parseArgs({
  options: {
    pairs: { type: "string", default: "15" },
    "peer-pairs": { type: "string", default: "3" },
    only: { type: "string" },
    tools: { type: "string" },
  },
});
const chosenTools = options.tools
  ? options.tools.split(",")
  : ["tidemark", "tidemark --native", ...peers];
const chosenWorkloads = options.only ? options.only.split(",") : workloads;
for (const name of chosenTools)
  if (!tools[name]) throw new Error(`no tool ${name}: ${Object.keys(tools).join(", ")}`);

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
};

/**
 * @param {string[]} command
 * @param {string} [innerFile] where a measure.py inside wrote
 * @returns {{cpu: number, wall: number, whole: number} | null} null: the command failed
 */
function once(command, innerFile) {
  const outer = join(scratch, "outer.json");
  const result = spawnSync(python, [join(here, "measure.py"), outer, ...command], {
    env: environment,
    cwd: scratch,
    stdio: ["ignore", "ignore", "pipe"],
    encoding: "utf8",
    timeout: 300_000,
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

/** @type {Map<string, Map<string, {cpu: number[], wall: number[], beside: number[]}>>} tool -> workload -> ratios */
const ratios = new Map(chosenTools.map((tool) => [tool, new Map()]));
for (const workload of chosenWorkloads) {
  const script = join(here, "workloads", `${workload}.py`);
  const innerFile = join(scratch, "inner.json");
  const inner = [python, join(here, "measure.py"), innerFile, python, script];
  const context = { python, script, inner, scratch };
  const rounds = Math.max(Number(options.pairs), Number(options["peer-pairs"]));
  once([python, script]); // files into the page cache
  for (let round = 0; round < rounds; round++) {
    for (const tool of chosenTools) {
      const ours = tool.startsWith("tidemark");
      if (round >= Number(ours ? options.pairs : options["peer-pairs"])) continue;
      // Both sides of our pairs run inside measure.py; the peers' whole command is their cost.
      const plain = ours ? once(inner, innerFile) : once([python, script]);
      const watched = once(tools[tool](context), ours ? innerFile : undefined);
      if (!plain || !watched) continue;
      const kept = ratios.get(tool)?.get(workload) ?? { cpu: [], wall: [], beside: [] };
      kept.cpu.push(watched.cpu / plain.cpu);
      kept.wall.push(watched.wall / plain.wall);
      kept.beside.push(ours ? watched.whole - watched.cpu : 0);
      ratios.get(tool)?.set(workload, kept);
    }
  }
  console.error(
    `${workload}: ${chosenTools
      .map((tool) => {
        const kept = ratios.get(tool)?.get(workload);
        return `${tool} ${kept ? formatRatio(ratioWithInterval(kept.cpu)) : "failed"}`;
      })
      .join("; ")}`,
  );
}
rmSync(scratch, { recursive: true, force: true });

const rows = [];
for (const tool of chosenTools) {
  const all = [...(ratios.get(tool) ?? [])];
  const ordinary = all.filter(([workload]) => !micro.has(workload));
  if (ordinary.length === 0) continue;
  const cpu = overall(ordinary.map(([, kept]) => ratioWithInterval(kept.cpu)));
  const wall = overall(ordinary.map(([, kept]) => ratioWithInterval(kept.wall)));
  const worst = all.find(([workload]) => micro.has(workload));
  const beside = ordinary.flatMap(([, kept]) => kept.beside);
  rows.push([
    tool,
    formatRatio(cpu),
    formatRatio(wall),
    worst ? formatRatio(ratioWithInterval(worst[1].cpu)) : "-",
    tool.startsWith("tidemark")
      ? `${(beside.reduce((a, b) => a + b, 0) / beside.length).toFixed(2)} s a run`
      : "in the program",
    `${ordinary.length}`,
  ]);
}
const detail = chosenWorkloads.map((workload) => [
  basename(workload),
  ...chosenTools.map((tool) => {
    const kept = ratios.get(tool)?.get(workload);
    return kept ? formatRatio(ratioWithInterval(kept.cpu)) : "failed";
  }),
]);
const markdown = `## Overhead

\`npm run bench -- overhead --pairs ${options.pairs} --peer-pairs ${options["peer-pairs"]}\` on ${describeMachine(python)}.

CPU and wall time as ratios to the plain run just before, geometric mean over the workloads with 95 % interval.
Ours is the program's own time; the recorder, a process of its own, stands beside it. The peers work inside the program.

${markdownTable(["tool", "CPU", "wall", "CPU, small_allocations", "recorder's CPU", "workloads"], rows)}

CPU ratio by workload:

${markdownTable(["workload", ...chosenTools], detail)}
`;
console.log(markdown);
if (!options.only && !options.tools) writeResults("overhead", markdown);
