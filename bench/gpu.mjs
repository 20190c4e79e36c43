/**
 * What a snapshot costs to read, follow and draw, by its size, beside PyTorch's own tool:
 * `npm run bench -- gpu [--mib 1,100,1000] [--page]`
 *
 * The snapshots are a simulated allocator's (test/gpu/), with stacks of 12 to 60 frames. Every figure is
 * of a process of its own; memory is that process's highest RSS.
 */
import { spawnSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, rmSync, statSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
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
    page: { type: "boolean", default: false },
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
console.log(JSON.stringify({ read: read - started, replay: replayed - read, whole: done - started,
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

/** PyTorch's own way to a page: unpickle, and write it into HTML. @param {string} path */
function measureTorch(path) {
  const code = `
import pickle, resource, sys, time, json
started = time.perf_counter()
with open(sys.argv[1], "rb") as file: snapshot = pickle.load(file)
print(json.dumps({"read": (time.perf_counter() - started) * 1000, "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))`;
  const { stdout, status } = spawnSync("python3", ["-c", code, path], { encoding: "utf8" });
  return status === 0 ? JSON.parse(stdout) : null;
}

/** Opens the page; ms until its timeline is drawn. @param {string} path @param {string} page */
async function measurePage(path, page) {
  const command = join(root, "bin/tidemark");
  const { status, stderr } = spawnSync(command, ["gpu", path, "-o", page, "--quiet"], {
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(stderr);
  const { module } = await runnerImport(join(root, "test/browser.ts"));
  const browser = await module.launchBrowser();
  try {
    const tab = await browser.newPage();
    const started = performance.now();
    await tab.goto(pathToFileURL(page).href);
    await tab.waitForSelector(".gpu-timeline canvas", { timeout: 300_000 });
    await tab.evaluate(
      () => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))),
    );
    return { paint: performance.now() - started, bytes: statSync(page).size };
  } finally {
    await browser.close();
  }
}

const seconds = (/** @type {number} */ ms) => `${(ms / 1000).toFixed(2)} s`;
const mebibytes = (/** @type {number} */ bytes) =>
  `${Math.round(bytes / MIB).toLocaleString("en-US")} MiB`;
const rows = [];
try {
  for (const size of options.mib.split(",").map(Number)) {
    const { path, events } = generate(size);
    const own = measure(path);
    const torch = measureTorch(path);
    const page = options.page ? await measurePage(path, join(scratch, `${size}.html`)) : null;
    rows.push([
      mebibytes(statSync(path).size),
      events.toLocaleString("en-US"),
      seconds(own.read),
      seconds(own.replay),
      seconds(own.whole),
      mebibytes(own.rss),
      page === null ? "not run" : `${seconds(page.paint)}, ${mebibytes(page.bytes)}`,
      torch === null ? "not run" : `${seconds(torch.read)}, ${mebibytes(torch.rss)}`,
    ]);
    rmSync(path);
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
        "page: first paint, size",
        "pickle.load alone",
      ],
      rows,
    ),
  );
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
