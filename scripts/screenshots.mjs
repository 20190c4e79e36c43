/**
 * `npm run screenshots [RECORDING]`: pictures of the report page for the README, docs/images/report-*.png,
 * from a recording; without one the demo is recorded anew.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { runnerImport } from "vite";
import { build } from "./build.mjs";
import { runAsScript, SetupError } from "./command.mjs";
import { findInterpreters } from "./environment/interpreters.mjs";
import { root } from "./setup.mjs";

const images = join(root, "docs/images");
const desktop = { viewport: { width: 1440, height: 1440 } };
const phone = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true };
/**
 * @typedef {object} Picture
 * @property {string} name
 * @property {import("playwright-core").BrowserContextOptions} options
 * @property {string} [tab] opened before the picture is taken
 * @property {string} [part] the panel's label: it alone is in the picture
 */
/** @type {Picture[]} */
const pictures = [
  { name: "report-light", options: { ...desktop, colorScheme: "light" } },
  { name: "report-dark", options: { ...desktop, colorScheme: "dark" } },
  { name: "report-phone", options: { ...phone, colorScheme: "light" } },
  {
    name: "report-diagnosis",
    options: { ...desktop, colorScheme: "light" },
    tab: "Diagnosis",
    part: "Profile",
  },
  { name: "report-ledger", options: { ...desktop, colorScheme: "light" }, part: "Ledger" },
];

async function screenshots() {
  await build();
  const folder = mkdtempSync(join(tmpdir(), "tidemark-screenshots-"));
  const recording = process.argv[2] ?? join(folder, "demo.tidemark");
  if (process.argv[2] === undefined) {
    // Behind the plain name may stand a version manager's shell scripts, processes all of them.
    const python = (await findInterpreters()).at(-1)?.path ?? "python3";
    process.env.PATH = `${dirname(python)}:${process.env.PATH}`;
    tidemark("run", "-o", recording, "--", basename(python), "examples/inference_service");
  }
  /** The tests' choice of browser, written in TypeScript. */
  const { module } = await runnerImport(join(root, "test/browser.ts"), { root, logLevel: "warn" });
  const browser = await module.launchBrowser();
  try {
    const page = join(folder, "report.html");
    tidemark("report", recording, "-o", page);
    mkdirSync(images, { recursive: true });
    for (const wanted of pictures) await picture(browser, page, wanted);
  } finally {
    await browser.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * @param {import("playwright-core").Browser} browser
 * @param {string} path of the page
 * @param {Picture} wanted
 */
async function picture(browser, path, { name, options, tab, part }) {
  const context = await browser.newContext({ ...options, reducedMotion: "reduce" });
  const page = await context.newPage();
  await page.goto(pathToFileURL(path).href);
  await page.waitForSelector("[data-testid=flame][data-frames]");
  // Nothing is selected: its details would show a path of this machine's.
  const file = join(images, `${name}.png`);
  if (tab) await page.getByRole("tab", { name: tab }).click();
  if (part) await page.getByRole("region", { name: part, exact: true }).screenshot({ path: file });
  else await page.screenshot({ path: file });
  await context.close();
  process.stdout.write(`${file}\n`);
}

/** @param {string[]} args */
function tidemark(...args) {
  const { status } = spawnSync(join(root, "bin/tidemark"), args, { cwd: root, stdio: "inherit" });
  if (status !== 0) throw new SetupError(`tidemark ${args[0]} failed`);
}

await runAsScript(import.meta, screenshots);
