/** The report page, built from the sources and opened in a browser; for its tests. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Browser, BrowserContextOptions, Locator, Page } from "playwright-core";
import { expect } from "vitest";
import { writeReport } from "../src/cli/files/report_page.js";
import type { ReportDocument } from "../src/model/documents/report_document.js";
import { launchBrowser } from "./browser.js";

export const root = fileURLToPath(new URL("..", import.meta.url));
export const folder = mkdtempSync(join(tmpdir(), "tidemark-report-"));
export const template = join(folder, "web/index.html");
export const DESKTOP = { viewport: { width: 1280, height: 900 } };
export const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };
export const ROW = 20;

export const noProgress = async () => {};

export let browser: Browser;

/** For `beforeAll`. */
export async function openBrowser(): Promise<void> {
  // A separate build, because dist/ may be older than the sources. In a separate process, because here
  // NODE_ENV is "test", which would select React's development build.
  execFileSync(
    process.execPath,
    ["node_modules/vite/bin/vite.js", "build", "web", "--outDir", join(folder, "web")],
    { cwd: root, env: { ...process.env, NODE_ENV: "production" }, stdio: "pipe" },
  );
  browser = await launchBrowser();
}

/** For `afterAll`. */
export async function closeBrowser(): Promise<void> {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
}

export interface OpenPage {
  page: Page;
  /** Requests other than for the page itself, console errors and warnings, uncaught errors. */
  complaints: string[];
}

export async function openFile(
  path: string,
  options: BrowserContextOptions = DESKTOP,
): Promise<OpenPage> {
  const context = await browser.newContext({ reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  const complaints: string[] = [];
  const address = pathToFileURL(path).href;
  page.on("request", (request) => {
    if (request.url() !== address) {
      complaints.push(`request ${request.url()}`);
    }
  });
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") {
      complaints.push(message.text());
    }
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.goto(address);
  await page.waitForSelector("header, [role=alert]").catch(() => {
    throw new Error(`the page stayed empty: ${complaints.join("; ")}`);
  });
  return { page, complaints };
}

let written = 0;

/** A separate folder for one page. */
export function newPagePath(): string {
  return join(folder, `report-${written++}.html`);
}

export async function openReport(
  report: ReportDocument,
  options?: BrowserContextOptions,
): Promise<OpenPage> {
  const path = newPagePath();
  await writeReport(report, path, noProgress, template);
  return openFile(path, options);
}

export async function using(
  opened: Promise<OpenPage>,
  check: (page: Page) => Promise<void>,
): Promise<void> {
  const { page, complaints } = await opened;
  try {
    await check(page);
    expect(complaints).toEqual([]);
  } finally {
    await page.context().close();
  }
}

/** Clicks into the flame graph, in a row, at a position from 0 to 1 of the width. */
export async function clickFlame(page: Page, row: number, across: number): Promise<void> {
  const flame = page.getByTestId("flame");
  await drawn(page);
  const { width } = await boxOf(flame);
  await flame.click({ position: { x: across * width, y: row * ROW + ROW / 2 } });
}

export async function drawn(page: Page): Promise<void> {
  await page.waitForSelector("[data-testid=flame][data-frames]");
}

export async function boxOf(
  locator: Locator,
): Promise<{ x: number; y: number; width: number; height: number }> {
  const box = await locator.boundingBox();
  if (box === null) {
    throw new Error("not in sight");
  }
  return box;
}

/** The text that a reader sees, with white space collapsed. */
export async function words(locator: Locator): Promise<string> {
  return (await locator.innerText()).replace(/\s+/g, " ").trim();
}

export const details = (page: Page) => page.locator("#flame-selected");
export const noSidewaysScroll = (page: Page) =>
  expect
    .poll(() => page.evaluate(() => document.documentElement.scrollWidth - innerWidth))
    .toBeLessThanOrEqual(0);
