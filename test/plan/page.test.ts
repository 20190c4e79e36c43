/** The page of a plan in a real browser: the sliders make plans in the page. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { writeReport } from "../../src/cli/files/report_page.js";
import type { PlanPageDocument } from "../../src/plan/page_document.js";
import { readShape } from "../../src/plan/shape/read_shape.js";
import { launchBrowser } from "../browser.js";
import { repository } from "../run.js";

const folder = mkdtempSync(join(tmpdir(), "tidemark-plan-page-"));
let browser: Browser;

beforeAll(async () => {
  // A separate build, because dist/ may be older than the sources.
  execFileSync(
    process.execPath,
    ["node_modules/vite/bin/vite.js", "build", "web", "--outDir", join(folder, "web")],
    { cwd: repository, env: { ...process.env, NODE_ENV: "production" }, stdio: "pipe" },
  );
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

test("bars, sliders and the table of GPUs", async () => {
  const models = JSON.parse(readFileSync(join(repository, "test/data/plan/models.json"), "utf8"));
  const model = readShape(models["llama-3.1-8b"].config, "llama-3.1-8b", "config.json");
  const document: PlanPageDocument = {
    schema: "tidemark.planPage/1",
    title: "plan llama-3.1-8b",
    model,
    request: { mode: "train", method: "lora" },
  };
  const path = join(folder, "plan.html");
  await writeReport(document, path, async () => undefined, join(folder, "web/index.html"));
  const page = await browser.newPage();
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(error.message));
  await page.goto(pathToFileURL(path).href);
  const figure = page.locator(".figure .value").first();
  const before = await figure.textContent();
  expect(before).toMatch(/GiB$/);
  expect(await page.locator(".plan-bar i").count()).toBeGreaterThan(5);
  await page.getByLabel("Batch").press("End");
  await expect.poll(() => figure.textContent()).not.toBe(before);
  expect(await page.locator("#plan-verdict").textContent()).toBe("does not fit");
  await page.getByLabel("Checkpointing").selectOption("full");
  await page.getByLabel("Batch").press("Home");
  await expect.poll(() => page.locator("#plan-verdict").textContent()).toBe("fits");
  // Without a mask the kernels read grouped keys as they are: sdpa of one length needs less.
  await page.getByLabel("Checkpointing").selectOption("none");
  await page.getByLabel("Batch").press("ArrowRight");
  await page.getByLabel("Attention").selectOption("sdpa");
  const padded = await figure.textContent();
  await page.getByLabel("Padding").selectOption("one length");
  await expect.poll(() => figure.textContent()).not.toBe(padded);
  await page.getByLabel("Padding").selectOption("padded batches");
  await expect.poll(() => figure.textContent()).toBe(padded);
  // One device after the other: each row is several plans.
  await expect
    .poll(() => page.locator(".plan-fits tbody tr").count(), { timeout: 100_000 })
    .toBeGreaterThan(15);
  expect(faults).toEqual([]);
});
