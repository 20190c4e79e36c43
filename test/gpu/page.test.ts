/** The page of a snapshot in a real browser, opened from disk. */

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { writeReport } from "../../src/cli/files/report_page.js";
import { diffPageDocument, pageDocument } from "../../src/gpu/analysis/page_document.js";
import { readSnapshot } from "../../src/gpu/snapshot/read_snapshot.js";
import { present } from "../../src/model/base/present.js";
import type {
  GpuDiffPageDocument,
  GpuPageDocument,
} from "../../src/model/documents/gpu/gpu_page.js";
import { launchBrowser } from "../browser.js";
import { pickle } from "./pickle_writer.mjs";
import type { CachingAllocator } from "./simulator.mjs";
import { snapshotOf } from "./snapshot_file.mjs";
import { randomWorkload, runOut, trainingRun } from "./workload.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "tidemark-gpu-page-"));
let browser: Browser;

beforeAll(async () => {
  // A separate build, because dist/ may be older than the sources.
  execFileSync(
    process.execPath,
    [
      "node_modules/vite/bin/vite.js",
      "build",
      "web",
      "--mode",
      "gpu",
      "--outDir",
      join(folder, "web"),
    ],
    { cwd: root, env: { ...process.env, NODE_ENV: "production" }, stdio: "pipe" },
  );
  browser = await launchBrowser();
});

afterAll(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

let files = 0;
async function using(
  allocators: CachingAllocator[],
  snapshot: (page: Page) => Promise<void>,
  viewport = { width: 1280, height: 900 },
): Promise<void> {
  await showing(await pageOf(allocators, "run <7>.pickle"), snapshot, viewport);
}

async function pageOf(allocators: CachingAllocator[], title: string): Promise<GpuPageDocument> {
  const path = join(folder, `${files++}.pickle`);
  writeFileSync(path, pickle(snapshotOf(allocators, "plain")));
  return pageDocument(await readSnapshot(path), path, title);
}

async function showing(
  document: GpuPageDocument | GpuDiffPageDocument,
  snapshot: (page: Page) => Promise<void>,
  viewport = { width: 1280, height: 900 },
): Promise<void> {
  const name = join(folder, `${files++}`);
  await writeReport(document, `${name}.html`, async () => {}, join(folder, "web/gpu.html"));
  const context = await browser.newContext({ viewport, reducedMotion: "reduce" });
  const page = await context.newPage();
  const complaints: string[] = [];
  const address = pathToFileURL(`${name}.html`).href;
  page.on("request", (request) => {
    if (request.url() !== address) {
      complaints.push(`request ${request.url()}`);
    }
  });
  page.on("console", (message) => {
    // The tests read the canvas, and Chromium warns that this is slow.
    const ours = /willReadFrequently/.test(message.text());
    if (!ours && ["error", "warning"].includes(message.type())) {
      complaints.push(message.text());
    }
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.goto(address);
  await page.waitForSelector("header, [role=alert]");
  await snapshot(page);
  expect(complaints).toEqual([]);
  await context.close();
}

const slider = (page: Page) => page.getByRole("slider", { name: "Moment", exact: true });

/** The colours in a column of the timeline, and their heights. */
function columnOf(page: Page, share: number): Promise<{ colours: number; height: number }> {
  return slider(page).evaluate((node, at) => {
    const canvas = node as HTMLCanvasElement;
    const context = canvas.getContext("2d") as CanvasRenderingContext2D;
    const x = Math.min(canvas.width - 1, Math.floor(at * canvas.width));
    const { data } = context.getImageData(x, 0, 1, canvas.height);
    const pixels = Array.from({ length: canvas.height }, (_, y) =>
      data.slice(4 * y, 4 * y + 3).join(),
    );
    const background = "255,255,255";
    return {
      colours: new Set(pixels.filter((pixel) => pixel !== background)).size,
      height:
        canvas.height -
        (pixels.findIndex((pixel) => pixel !== background) + 1 || canvas.height + 1) +
        1,
    };
  }, share);
}

test("the empty page stays small", () => {
  expect(statSync(join(folder, "web/gpu.html")).size).toBeLessThan(512 * 1024);
});

test("every allocation is drawn, as high as the moment's total", async () => {
  const { allocator } = trainingRun({ steps: 30, leak: 2 ** 21 });
  await using([allocator], async (page) => {
    await expect
      .poll(() => page.getByRole("heading", { level: 1 }).textContent())
      .toBe("run <7>.pickle");
    const last = allocator.history.at(-1)?.requested ?? 0;
    const top = allocator.highest.requested * 1.04;
    // It is drawn after the page's elements are there.
    const heightAt = async (share: number) => (await columnOf(page, share)).height;
    await expect
      .poll(async () => Math.abs((await heightAt(0.9999)) - (300 * last) / top))
      .toBeLessThanOrEqual(2);
    expect((await columnOf(page, 0.9999)).colours).toBeGreaterThanOrEqual(3);
    expect(await heightAt(0)).toBeLessThan((await heightAt(0.9999)) / 4);
  });
});

test("a click chooses a moment and an allocation; keys and the scrubber move on", async () => {
  const { allocator } = trainingRun({ steps: 30, leak: 2 ** 21 });
  await using([allocator], async (page) => {
    const canvas = slider(page);
    const box = present(await canvas.boundingBox());
    await canvas.click({ position: { x: box.width / 2, y: box.height - 4 } });
    const details = page.locator(".gpu-details");
    await expect
      .poll(() => details.textContent())
      .toMatch(/4\.00 MiB.*parameters.*event 1 to the end.*_apply/);
    const moment = Number(await canvas.getAttribute("aria-valuenow"));
    expect(Math.abs(moment - allocator.trace.length / 2)).toBeLessThan(10);
    await canvas.press("ArrowRight");
    await expect
      .poll(async () => Number(await canvas.getAttribute("aria-valuenow")))
      .toBe(moment + 1);
    await page.getByRole("slider", { name: "Moment of the trace" }).fill("1");
    await expect
      .poll(() => page.locator(".gpu-scrubber output").textContent())
      .toMatch(/^event 1 of .* 0 B requested/);
    await page.getByRole("button", { name: "End" }).click();
    await expect
      .poll(async () => Number(await canvas.getAttribute("aria-valuenow")))
      .toBe(allocator.trace.length);
    await page.mouse.move(box.x + 5, box.y + box.height - 3);
    await expect.poll(() => page.locator(".gpu-tip").textContent()).toContain("MiB");
  });
});

test("the wheel zooms in to single allocations, a double click back out", async () => {
  const { allocator } = trainingRun({ steps: 30 });
  await using([allocator], async (page) => {
    const box = present(await slider(page).boundingBox());
    await expect.poll(async () => (await columnOf(page, 0.999)).height).toBeGreaterThan(0);
    const before = await columnOf(page, 0.999);
    await page.mouse.move(box.x + 2, box.y + 100);
    for (let turn = 0; turn < 30; turn++) {
      await page.mouse.wheel(0, -200);
    }
    await expect
      .poll(async () => (await columnOf(page, 0.999)).height)
      .toBeLessThan(before.height * 0.6);
    await slider(page).dblclick({ position: { x: 20, y: 20 } });
    await expect.poll(() => columnOf(page, 0.999)).toEqual(before);
  });
});

/** Pixels in the colour of a search's matches. */
function yellowOf(canvas: Locator): Promise<number> {
  return canvas.evaluate((node) => {
    const { width, height } = node as HTMLCanvasElement;
    const context = (node as HTMLCanvasElement).getContext("2d") as CanvasRenderingContext2D;
    const pixels = new Uint32Array(context.getImageData(0, 0, width, height).data.buffer);
    return pixels.reduce((count, pixel) => count + (pixel === 0xff3ccff0 ? 1 : 0), 0);
  });
}

test("search shows the matching share, fades the rest, and marks the flame graph", async () => {
  const { allocator } = trainingRun({ steps: 12, leak: 2 ** 21 });
  await using([allocator], async (page) => {
    await page.getByRole("button", { name: "End" }).click();
    await page.getByRole("searchbox", { name: "Search" }).fill("log_loss");
    await expect.poll(() => page.locator(".gpu-found").textContent()).toBe("24.0 MiB match");
    const flame = page.getByTestId("flame");
    await expect.poll(() => yellowOf(flame)).toBeGreaterThan(500);
    await flame.hover({ position: { x: 40, y: 10 } });
    await expect
      .poll(() => page.locator(".gpu-flame-says").textContent())
      .toMatch(/^all · 96\.0 MiB, 100 %/);
    await page.getByRole("searchbox", { name: "Search" }).fill("");
    await expect.poll(() => yellowOf(flame)).toBe(0);
  });
});

test("out-of-memory events are marked, and one click selects the moment", async () => {
  await using([runOut()], async (page) => {
    await expect.poll(() => page.locator(".gpu-mark-oom").count()).toBe(1);
    await page.getByRole("button", { name: "Out of memory" }).click();
    await expect
      .poll(() => page.locator(".gpu-scrubber output").textContent())
      .toContain("500 MiB requested, 0.98 GiB reserved");
    await page.getByLabel("Address space").hover({ position: { x: 10, y: 28 } });
    await expect
      .poll(() => page.locator(".gpu-addresses p").textContent())
      .toMatch(/segment of .* at 0x7f.*pool \[0,0\], stream default/);
  });
});

test("two moments of one file: what grew between them, by site", async () => {
  const { allocator } = trainingRun({ steps: 30, leak: 2 ** 21 });
  await using([allocator], async (page) => {
    const half = Math.floor(allocator.trace.length / 2);
    await page.getByRole("slider", { name: "Moment of the trace" }).fill(String(half));
    await page.getByRole("button", { name: "Compare from here" }).click();
    await page.getByRole("button", { name: "End", exact: true }).click();
    const panel = page.getByRole("region", { name: "Difference" });
    const [before, after] = [allocator.history[half - 1], allocator.history.at(-1)];
    const change = ((after?.requested ?? 0) - (before?.requested ?? 0)) / 2 ** 20;
    const figure = async () =>
      Number(/\+([\d.]+) MiB$/.exec((await panel.locator("h2").textContent()) ?? "")?.[1]);
    await expect.poll(figure).toBeCloseTo(change, 0);
    const first = panel.locator(".table-row").first();
    await expect.poll(() => first.textContent()).toMatch(/^\+\d.*grew.*log_loss/);
    await first.click();
    await expect
      .poll(() => page.getByRole("searchbox", { name: "Search" }).inputValue())
      .toBe("log_loss");
    await page.getByRole("button", { name: "End comparison" }).click();
    await expect.poll(() => panel.count()).toBe(0);
  });
});

test("two files on one axis, and what differs between a moment of each", async () => {
  const before = await pageOf([trainingRun({ steps: 6, leak: 2 ** 21 }).allocator], "a.pickle");
  const after = await pageOf([trainingRun({ steps: 25, leak: 2 ** 21 }).allocator], "b.pickle");
  await showing(diffPageDocument(before, after), async (page) => {
    await expect
      .poll(() => page.getByRole("heading", { level: 1 }).textContent())
      .toBe("a.pickle → b.pickle");
    await expect.poll(() => page.locator(".gpu-timeline").count()).toBe(2);
    const sides = await page.locator(".gpu-timeline").all();
    const scales = await Promise.all(
      sides.map((side) => side.locator(".gpu-grid").allInnerTexts()),
    );
    expect(scales[0]).toEqual(scales[1]);
    const panel = page.getByRole("region", { name: "Difference" });
    await expect.poll(() => panel.locator("h2").textContent()).toBe("From A to B: +38.0 MiB");
    await expect
      .poll(() => panel.locator(".table-row").first().textContent())
      .toMatch(/^\+38\.0 MiB12\.0 MiB50\.0 MiBgrew.*log_loss/);
    await page
      .getByRole("region", { name: "B", exact: true })
      .getByRole("slider", { name: "Moment of the trace" })
      .fill("0");
    await expect.poll(() => panel.locator("h2").textContent()).toMatch(/: −/);
    await page.getByRole("button", { name: "Both peaks" }).click();
    await expect.poll(() => panel.locator("h2").textContent()).toMatch(/: \+/);
  });
});

test("expandable segments, private pools and a second device", async () => {
  const first = randomWorkload(3, { events: 1500, expandable: true }).allocator;
  const second = randomWorkload(4, { events: 700, device: 1 }).allocator;
  await using(
    [first, second],
    async (page) => {
      await expect
        .poll(() => page.locator(".gpu-scrubber output").textContent())
        .toContain("of 1,50");
      await page.getByRole("combobox").selectOption("1");
      await expect
        .poll(() => page.locator(".gpu-scrubber output").textContent())
        .toContain("of 70");
    },
    { width: 390, height: 844 },
  );
});

test("a snapshot without any memory gives a page", async () => {
  await using([], async (page) => {
    await expect.poll(() => page.locator(".gpu-hint").textContent()).toMatch(/contains no memory/);
  });
});
