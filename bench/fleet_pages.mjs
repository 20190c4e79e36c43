/** The pages of a server in the browser that the tests use: when they are painted first, and when nothing changes any more. */
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { runnerImport } from "vite";
import { markdownTable } from "./results.mjs";
import { ms } from "./served.mjs";
import { median } from "./statistics.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const RUNS = 5;
/** A page that has not changed for so long is complete. */
const QUIET_MS = 1500;

/** The browser of the tests. @returns {Promise<import("playwright-core").Browser>} */
export async function startBrowser() {
  const { module } = await runnerImport(`${root}/test/browser.ts`, { root, logLevel: "warn" });
  return module.launchBrowser();
}

/**
 * Opens each page in a new context, whose cache is empty. The browser, the server and this process share the machine.
 * @param {string} url @param {{service: string, startMs: number, endMs: number}} about
 */
export async function pagesTable(url, { service, startMs, endMs }) {
  const window = `from=${startMs}&to=${endMs}`;
  const answer = await fetch(`${url}/api/v1/service?name=${service}&${window}`);
  const { instances } = await answer.json();
  const pages = {
    Services: `/?${window}`,
    "Services, the last hour": "/",
    Service: `/service?name=${service}&${window}`,
    Instance: `/instance/${instances[0].stream}`,
    Verdicts: `/verdicts?${window}`,
    Sizes: `/sizes?${window}`,
    Alerts: "/alerts",
    Actions: "/actions",
    Artifacts: "/artifacts",
    Ingest: "/ingest",
  };
  const browser = await startBrowser();
  try {
    const rows = [];
    for (const [name, path] of Object.entries(pages)) {
      const found = [];
      for (let run = 0; run < RUNS; run++) {
        found.push(await opened(browser, `${url}${path}`));
      }
      const column = (/** @type {(paints: typeof found[0]) => number} */ of) => {
        const times = found.map(of);
        return `${ms(median(times))} / ${ms(Math.max(...times))}`;
      };
      rows.push([name, column(({ firstMs }) => firstMs), column(({ completeMs }) => completeMs)]);
    }
    const about = `Each page of the server, opened ${RUNS} times in Chromium with an empty cache: the first paint with content (paint timing API), and the last change of the page; median / maximum.`;
    return `${about}\n\n${markdownTable(["page", "first paint", "complete"], rows)}`;
  } finally {
    await browser.close();
  }
}

/** @param {import("playwright-core").Browser} browser @param {string} address */
async function opened(browser, address) {
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 } });
  try {
    const page = await context.newPage();
    await page.addInitScript(`
      window.lastChange = 0;
      new MutationObserver(() => { window.lastChange = performance.now(); })
        .observe(document, { subtree: true, childList: true, attributes: true, characterData: true });`);
    await page.goto(address);
    for (;;) {
      const { nowMs, isWaiting, ...found } = await page.evaluate(() => ({
        nowMs: performance.now(),
        firstMs: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Number.NaN,
        isWaiting: document.body.innerText.includes("Asking the server"),
        completeMs: /** @type {{lastChange?: number}} */ (globalThis).lastChange ?? Number.NaN,
      }));
      if (!isWaiting && found.firstMs > 0 && nowMs - found.completeMs > QUIET_MS) {
        return found;
      }
      await pause(QUIET_MS / 5);
    }
  } finally {
    await context.close();
  }
}
