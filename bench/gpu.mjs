/**
 * The cost of reading, following and drawing a snapshot, by its size, compared with PyTorch's own tool:
 * `npm run bench -- gpu [--mib 1,100,300,1024] [--pytorch-page MemoryViz.js] [--quick]`
 *
 * The snapshots come from a simulated allocator (test/gpu/), with stacks of 12 to 60 frames. Every figure is
 * measured in a separate process; memory is that process's peak RSS. PyTorch's page loads its script from a server,
 * so it is opened only if `--pytorch-page` names a copy: torch/utils/viz/MemoryViz.js of PyTorch's
 * repository. `--quick` opens no page and writes nothing to docs/benchmarks.md.
 */
import { spawnSync } from "node:child_process";
import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { homedir, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { pickledPieces } from "../test/gpu/pickle_writer.mjs";
import { CachingAllocator } from "../test/gpu/simulator.mjs";
import { streamedSnapshot } from "../test/gpu/snapshot_file.mjs";
import { randomFrom, stackOf } from "../test/gpu/workload.mjs";
import { measurePage, measureTorchPage, mebibytes, seconds } from "./gpu_pages.mjs";
import { describeMachine } from "./machine.mjs";
import { markdownTable, writeResults } from "./results.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const { values: options } = parseArgs({
  options: {
    mib: { type: "string", default: "1,100,300,1024" },
    "pytorch-page": { type: "string" },
    quick: { type: "boolean", default: false },
  },
});
const scratch = mkdtempSync(join(tmpdir(), "tidemark-bench-gpu-"));
const MIB = 2 ** 20;

/** Entries of a program that allocates and frees in steps, until `enough` returns true.
 * @param {(allocator: CachingAllocator) => void} tell @param {() => boolean} enough */
function* entriesOf(tell, enough) {
  /** @type {import("../test/gpu/simulator.mjs").Entry[]} */
  const waiting = [];
  const allocator = new CachingAllocator({ onEntry: (entry) => waiting.push(entry) });
  tell(allocator);
  const random = randomFrom(1);
  const stacks = Array.from({ length: 400 }, (_, site) =>
    stackOf(
      ...Array.from(
        { length: 12 + (site % 49) },
        (_, depth) => `f${(site * 7 + depth) % 900} /srv/code${depth % 30}.py:${depth + 1}`,
      ),
    ),
  );
  /** @type {import("../test/gpu/simulator.mjs").Block[]} */
  const live = [];
  while (!enough()) {
    if (live.length < 300 && (random() < 0.55 || live.length < 20)) {
      const frames = stacks[Math.floor(random() * stacks.length)];
      live.push(allocator.allocate(Math.ceil(random() ** 3 * 8 * MIB), { frames }));
    } else {
      const at = Math.floor(random() * live.length);
      const [block] = live.splice(at, 1);
      if (block) {
        allocator.free(block, stacks[at % 400]);
      }
    }
    yield* waiting.splice(0);
  }
}

/** @param {number} mebibytes @returns {{path: string, events: number}} */
function generate(mebibytes) {
  const path = join(scratch, `${mebibytes}.pickle`);
  const file = openSync(path, "w");
  let written = 0;
  /** @type {CachingAllocator | undefined} */
  let allocator;
  const entries = entriesOf(
    (one) => {
      allocator = one;
    },
    () => written >= mebibytes * MIB,
  );
  const snapshot = streamedSnapshot(entries, () => /** @type {CachingAllocator} */ (allocator));
  for (const piece of pickledPieces(snapshot)) {
    written += writeSync(file, piece);
  }
  closeSync(file);
  return { path, events: allocator?.events ?? 0 };
}

const READ = `
const { readSnapshot } = await import(process.argv[1] + "/dist/gpu/snapshot/read_snapshot.js");
const { replayDevice } = await import(process.argv[1] + "/dist/gpu/replay/replay.js");
const { analyseDevice } = await import(process.argv[1] + "/dist/gpu/analysis/analyse.js");
const started = performance.now();
const snapshot = await readSnapshot(process.argv[2]);
const read = performance.now();
const replay = replayDevice(snapshot, 0);
const replayed = performance.now();
analyseDevice(snapshot, replay);
const done = performance.now();
console.log(JSON.stringify({ read: read - started, replay: replayed - read, whole: done - started, cpu: (process.cpuUsage().user + process.cpuUsage().system) / 1000,
  disagreements: replay.disagreementCount, rss: process.resourceUsage().maxRSS * 1024 }));
`;

/** What every tool in Python needs at least: the time to unpickle the snapshot. */
const PICKLE = `
import json, pickle, resource, sys, time
started = time.perf_counter()
with open(sys.argv[1], "rb") as file:
    snapshot = pickle.load(file)
print(json.dumps({"ms": (time.perf_counter() - started) * 1000, "cpu": time.process_time() * 1000,
    "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}), flush=True)
import os
os._exit(0)  # freeing the snapshot takes as long again`;

/** CPython's unpickler, which is written in C. @param {string} path */
function measurePickle(path) {
  const { stdout, stderr, status } = spawnSync("python3", ["-c", PICKLE, path], {
    encoding: "utf8",
  });
  if (status !== 0) {
    throw new Error(stderr);
  }
  return JSON.parse(stdout);
}

/** @param {string} path */
function measure(path) {
  const { stdout, stderr, status } = spawnSync(
    process.execPath,
    ["--input-type=module", "-e", READ, root, path],
    { encoding: "utf8" },
  );
  if (status !== 0) {
    throw new Error(stderr);
  }
  return JSON.parse(stdout);
}

/** The tool that PyTorch ships, from the test or benchmark environment; null if neither exists.
 * @returns {string | null} */
function findMemoryViz() {
  const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "tidemark");
  const places = existsSync(cache)
    ? readdirSync(cache).filter((name) => /^(torch|bench)-/.test(name))
    : [];
  for (const place of places) {
    const lib = join(cache, place, "lib");
    for (const version of existsSync(lib) ? readdirSync(lib) : []) {
      const path = join(lib, version, "site-packages/torch/cuda/_memory_viz.py");
      if (existsSync(path)) {
        return path;
      }
    }
  }
  return null;
}

/** The share of free memory that the tool may use: the machine has other work. */
const SHARE_OF_FREE = 0.4;
const TORCH_MS = 15 * 60_000;

/** Creates a page with PyTorch's own tool: `_memory_viz.py trace_plot` unpickles the snapshot and writes it into HTML.
 * @param {string} path @param {string} page @returns {{words: string, page: string | null}} */
function measureTorch(path, page) {
  const tool = findMemoryViz();
  if (tool === null) {
    return { words: "not installed", page: null };
  }
  const free = /^MemAvailable:\s+(\d+)/m.exec(readFileSync("/proc/meminfo", "utf8"))?.[1];
  const most = Math.floor(SHARE_OF_FREE * 1024 * Number(free));
  const code = `
import json, resource, runpy, sys, time
resource.setrlimit(resource.RLIMIT_AS, (${most}, ${most}))
tool, path, page = sys.argv[1:4]
sys.argv = [tool, "trace_plot", path, "-o", page]
started = time.perf_counter()
outcome = "done"
try:
    runpy.run_path(tool, run_name="__main__")
except MemoryError:
    outcome = "out of memory"
print("\\n" + json.dumps({"ms": (time.perf_counter() - started) * 1000, "outcome": outcome,
    "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))`;
  const { stdout, status } = spawnSync("python3", ["-c", code, tool, path, page], {
    encoding: "utf8",
    timeout: TORCH_MS,
    maxBuffer: 2 ** 26,
  });
  if (status !== 0) {
    return { words: `ended with ${status ?? "a signal"}`, page: null };
  }
  const { ms, rss, outcome } = JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
  return outcome === "done"
    ? { words: `${seconds(ms)}, ${mebibytes(rss)}`, page }
    : {
        words: `${outcome} at ${mebibytes(most)} of addresses, ${seconds(ms)}`,
        page: null,
      };
}

/** @type {string[][]} */
const reading = [];
/** @type {string[][]} */
const pages = [];
/** @type {string[][]} */
const torchPages = [];
try {
  for (const size of options.mib.split(",").map(Number)) {
    const { path, events } = generate(size);
    const load = loadavg()[0] ?? 0;
    const own = measure(path);
    const pickle = measurePickle(path);
    const file = mebibytes(statSync(path).size);
    const torch = measureTorch(path, join(scratch, `${size}-torch.html`));
    reading.push([
      file,
      events.toLocaleString("en-US"),
      seconds(own.read),
      seconds(own.replay),
      `${seconds(own.whole)} (${seconds(own.cpu)} CPU)`,
      mebibytes(own.rss),
      `${seconds(pickle.ms)} (${seconds(pickle.cpu)} CPU), ${mebibytes(pickle.rss)}`,
      torch.words,
      load.toFixed(1),
    ]);
    console.log(reading.at(-1)?.join(" | "));
    if (!options.quick) {
      const page = await measurePage(path, join(scratch, `${size}.html`));
      pages.push([file, ...page]);
      console.log(pages.at(-1)?.join(" | "));
    }
    if (options["pytorch-page"] !== undefined) {
      const torchPage = await measureTorchPage(torch.page, options["pytorch-page"]);
      const written = torch.page === null ? "not written" : mebibytes(statSync(torch.page).size);
      torchPages.push([file, written, ...torchPage]);
      console.log(torchPages.at(-1)?.join(" | "));
    }
    for (const name of readdirSync(scratch)) {
      rmSync(join(scratch, name));
    }
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
const pageColumns = ["file", "its size", "drawn", "browser's memory", "frame while zooming"];
const markdown = `## Snapshots of a GPU's allocator

\`npm run bench -- gpu\` on ${describeMachine("python3")}. The snapshots are from a simulated
allocator. "Load" is the load by other programs at the start, on the processors named above.

${markdownTable(
  [
    "file",
    "events",
    "read",
    "replay",
    "read to screen",
    "highest RSS",
    "CPython's pickle.load: time, highest RSS",
    "PyTorch's trace_plot: time, highest RSS",
    "load",
  ],
  reading,
)}

Each page is opened in a new Chromium. "Drawn" is the time from opening to the first frame with the timeline. Memory is the
highest PSS of all the browser's processes until then. Frame times are measured while the wheel zooms in and out 90 times:
median / 95 %.

${markdownTable(pageColumns, pages)}
`;
const torchMarkdown = `### PyTorch's page of the same snapshots

\`npm run bench -- gpu --pytorch-page MemoryViz.js\` on ${describeMachine("python3")}. \`MemoryViz.js\` is
torch/utils/viz/MemoryViz.js of PyTorch's repository. PyTorch's page loads it from a server; here the benchmark serves it,
and d3 from the npm package (with d3-scale 2; the page names 1). The page draws the largest 15,000 allocations and one
polygon for the others. The benchmark gives up if nothing is drawn within five minutes.

${markdownTable(pageColumns, torchPages)}
`;
console.log(markdown);
if (!options.quick) {
  writeResults("gpu", markdown);
}
if (torchPages.length > 0) {
  console.log(torchMarkdown);
  writeResults("gpu-pytorch-page", torchMarkdown);
}
