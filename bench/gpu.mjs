/**
 * What a snapshot costs to read, follow and draw, by its size, beside PyTorch's own tool:
 * `npm run bench -- gpu [--mib 1,100,1000] [--quick]`
 *
 * The snapshots are a simulated allocator's (test/gpu/), with stacks of 12 to 60 frames. Every figure is
 * of a process of its own; memory is that process's highest RSS. "Its page" needs a network: PyTorch loads
 * its script from a server. `--quick` opens no page.
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
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { runnerImport } from "vite";
import { pickledPieces } from "../test/gpu/pickle_writer.mjs";
import { CachingAllocator } from "../test/gpu/simulator.mjs";
import { streamedSnapshot } from "../test/gpu/snapshot_file.mjs";
import { randomFrom, stackOf } from "../test/gpu/workload.mjs";
import { describeMachine } from "./machine.mjs";
import { markdownTable } from "./results.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const { values: options } = parseArgs({
  options: {
    mib: { type: "string", default: "1,100,1000" },
    quick: { type: "boolean", default: false },
  },
});
const scratch = mkdtempSync(join(tmpdir(), "tidemark-bench-gpu-"));
const MIB = 2 ** 20;

/** Entries of a program that allocates and frees in steps, until `enough` says so.
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
      if (block) allocator.free(block, stacks[at % 400]);
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
const { readSnapshot } = await import(process.argv[1] + "/dist/gpu/read_snapshot.js");
const { replayDevice } = await import(process.argv[1] + "/dist/gpu/replay.js");
const { analyse } = await import(process.argv[1] + "/dist/gpu/analyse.js");
const started = performance.now();
const snapshot = await readSnapshot(process.argv[2]);
const read = performance.now();
const replay = replayDevice(snapshot, 0);
const replayed = performance.now();
const { devices } = analyse(snapshot, "x");
const done = performance.now();
console.log(JSON.stringify({ read: read - started, replay: replayed - read, whole: done - started, cpu: (process.cpuUsage().user + process.cpuUsage().system) / 1000,
  disagreements: replay.disagreementCount, devices: devices.length, rss: process.resourceUsage().maxRSS * 1024 }));
`;

/** @param {string} path */
function measure(path) {
  const { stdout, stderr, status } = spawnSync(
    process.execPath,
    ["--input-type=module", "-e", READ, root, path],
    { encoding: "utf8" },
  );
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}

/** The tool that PyTorch ships, of the environment of the tests or the benchmarks; null where neither is.
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
      if (existsSync(path)) return path;
    }
  }
  return null;
}

/** The tool may have this share of what is free: the machine has other work. */
const SHARE_OF_FREE = 0.4;
const TORCH_MS = 15 * 60_000;

/** PyTorch's own way to a page: `_memory_viz.py trace_plot` unpickles and writes it into HTML.
 * @param {string} path @param {string} page @returns {{words: string, page: string | null}} */
function measureTorch(path, page) {
  const tool = findMemoryViz();
  if (tool === null) return { words: "not installed", page: null };
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
  if (status !== 0) return { words: `ended with ${status ?? "a signal"}`, page: null };
  const { ms, rss, outcome } = JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
  return outcome === "done"
    ? { words: `${seconds(ms)}, ${mebibytes(rss)}`, page }
    : {
        words: `${outcome} at ${mebibytes(most)} of addresses, ${seconds(ms)}`,
        page: null,
      };
}

const PAGE_MS = 5 * 60_000;
const ZOOMS = 90;

/** @param {(tab: import("playwright-core").Page) => Promise<string>} look */
async function inBrowser(look) {
  const { module } = await runnerImport(join(root, "test/browser.ts"));
  const browser = await module.launchBrowser();
  try {
    return await look(await browser.newPage({ viewport: { width: 1400, height: 1000 } }));
  } finally {
    await browser.close();
  }
}

/** What Chromium's own processes hold: the sum of their PSS. @param {number} pid of this process */
function browserBytes(pid) {
  const children = new Map();
  for (const name of readdirSync("/proc").filter((entry) => /^\d+$/.test(entry))) {
    try {
      const parent = Number(
        /^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${name}/status`, "utf8"))?.[1],
      );
      children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
    } catch {
      // It ended meanwhile.
    }
  }
  const below = (/** @type {number} */ one) => [one, ...(children.get(one) ?? []).flatMap(below)];
  return below(pid)
    .slice(1)
    .reduce((sum, child) => {
      try {
        const rollup = readFileSync(`/proc/${child}/smaps_rollup`, "utf8");
        return sum + Number(/^Pss:\s+(\d+)/m.exec(rollup)?.[1] ?? 0) * 1024;
      } catch {
        return sum;
      }
    }, 0);
}

/** Writes our page and opens it: until its timeline is drawn, what that holds, and how long a frame takes
 * while the wheel zooms in and out. @param {string} path @param {string} page */
async function measurePage(path, page) {
  const writing = performance.now();
  const { status, stderr } = spawnSync(
    process.execPath,
    [join(root, "dist/program/main.js"), "gpu", path, "-o", page, "--quiet"],
    { encoding: "utf8" },
  );
  if (status !== 0) throw new Error(stderr);
  const written = performance.now() - writing;
  return inBrowser(async (tab) => {
    const started = performance.now();
    await tab.goto(pathToFileURL(page).href);
    await tab.waitForSelector(".gpu-timeline canvas", { timeout: PAGE_MS });
    await tab.evaluate(
      () => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))),
    );
    const painted = performance.now() - started;
    const frames = await tab.evaluate(async (zooms) => {
      const canvas = /** @type {HTMLCanvasElement} */ (
        document.querySelector(".gpu-timeline canvas")
      );
      const box = canvas.getBoundingClientRect();
      /** @type {number[]} */
      const times = [];
      let last = performance.now();
      for (let turn = 0; turn < zooms; turn++) {
        canvas.dispatchEvent(
          new WheelEvent("wheel", {
            deltaY: turn % 30 < 15 ? -100 : 100,
            clientX: box.left + 0.6 * box.width,
            cancelable: true,
          }),
        );
        await new Promise((frame) => requestAnimationFrame(frame));
        times.push(performance.now() - last);
        last = performance.now();
      }
      return times.sort((a, b) => a - b);
    }, ZOOMS);
    const share = (/** @type {number} */ part) =>
      `${(frames[Math.floor(frames.length * part)] ?? 0).toFixed(0)}`;
    return [
      `written in ${seconds(written)}, ${mebibytes(statSync(page).size)}`,
      seconds(painted),
      mebibytes(browserBytes(process.pid)),
      `${share(0.5)} / ${share(0.95)} ms`,
    ].join("\t");
  });
}

/** PyTorch's page: until it has drawn anything. @param {string | null} page */
function measureTorchPage(page) {
  if (page === null) return Promise.resolve("no page");
  return inBrowser(async (tab) => {
    /** @type {string[]} */
    const failed = [];
    tab.on("requestfailed", (request) => failed.push(request.url()));
    let ended = "";
    tab.on("crash", () => {
      ended = "the tab crashed";
    });
    const started = performance.now();
    try {
      await tab.goto(pathToFileURL(page).href, { timeout: PAGE_MS });
      for (;;) {
        if (failed.some((url) => /MemoryViz/.test(url)))
          return "not run: its script is on a server";
        if (ended !== "" || performance.now() - started > PAGE_MS) break;
        if ((await tab.locator("svg rect, svg path, svg polygon").count()) > 0) {
          return `${seconds(performance.now() - started)}, ${mebibytes(browserBytes(process.pid))}`;
        }
        await tab.waitForTimeout(100);
      }
    } catch (error) {
      ended ||= /** @type {Error} */ (error).message.split("\n")[0] ?? "failed";
    }
    return ended || `nothing drawn in ${seconds(PAGE_MS)}`;
  });
}

const seconds = (/** @type {number} */ ms) => `${(ms / 1000).toFixed(2)} s`;
const mebibytes = (/** @type {number} */ bytes) =>
  `${Math.round(bytes / MIB).toLocaleString("en-US")} MiB`;
const rows = [];
try {
  for (const size of options.mib.split(",").map(Number)) {
    const { path, events } = generate(size);
    const load = loadavg()[0] ?? 0;
    const own = measure(path);
    const page = options.quick
      ? ["not run", "", "", ""]
      : (await measurePage(path, join(scratch, `${size}.html`))).split("\t");
    const torch = measureTorch(path, join(scratch, `${size}-torch.html`));
    const torchPage = options.quick ? "not run" : await measureTorchPage(torch.page);
    rows.push([
      mebibytes(statSync(path).size),
      events.toLocaleString("en-US"),
      seconds(own.read),
      seconds(own.replay),
      `${seconds(own.whole)} (${seconds(own.cpu)} CPU)`,
      mebibytes(own.rss),
      ...page,
      torch.words,
      torchPage,
      load.toFixed(1),
    ]);
    for (const name of readdirSync(scratch)) rmSync(join(scratch, name));
    console.log(rows.at(-1)?.join(" | "));
  }
  console.log(`\n${describeMachine("python3")}\n`);
  console.log(
    markdownTable(
      [
        "file",
        "events",
        "read",
        "replay",
        "read to screen",
        "highest RSS",
        "page",
        "first paint",
        "browser's memory",
        "frame while zooming, median / 95 %",
        "PyTorch's trace_plot: time, highest RSS",
        "its page: drawn, browser's memory",
        "load",
      ],
      rows,
    ),
  );
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
