/** Our page of a snapshot and PyTorch's, each opened in its own Chromium: the time until it is drawn, the
 * browser's peak memory, and the frame times while the wheel zooms. */
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build, runnerImport } from "vite";

/** @typedef {import("playwright-core").Page} Tab */

const root = fileURLToPath(new URL("..", import.meta.url));
const PAGE_MS = 5 * 60_000;
const ZOOMS = 90;
const LOOK_MS = 500;
const MIB = 2 ** 20;

export const seconds = (/** @type {number} */ ms) => `${(ms / 1000).toFixed(2)} s`;
export const mebibytes = (/** @type {number} */ bytes) =>
  `${Math.round(bytes / MIB).toLocaleString("en-US")} MiB`;

/** @template Answer @param {(tab: Tab, highest: () => number) => Promise<Answer>} look `highest`: the browser's
 *   peak memory so far, in bytes @returns {Promise<Answer>} */
async function inBrowser(snapshot) {
  const { module } = await runnerImport(join(root, "test/browser.ts"));
  const browser = await module.launchBrowser();
  let most = 0;
  const highest = () => {
    most = Math.max(most, browserBytes(process.pid));
    return most;
  };
  const watch = setInterval(highest, LOOK_MS);
  try {
    return await snapshot(
      await browser.newPage({ viewport: { width: 1400, height: 1000 } }),
      highest,
    );
  } finally {
    clearInterval(watch);
    await browser.close();
  }
}

/** The memory of Chromium's processes: the sum of their PSS. @param {number} pid of this process */
function browserBytes(pid) {
  const children = new Map();
  for (const name of readdirSync("/proc").filter((entry) => /^\d+$/.test(entry))) {
    try {
      const parent = Number(
        /^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${name}/status`, "utf8"))?.[1],
      );
      children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
    } catch {
      // The process has ended.
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

/** A change to the document is on the screen after two frames. @param {Tab} tab */
const painted = (tab) =>
  tab.evaluate(
    () => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))),
  );

/** Median and 95th percentile of the frame times while the wheel zooms in and out over an element.
 * @param {Tab} tab @param {string} selector */
async function zoomFrames(tab, selector) {
  const frames = await tab.evaluate(
    async ([over, zooms]) => {
      const drawn = /** @type {Element} */ (document.querySelector(String(over)));
      const box = drawn.getBoundingClientRect();
      /** @type {number[]} */
      const times = [];
      let last = performance.now();
      for (let turn = 0; turn < Number(zooms); turn++) {
        drawn.dispatchEvent(
          new WheelEvent("wheel", {
            deltaY: turn % 30 < 15 ? -100 : 100,
            clientX: box.left + 0.6 * box.width,
            clientY: box.top + 0.5 * box.height,
            cancelable: true,
            bubbles: true,
          }),
        );
        await new Promise((frame) => requestAnimationFrame(frame));
        times.push(performance.now() - last);
        last = performance.now();
      }
      return times.sort((a, b) => a - b);
    },
    [selector, ZOOMS],
  );
  const share = (/** @type {number} */ part) =>
    `${(frames[Math.floor(frames.length * part)] ?? 0).toFixed(0)}`;
  return `${share(0.5)} / ${share(0.95)} ms`;
}

/** Writes our page and opens it.
 * @param {string} path @param {string} page
 * @returns {Promise<string[]>} how it was written; first paint; the browser's memory; frames */
export async function measurePage(path, page) {
  const writing = performance.now();
  const { status, stderr } = spawnSync(
    process.execPath,
    [join(root, "dist/program/main.js"), "gpu", path, "-o", page, "--quiet"],
    { encoding: "utf8" },
  );
  if (status !== 0) {
    throw new Error(stderr);
  }
  const written = performance.now() - writing;
  return inBrowser(async (tab, highest) => {
    const started = performance.now();
    await tab.goto(pathToFileURL(page).href);
    await tab.waitForSelector(".gpu-timeline canvas", { timeout: PAGE_MS });
    await painted(tab);
    const first = performance.now() - started;
    const held = highest();
    return [
      `${mebibytes(statSync(page).size)}, written in ${seconds(written)}`,
      seconds(first),
      mebibytes(held),
      await zoomFrames(tab, ".gpu-timeline canvas"),
    ];
  });
}

/** All of d3@5 as one module: the page's other imports are parts of d3, and zoom and brush pass their event
 * through a variable of d3, so two copies would not work. */
async function bundledD3() {
  const built = await build({
    configFile: false,
    logLevel: "warn",
    build: {
      write: false,
      lib: { entry: join(root, "node_modules/d3/index.js"), formats: ["es"] },
    },
  });
  const [made] = Array.isArray(built) ? built : [];
  const [chunk] = made?.output ?? [];
  return chunk?.code ?? "";
}

/** Serves what PyTorch's page loads from servers. @param {Tab} tab @param {string} script path of MemoryViz.js */
async function serveScripts(tab, script) {
  const serve = (/** @type {string} */ body) => ({
    contentType: "text/javascript",
    headers: { "access-control-allow-origin": "*" },
    body,
  });
  const source = readFileSync(script, "utf8");
  const whole = source.match(/https:[^"']+\/d3@5(?=["'])/)?.[0];
  const d3 = await bundledD3();
  await tab.route(/\/MemoryViz\.js$/, (route) => route.fulfill(serve(source)));
  await tab.route(/\/d3@5$/, (route) => route.fulfill(serve(d3)));
  await tab.route(/\/d3-[a-z]+@1$/, (route) => route.fulfill(serve(`export * from "${whole}";`)));
}

/** Opens PyTorch's page: its plot is drawn in one task, so it is complete once one polygon exists.
 * @param {string | null} page @param {string | undefined} script path of MemoryViz.js
 * @returns {Promise<string[]>} time until drawn, or the failure; the browser's memory; frames */
export async function measureTorchPage(page, script) {
  if (page === null) {
    return ["no page", "", ""];
  }
  if (script === undefined) {
    return ["not run: no --pytorch-page", "", ""];
  }
  return inBrowser(async (tab, highest) => {
    const started = performance.now();
    const ended = (/** @type {string} */ how) => [
      `${how} after ${seconds(performance.now() - started)}`,
      mebibytes(highest()),
      "",
    ];
    /** @type {Promise<string[]>} */
    const given = new Promise((resolve) => {
      tab.on("crash", () => resolve(ended("the tab crashed")));
      tab.on("pageerror", ({ message }) => resolve(ended(`nothing drawn: ${firstLine(message)}`)));
      setTimeout(() => resolve(ended("nothing drawn")), PAGE_MS).unref();
    });
    const drawn = async () => {
      await serveScripts(tab, script);
      await tab.goto(pathToFileURL(page).href, { timeout: 0 });
      await tab.waitForSelector("svg polygon", { state: "attached", timeout: 0 });
      await painted(tab);
      const first = performance.now() - started;
      const polygons = await tab.locator("svg polygon").count();
      const held = highest();
      return [
        `${seconds(first)}, ${polygons.toLocaleString("en-US")} polygons`,
        mebibytes(held),
        await zoomFrames(tab, "svg polygon"),
      ];
    };
    // Closing the browser ends pending waits; only the first result counts.
    const failed = (/** @type {Error} */ { message }) =>
      /crash/i.test(message) ? given : ended(`nothing drawn: ${firstLine(message)}`);
    return Promise.race([drawn().catch(failed), given]);
  });
}

const firstLine = (/** @type {string} */ text) => text.split("\n")[0] ?? "";
