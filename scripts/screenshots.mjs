/**
 * `npm run screenshots [RECORDING] [-- --only NAME]`: pictures for the README, docs/images/: of the report page, from a
 * recording (without one, the demo is recorded), of a device's snapshot, which is a simulated allocator's, of a plan, of a
 * notebook, and of the pages of `serve --demo`. NAME: report, snapshot, plan, notebook or fleet.
 */
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { runnerImport } from "vite";
import { DEVICE_CASES } from "../test/gpu/device_cases.mjs";
import { pickle } from "../test/gpu/pickle_writer.mjs";
import { build } from "./build.mjs";
import { runAsScript, SetupError } from "./command.mjs";
import { findInterpreters } from "./environment/interpreters.mjs";
import { notebookPage } from "./notebook_page.mjs";
import { root } from "./setup.mjs";

const images = join(root, "docs/images");
const desktop = { viewport: { width: 1440, height: 1440 } };
const phone = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true };
/**
 * @typedef {object} Picture
 * @property {string} name
 * @property {import("playwright-core").BrowserContextOptions} options
 * @property {string} drawn text that is visible once the page is drawn
 * @property {string} [tab] opened before the picture is taken
 * @property {string} [part] the panel's label: it alone is in the picture
 */
const flame = "[data-testid=flame][data-frames]";
/** @type {Picture[]} */
const ofReport = [
  { name: "report-light", drawn: flame, options: { ...desktop, colorScheme: "light" } },
  { name: "report-dark", drawn: flame, options: { ...desktop, colorScheme: "dark" } },
  { name: "report-phone", drawn: flame, options: { ...phone, colorScheme: "light" } },
  {
    name: "report-diagnosis",
    drawn: flame,
    options: { ...desktop, colorScheme: "light" },
    tab: "Diagnosis",
    part: "Profile",
  },
  {
    name: "report-ledger",
    drawn: flame,
    options: { ...desktop, colorScheme: "light" },
    part: "Ledger",
  },
];
/** @type {Picture} */
const ofSnapshot = {
  name: "gpu-snapshot",
  drawn: "canvas",
  options: { viewport: { width: 1440, height: 1100 }, colorScheme: "light" },
};
/** @type {Picture} */
const ofPlan = {
  name: "plan",
  drawn: ".plan-fits tbody tr:nth-child(20)",
  options: { viewport: { width: 1440, height: 2000 }, colorScheme: "light" },
};
/** @type {Picture} */
const ofNotebook = {
  name: "notebook",
  drawn: ".tidemark",
  options: { viewport: { width: 980, height: 700 }, colorScheme: "light" },
};
/** @type {import("playwright-core").BrowserContextOptions} */
const fleet = { viewport: { width: 1440, height: 900 }, colorScheme: "light" };
const LEAKS = ["notifications", "thumbnails"];
/**
 * What a picture shows that a server finds out only after its start: rows of an answer of the API, and whether it is in them.
 * @typedef {{what: string, path: string, rows: string, isIn: (rows: any[]) => boolean}} Needed
 */
/** @type {Needed} */
const verdicts = {
  what: "a verdict of each service",
  path: "/api/v1/services?steps=2",
  rows: "services",
  isIn: (services) =>
    services.length > 0 &&
    services.every(({ service, verdict }) =>
      LEAKS.includes(service) ? verdict.kind.endsWith("-leak") : verdict.kind !== "none",
    ),
};
/** @type {Needed} */
const linesOfLeaks = {
  what: "the lines of both leaks",
  path: "/api/v1/diagnoses",
  rows: "diagnoses",
  isIn: (diagnoses) =>
    LEAKS.every((leak) =>
      diagnoses.some(({ service, suspects }) => service === leak && suspects.length > 0),
    ),
};
/** @type {Needed} */
const firingAlerts = {
  what: "the alerts for both leaks, with the holder of one, and for the regression",
  path: "/api/v1/alerts",
  rows: "alerts",
  isIn: (alerts) =>
    [...LEAKS, "checkout"].every((leak) =>
      alerts.some(({ service, state }) => service === leak && state === "firing"),
    ) && alerts.some(({ holder }) => holder !== undefined),
};
/** @type {(Picture & {path: string, needs: Needed[]})[]} */
const ofFleet = [
  {
    name: "fleet-services",
    path: "/?since=30d",
    drawn: "text=thumbnails",
    options: fleet,
    needs: [verdicts, firingAlerts],
  },
  {
    name: "fleet-service",
    path: "/service?name=checkout&since=7d",
    drawn: "[data-testid=flame][data-frames]",
    options: fleet,
    needs: [verdicts],
  },
  {
    name: "fleet-heat",
    path: "/service?name=thumbnails&since=30d&chart=instance",
    drawn: "[data-testid=heat][data-rows]",
    options: { ...fleet, viewport: { width: 1440, height: 650 } },
    needs: [],
  },
  {
    name: "fleet-compare",
    path: "/service?name=checkout&since=7d&view=compare",
    drawn: "[aria-label=Differences] .table-row",
    options: { ...fleet, viewport: { width: 1440, height: 1150 } },
    needs: [],
  },
  {
    name: "fleet-verdicts",
    path: "/verdicts?since=30d",
    drawn: "section[aria-label=Verdicts] .table-row",
    options: { ...fleet, viewport: { width: 1440, height: 620 } },
    needs: [verdicts, linesOfLeaks],
  },
  {
    name: "fleet-alerts",
    path: "/alerts",
    drawn: "text=PriceTable.price_for",
    options: { ...fleet, viewport: { width: 1440, height: 760 } },
    needs: [firingAlerts],
  },
];
const PLAN_WORDS = ["--method", "lora", "--batch", "2", "--seq", "4k", "--gpu", "a100-80gb"];
const SNAPSHOT_CASE = "losses kept until the device is full";

async function screenshots() {
  const { values, positionals } = parseArgs({
    options: { only: { type: "string" } },
    allowPositionals: true,
  });
  await build();
  const folder = mkdtempSync(join(tmpdir(), "tidemark-screenshots-"));
  /** The browser that the tests choose; that code is TypeScript. */
  const { module } = await runnerImport(join(root, "test/browser.ts"), { root, logLevel: "warn" });
  const browser = await module.launchBrowser();
  const makers = {
    report: async () => {
      const page = await reportPage(folder, positionals[0]);
      for (const wanted of ofReport) {
        await picture(browser, pathToFileURL(page).href, wanted);
      }
    },
    snapshot: () => picture(browser, pathToFileURL(snapshotPage(folder)).href, ofSnapshot),
    plan: () => picture(browser, pathToFileURL(planPage(folder)).href, ofPlan),
    notebook: () => picture(browser, pathToFileURL(notebookPage(folder)).href, ofNotebook),
    fleet: () =>
      withDemoServer(folder, async (url) => {
        for (const { needs, path, ...wanted } of ofFleet) {
          for (const each of needs) {
            await untilServed(url, each);
          }
          await picture(browser, url + path, wanted);
        }
      }),
  };
  try {
    mkdirSync(images, { recursive: true });
    for (const [name, make] of Object.entries(makers)) {
      if (values.only === undefined || values.only === name) {
        await make();
      }
    }
  } finally {
    await browser.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** @param {string} folder @param {string} [given] a recording @returns {Promise<string>} the page's path */
async function reportPage(folder, given) {
  const recording = given ?? join(folder, "demo.tidemark");
  if (given === undefined) {
    // The plain name may be a version manager's shell script, which would start extra processes.
    const python = (await findInterpreters()).at(-1)?.path ?? "python3";
    process.env.PATH = `${dirname(python)}:${process.env.PATH}`;
    tidemark("run", "-o", recording, "--", basename(python), "examples/inference_service");
  }
  const page = join(folder, "report.html");
  tidemark("report", recording, "-o", page);
  return page;
}

/** Each takes two seconds. Alerts name what a verdict has found a minute later. */
const MOST_TRIES = 240;

/**
 * Runs `serve --demo` while its pages are used.
 * @param {string} folder
 * @param {(url: string) => Promise<void>} use
 */
async function withDemoServer(folder, use) {
  const words = ["serve", "--demo", "--listen", "127.0.0.1:0", "--json", "--log", "warnings"];
  const server = spawn(
    join(root, "bin/tidemark"),
    [...words, "--store", `duckdb:${join(folder, "fleet")}`],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  try {
    let printed = "";
    for await (const chunk of server.stdout) {
      printed += chunk;
      if (printed.trimEnd().endsWith("}")) {
        break;
      }
    }
    await use(JSON.parse(printed).url);
  } finally {
    server.kill("SIGTERM");
  }
}

/** @param {string} url of the server @param {Needed} needed */
async function untilServed(url, { what, path, rows, isIn }) {
  for (let tries = 0; tries < MOST_TRIES; tries++, await sleep(2_000)) {
    const answer = await fetch(url + path);
    if (answer.ok && isIn((await answer.json())[rows])) {
      return;
    }
  }
  throw new SetupError(`the demo's server does not have ${what}; try again later`);
}

/** A snapshot of a training run that keeps each step's loss, until an allocation fails. @param {string} folder */
function snapshotPage(folder) {
  const file = join(folder, "training.pickle");
  const training = DEVICE_CASES.find(({ name }) => name === SNAPSHOT_CASE);
  if (training === undefined) {
    throw new SetupError(`no such case: ${SNAPSHOT_CASE}`);
  }
  writeFileSync(file, pickle(training.make()));
  const page = join(folder, "training.html");
  tidemark("gpu", file, "-o", page);
  return page;
}

/** A plan of a LoRA training run of Llama 3.1 8B. @param {string} folder */
function planPage(folder) {
  const models = JSON.parse(readFileSync(join(root, "test/data/plan/models.json"), "utf8"));
  const model = join(folder, "llama-3.1-8b");
  mkdirSync(model);
  writeFileSync(join(model, "config.json"), JSON.stringify(models["llama-3.1-8b"].config));
  const page = join(folder, "plan.html");
  tidemark("plan", model, ...PLAN_WORDS, "-o", page);
  return page;
}

/**
 * @param {import("playwright-core").Browser} browser
 * @param {string} url of the page
 * @param {Picture} wanted
 */
async function picture(browser, url, { name, options, drawn, tab, part }) {
  const context = await browser.newContext({ ...options, reducedMotion: "reduce" });
  const page = await context.newPage();
  await page.goto(url);
  await page.waitForSelector(drawn);
  // No part of a page of the server is missing.
  await page.getByText("Asking the server").first().waitFor({ state: "detached" });
  // Nothing is selected, because the details would show a path on this machine.
  const file = join(images, `${name}.png`);
  if (tab) {
    await page.getByRole("tab", { name: tab }).click();
  }
  if (part) {
    await page.getByRole("region", { name: part, exact: true }).screenshot({ path: file });
  } else {
    await page.screenshot({ path: file });
  }
  await context.close();
  process.stdout.write(`${file}\n`);
}

/** @param {string[]} args */
function tidemark(...args) {
  const { status } = spawnSync(join(root, "bin/tidemark"), args, { cwd: root, stdio: "inherit" });
  if (status !== 0) {
    throw new SetupError(`tidemark ${args[0]} failed`);
  }
}

await runAsScript(import.meta, screenshots);
