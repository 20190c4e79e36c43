/**
 * The list of services scrolls: `npm run bench -- server_scroll [--services 1000]`
 *
 * A store gets a recording of each service. The page with the list is then scrolled with the wheel in Chromium from its first
 * row to its last and back, while the time between two frames is noted.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { fill, serviceOf } from "./fleet_data.mjs";
import { startBrowser } from "./fleet_pages.mjs";
import { describeMachine } from "./machine.mjs";
import { markdownTable, writeResults } from "./results.mjs";
import { idle, ms, quantile, startServer, stopped } from "./served.mjs";

const { values: options } = parseArgs({
  options: { services: { type: "string", default: "1000" } },
});
const services = Number(options.services);
const MINUTE_MS = 60_000;
const WHEEL_PIXELS = 400;
const data = mkdtempSync(join(tmpdir(), "tidemark-bench-scroll-"));
await fill(data, lives(), { endMs: Date.now(), pollMs: 2 * MINUTE_MS });
const server = await startServer(data);
const browser = await startBrowser();
try {
  await idle(server.child.pid ?? 0);
  const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
  await page.goto(server.url);
  await page.locator(".table-body [role=row]").first().waitFor();
  const heights = () =>
    page.evaluate(() => {
      const body = document.querySelector(".table-body");
      return {
        top: body?.scrollTop ?? 0,
        most: (body?.scrollHeight ?? 0) - (body?.clientHeight ?? 0),
        rows: document.querySelectorAll(".table-body [role=row]").length,
      };
    });
  await page.locator(".table-body").hover();
  await page.evaluate(`
    window.frames_ = [];
    requestAnimationFrame(function next(now) { window.frames_.push(now); requestAnimationFrame(next); });`);
  let mostRows = 0;
  for (const direction of [1, -1]) {
    for (let { top, most, rows } = await heights(); direction > 0 ? top < most - 1 : top > 0; ) {
      mostRows = Math.max(mostRows, rows);
      await page.mouse.wheel(0, direction * WHEEL_PIXELS);
      ({ top, most, rows } = await heights());
    }
  }
  const times = /** @type {number[]} */ (await page.evaluate("window.frames_"));
  const gaps = times.slice(1).map((time, at) => time - (times[at] ?? time));
  const table = markdownTable(
    [
      "services",
      "frames",
      "between two frames, p50",
      "p99",
      "longest",
      "rows in the page, at most",
    ],
    [
      [
        services.toLocaleString("en"),
        gaps.length.toLocaleString("en"),
        ms(quantile(gaps, 0.5)),
        ms(quantile(gaps, 0.99)),
        ms(Math.max(...gaps)),
        String(mostRows),
      ],
    ],
  );
  console.log(table);
  const head = `\`npm run bench -- server_scroll\` on ${describeMachine("python3")}. The list of services is scrolled by ${WHEEL_PIXELS} pixels at a time to its end and back, in Chromium without a graphics card, which draws 60 frames a second at most.`;
  writeResults("server_scroll", ["## Scrolling through the services", head, table].join("\n\n"));
} finally {
  await browser.close();
  await stopped(server.child);
  rmSync(data, { recursive: true, force: true });
}

/** One process for each service, started in the last minutes. */
function lives() {
  return Array.from({ length: services }, (_, at) => {
    const service = serviceOf({ name: `service-${at}`, instances: 1, days: 1, stacks: 5 });
    const [release] = service.releases;
    if (release === undefined) {
      throw new Error("a service without a version");
    }
    const startMs = Date.now() - 12 * MINUTE_MS - (at % 100) * 1000;
    return { service, release, instance: 0, startMs, end: null };
  });
}
