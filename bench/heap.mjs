/**
 * Census and graph of heaps of known size: `npm run bench -- heap [--gib 0.1,1]`
 *
 * The program holds small records (a dict of a str, an int and a float each) and waits. Tidemark looks from
 * outside; objgraph, pympler and guppy3, where the benchmarks' environment has them, count from within.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { countObjects, countObjectsExactly, takeGraph } from "../dist/cpython/heap/index.js";
import { openProcessMemory } from "../dist/linux/index.js";
import { findInterpreters } from "../scripts/environment/interpreters.mjs";
import { describeMachine } from "./machine.mjs";
import { markdownTable, writeResults } from "./results.mjs";
import { median } from "./statistics.mjs";

const { values: options } = parseArgs({
  options: { gib: { type: "string", default: "0.1,1" }, python: { type: "string" } },
});
const python = options.python ?? (await findInterpreters()).at(-1)?.path ?? "python3";

/** Bytes of one record, about: dict 184, str 60, int 32, float 24, its place in the list 8. */
const recordBytes = 310;
const program = `
import gc, json, sys, time
gc.disable()
KEPT = [{"name": f"record {i}", "id": i + 1000, "score": float(i)} for i in range(int(sys.argv[1]))]
gc.enable()
print("{}", flush=True)
for line in sys.stdin:
    started = time.perf_counter()
    try:
        exec(line)
        answer = {"ms": (time.perf_counter() - started) * 1000}
    except ImportError:
        answer = {}
    print(json.dumps(answer), flush=True)
`;
const peers = {
  objgraph: "import objgraph; objgraph.typestats()",
  pympler: "from pympler import muppy, summary; summary.summarize(muppy.get_objects())",
  guppy3: "from guppy import hpy; hpy().heap()",
};

/** Runs `work` three times; ms of the median run. @param {() => unknown} work */
async function timed(work) {
  const costs = [];
  for (let run = 0; run < 3; run++) {
    const started = performance.now();
    await work();
    costs.push(performance.now() - started);
  }
  return median(costs);
}

const rows = [];
const peerRows = [];
for (const gib of (options.gib ?? "").split(",").map(Number)) {
  const child = spawn(python, ["-c", program, String(Math.round((gib * 2 ** 30) / recordBytes))], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  await lines.next();
  const memory = openProcessMemory(Number(child.pid));
  const { census } = countObjects(memory);
  const objects = census.objects.reduce((sum, count) => sum + count, 0);
  const { readBytes } = census.figures;
  const censusMs = await timed(() => countObjects(memory));
  let exactPause = 0;
  const exactMs = await timed(async () => {
    exactPause = (await countObjectsExactly(memory, { maxPauseMs: 60_000 })).pauseMs;
  });
  let graphPause = 0;
  let edges = 0;
  const graphMs = await timed(async () => {
    const { objects: found, pauseMs } = await takeGraph(memory, { maxPauseMs: 60_000 }, objects);
    graphPause = pauseMs;
    edges = found.graph.edgeTo.length;
  });
  const whole = process.memoryUsage();
  rows.push([
    `${gib} GiB`,
    objects.toLocaleString("en"),
    edges.toLocaleString("en"),
    `${Math.round(censusMs)} ms`,
    `${(objects / censusMs / 1000).toFixed(1)} M/s`,
    `${(readBytes / censusMs / 1e6).toFixed(2)} GB/s`,
    `${Math.round(exactMs)} ms`,
    `${Math.round(exactPause)} ms`,
    `${(graphMs / 1000).toFixed(2)} s`,
    `${(objects / graphMs / 1000).toFixed(1)} M/s`,
    `${Math.round(graphPause)} ms`,
    `${Math.round(process.resourceUsage().maxRSS / 1024)} MiB`,
  ]);
  console.error(rows.at(-1)?.join("  "), Math.round(whole.rss / 2 ** 20));
  memory.close();
  for (const [peer, statement] of Object.entries(peers)) {
    child.stdin.write(`${statement}\n`);
    const { ms } = JSON.parse((await lines.next()).value);
    if (ms !== undefined) peerRows.push([`${gib} GiB`, peer, `${(ms / 1000).toFixed(2)} s`]);
    console.error(peer, ms === undefined ? "is not there" : `${Math.round(ms)} ms`);
  }
  child.kill("SIGKILL");
  await once(child, "exit");
}

const beside =
  peerRows.length === 0
    ? ""
    : `\nIn the process itself, which stands still meanwhile (types alone, no retained sizes):\n\n${markdownTable(["heap", "tool", "census"], peerRows)}\n`;
const markdown = `## Census and graph

\`npm run bench -- heap\` on ${describeMachine(python)}. Medians of three; the last column is the highest of Tidemark's own memory so far.

${markdownTable(
  [
    "heap",
    "objects",
    "references",
    "census",
    "objects",
    "read",
    "exact census",
    "its pause",
    "graph, retained sizes",
    "objects",
    "its pause",
    "own memory",
  ],
  rows,
)}
${beside}`;
console.log(markdown);
writeResults("heap", markdown);
