/** The page of a plan in a real browser: the sliders make plans in the page. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Command } from "commander";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { writeReport } from "../../src/cli/files/report_page.js";
import { withPlanOptions } from "../../src/cli/options/plan_options.js";
import {
  planComparedWithLog,
  planDocument,
  planPage,
  planWithFitTable,
} from "../../src/inspect/index.js";
import { formatBytes, formatExactCount } from "../../src/model/base/numbers.js";
import type { PlanJson } from "../../src/model/documents/plan_document.js";
import type { PlanPageDocument } from "../../src/plan/page_document.js";
import { readShape } from "../../src/plan/shape/read_shape.js";
import { fitText } from "../../src/plan/wording.js";
import { requestOf } from "../../src/plan/words.js";
import { launchBrowser } from "../browser.js";
import { repository } from "../run.js";

const folder = mkdtempSync(join(tmpdir(), "tidemark-plan-page-"));
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
      "plan",
      "--outDir",
      join(folder, "web"),
    ],
    { cwd: repository, env: { ...process.env, NODE_ENV: "production" }, stdio: "pipe" },
  );
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Opens the page of a plan and waits until its figures are on it: they are drawn after the browser's "load". */
async function openPlan(page: Page, path: string): Promise<void> {
  await page.goto(pathToFileURL(path).href);
  await page.locator(".figure .value").first().waitFor();
}

test("the empty page stays small", () => {
  expect(statSync(join(folder, "web/plan.html")).size).toBeLessThan(512 * 1024);
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
  await writeReport(document, path, async () => undefined, join(folder, "web/plan.html"));
  const page = await browser.newPage();
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(error.message));
  await openPlan(page, path);
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

test("on a phone, the table of GPUs shows that it scrolls sideways", async () => {
  const given = planned("llama-3.1-8b", "--train --method lora");
  const path = join(folder, "phone.html");
  await writeReport(planPage(given), path, async () => undefined, join(folder, "web/plan.html"));
  const page = await browser.newPage({ viewport: { width: 390, height: 844 } });
  await openPlan(page, path);
  const hint = page.locator(".plan-wider");
  await hint.waitFor({ timeout: 100_000 });
  expect(await hint.textContent()).toMatch(/Scroll sideways for all 8 methods/);
  const { left = 0, right = 0 } = await hint.evaluate((element) => {
    const box = element.getBoundingClientRect();
    return { left: box.left, right: box.right };
  });
  expect(left).toBeGreaterThanOrEqual(0);
  expect(right).toBeLessThanOrEqual(390);
  const isWider = await page
    .locator(".plan-scroll")
    .last()
    .evaluate((element) => element.scrollWidth > element.clientWidth);
  expect(isWider).toBe(true);
  await page.setViewportSize({ width: 1440, height: 900 });
  expect(await hint.isVisible()).toBe(false);
  await page.close();
});

const MODELS = JSON.parse(
  readFileSync(join(repository, "test/data/plan/models.json"), "utf8"),
) as Record<string, { config: object }>;

/** What `tidemark plan MODEL WORDS` computes, and with `--json` prints. */
function planned(name: string, words: string) {
  const path = join(folder, `${name}.json`);
  writeFileSync(path, JSON.stringify(MODELS[name]?.config));
  const command = new Command().exitOverride();
  withPlanOptions(command);
  command.parse(words.split(" "), { from: "user" });
  return planDocument(path, requestOf(command.opts()), { configs: [] });
}

/** The figures of the page as text, each by its place. */
async function shown(page: Page) {
  const texts = (selector: string) => page.locator(selector).allTextContents();
  return {
    figures: (await texts(".figure .value")).slice(0, 4),
    intervals: (await texts(".figure .note")).slice(0, 3),
    parts: await texts("[aria-label=Parts] tbody tr > :nth-child(-n+2)"),
    formulas: await texts("[aria-label=Parts] tbody td:nth-child(5)"),
    savings: await texts("[aria-label=Savings] tbody code"),
    saved: await texts("[aria-label=Savings] tbody td:nth-child(2)"),
    cautions: await texts(".plan-caution"),
    limits: await texts(".plan-notes b"),
  };
}

function expected(plan: PlanJson) {
  const { memory, fits, parts, savings, limits, serving } = plan;
  const figures = [memory.allocated, memory.reserved, memory.device];
  return {
    figures: [...figures.map(({ bytes }) => formatBytes(bytes)), fitText(plan)],
    intervals: figures.map(({ low, high }) => `${formatBytes(low)} to ${formatBytes(high)}`),
    parts: parts.flatMap(({ part, bytes }) => [part, formatBytes(bytes)]),
    formulas: parts.map(({ formula }) => formula),
    savings: savings.flatMap(({ change, program }) => [change, program]),
    saved: savings.map(({ bytes, addedTokens }) =>
      addedTokens === undefined ? formatBytes(bytes) : expect.stringContaining("tokens of cache"),
    ),
    cautions: [...limits],
    limits: [
      fits.maxBatch,
      fits.maxSequence,
      ...(serving === undefined || serving.kvBytesPerToken === 0 ? [] : [serving.kvTokens]),
    ].map((count) => formatExactCount(count)),
  };
}

/** Moves a slider to a value that is one of its stops. */
async function slide(page: Page, name: string, value: number): Promise<void> {
  const slider = page.getByLabel(name, { exact: true });
  const current = async () => Number(await slider.getAttribute("aria-valuetext"));
  const rises = (await current()) < value;
  for (let before = await current(); before !== value; before = await current()) {
    await slider.press(rises ? "ArrowRight" : "ArrowLeft");
    await expect.poll(current).not.toBe(before);
  }
}

type Move = (page: Page) => Promise<unknown>;
const CASES: readonly [model: string, words: string, after: string, move: Move][] = [
  [
    "bert-base",
    "--method lora --batch 16 --seq 512 --gpu a100-80gb",
    "--method qlora --batch 64 --seq 256 --gpu a100-80gb --optimizer paged-adamw8bit",
    async (page) => {
      await page.getByLabel("Method").selectOption("qlora");
      await slide(page, "Batch", 64);
      await slide(page, "Sequence length", 256);
      await page.getByLabel("Optimizer").selectOption("paged-adamw8bit");
    },
  ],
  [
    "gpt2",
    "--seq 4096 --dtype bf16 --attention eager --optimizer lion",
    "--seq 1024 --dtype bf16 --attention flash --optimizer lion --fsdp 4",
    async (page) => {
      await slide(page, "Sequence length", 1024);
      await page.getByLabel("Attention").selectOption("flash");
      await slide(page, "FSDP devices", 4);
    },
  ],
  [
    "qwen2.5-7b",
    "--serve --engine vllm --gpu h100 --context 8k --concurrency 16",
    "--serve --engine vllm --gpu l40s --context 2k --concurrency 16 --tp 2 --kv-dtype fp8",
    async (page) => {
      await page.getByLabel("GPU").selectOption("L40S");
      await slide(page, "Context", 2048);
      await slide(page, "Tensor parallelism", 2);
      await page.getByLabel("Cache").selectOption("fp8");
    },
  ],
  [
    "deepseek-v3",
    "--serve --engine sglang --tp 8 --gpu h200 --quantize fp8",
    "--serve --engine sglang --tp 8 --gpu h200 --quantize fp8 --concurrency 4",
    (page) => slide(page, "Sequences at once", 4),
  ],
];

test.each(CASES)(
  "the page shows the figures of %s %s, and of %s",
  async (name, words, after, move) => {
    const first = planned(name, words);
    const path = join(folder, `${name}.html`);
    await writeReport(planPage(first), path, async () => undefined, join(folder, "web/plan.html"));
    const page = await browser.newPage();
    await openPlan(page, path);
    expect(await shown(page)).toEqual(expected(first.plan));
    await move(page);
    const { plan } = planned(name, after);
    await expect.poll(() => shown(page)).toEqual(expected(plan));
    await page.close();
  },
);

test("a comparison of the command line is on the page, and the sliders leave it as it is", async () => {
  const first = planned("qwen2.5-7b", "--serve --engine vllm --gpu h100");
  const log = join(folder, "vllm.log");
  writeFileSync(log, "Model loading took 14.25 GiB\nAvailable KV cache memory: 52.7 GiB\n");
  const plan = planComparedWithLog(first.plan, log);
  const path = join(folder, "compared.html");
  await writeReport(
    planPage({ ...first, plan }),
    path,
    async () => undefined,
    join(folder, "web/plan.html"),
  );
  const page = await browser.newPage();
  await openPlan(page, path);
  const section = page.locator("[aria-label=Comparison]");
  const before = await section.textContent();
  expect(before).toContain(log);
  expect(before).toMatch(/52\.7 GiB measured \(KV cache\), \d.* the interval/);
  expect(await section.locator("th[scope=row]").allTextContents()).toEqual(["weights", "KV cache"]);
  // vLLM's kernels need no mask.
  expect(await page.getByLabel("Padding").count()).toBe(0);
  const figure = await page.locator(".figure .value").first().textContent();
  await slide(page, "Tensor parallelism", 4);
  await expect.poll(() => page.locator(".figure .value").first().textContent()).not.toBe(figure);
  expect(await section.textContent()).toBe(before);
  await page.close();
});

test("the table of GPUs is that of --fit", async () => {
  const first = planned("bert-base", "--batch 2");
  const plan = await planWithFitTable(first, async () => undefined);
  const path = join(folder, "fit.html");
  await writeReport(
    planPage({ ...first, plan }),
    path,
    async () => undefined,
    join(folder, "web/plan.html"),
  );
  const page = await browser.newPage();
  await openPlan(page, path);
  const rows = plan.fitTable ?? [];
  const cells = page.locator(".plan-fits td");
  await expect.poll(() => cells.count(), { timeout: 100_000 }).toBe(rows.length);
  expect(await cells.allTextContents()).toEqual(
    rows.map(({ maxBatch }) => (maxBatch === 0 ? "–" : formatExactCount(maxBatch))),
  );
  expect(
    await cells.evaluateAll((all) => all.map((cell) => cell.className.includes("yes"))),
  ).toEqual(rows.map(({ fits }) => fits));
  await page.close();
});
