/**
 * `npm run screenshots [RECORDING]`: pictures of the report page for the README, docs/images/report-*.png,
 * from a recording; without one from demo.tidemark, made first where it is missing.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { runnerImport } from "vite";
import { build } from "./build.mjs";
import { runAsScript, SetupError } from "./command.mjs";
import { root } from "./setup.mjs";

const images = join(root, "docs/images");
const desktop = { viewport: { width: 1440, height: 960 } };
const phone = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true };
/** @type {{name: string, options: import("playwright-core").BrowserContextOptions}[]} */
const pictures = [
  { name: "report-light", options: { ...desktop, colorScheme: "light" } },
  { name: "report-dark", options: { ...desktop, colorScheme: "dark" } },
  { name: "report-phone", options: { ...phone, colorScheme: "light" } },
];

async function screenshots() {
  await build();
  const recording = process.argv[2] ?? join(root, "demo.tidemark");
  if (process.argv[2] === undefined && !existsSync(recording)) {
    tidemark("run", "-o", recording, "--", "python3", "examples/inference_service");
  }
  const folder = mkdtempSync(join(tmpdir(), "tidemark-screenshots-"));
  /** The tests' choice of browser, written in TypeScript. */
  const { module } = await runnerImport(join(root, "test/browser.ts"), { root, logLevel: "warn" });
  const browser = await module.launchBrowser();
  try {
    const page = join(folder, "report.html");
    tidemark("report", recording, "-o", page);
    mkdirSync(images, { recursive: true });
    for (const { name, options } of pictures) await picture(browser, page, name, options);
  } finally {
    await browser.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * @param {import("playwright-core").Browser} browser
 * @param {string} path of the page
 * @param {string} name of the picture
 * @param {import("playwright-core").BrowserContextOptions} options
 */
async function picture(browser, path, name, options) {
  const context = await browser.newContext({ ...options, reducedMotion: "reduce" });
  const page = await context.newPage();
  await page.goto(pathToFileURL(path).href);
  await page.waitForSelector("[data-testid=flame][data-frames]");
  // Nothing is selected: its details would show a path of this machine's.
  const file = join(images, `${name}.png`);
  await page.screenshot({ path: file });
  await context.close();
  process.stdout.write(`${file}\n`);
}

/** @param {string[]} args */
function tidemark(...args) {
  const { status } = spawnSync(join(root, "bin/tidemark"), args, { cwd: root, stdio: "inherit" });
  if (status !== 0) throw new SetupError(`tidemark ${args[0]} failed`);
}

await runAsScript(import.meta, screenshots);
