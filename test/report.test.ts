/** The report page in a real browser, opened from disk as a reader would. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Browser, BrowserContextOptions, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { writeReport } from "../src/cli/report_page.js";
import type { ProfileLook } from "../src/model/profile.js";
import type { ReportDocument } from "../src/model/report.js";
import { launchBrowser } from "./browser.js";
import { serviceReport } from "./service_report.js";
import { wideReport } from "./wide_report.js";

const root = fileURLToPath(new URL("..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "tidemark-report-"));
const template = join(folder, "web/index.html");
const DESKTOP = { viewport: { width: 1280, height: 900 } };
const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };
const ROW = 20;

const untold = async () => {};

let browser: Browser;

beforeAll(async () => {
  // A build of its own: what lies in dist/ may be older than the sources. A process of its own: here
  // NODE_ENV is "test", which would bring React's development half.
  execFileSync(
    process.execPath,
    ["node_modules/vite/bin/vite.js", "build", "web", "--outDir", join(folder, "web")],
    { cwd: root, env: { ...process.env, NODE_ENV: "production" }, stdio: "pipe" },
  );
  browser = await launchBrowser();
});

afterAll(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

interface OpenPage {
  page: Page;
  /** Requests other than for the page itself, console errors and warnings, uncaught errors. */
  complaints: string[];
}

async function openFile(path: string, options: BrowserContextOptions = DESKTOP): Promise<OpenPage> {
  const context = await browser.newContext({ reducedMotion: "reduce", ...options });
  context.setDefaultTimeout(30_000);
  const page = await context.newPage();
  const complaints: string[] = [];
  const address = pathToFileURL(path).href;
  page.on("request", (request) => {
    if (request.url() !== address) complaints.push(`request ${request.url()}`);
  });
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.goto(address);
  await page.waitForSelector("header, [role=alert]").catch(() => {
    throw new Error(`the page stayed empty: ${complaints.join("; ")}`);
  });
  return { page, complaints };
}

let written = 0;
async function openReport(
  report: ReportDocument,
  options?: BrowserContextOptions,
): Promise<OpenPage> {
  const path = join(folder, `report-${written++}.html`);
  await writeReport(report, path, untold, template);
  return openFile(path, options);
}

async function using(
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

/** Clicks into the flame graph: a row, and a place from 0 to 1 of the width. */
async function clickFlame(page: Page, row: number, across: number): Promise<void> {
  const flame = page.getByTestId("flame");
  await drawn(page);
  const { width } = await boxOf(flame);
  await flame.click({ position: { x: across * width, y: row * ROW + ROW / 2 } });
}

async function drawn(page: Page): Promise<void> {
  await page.waitForSelector("[data-testid=flame][data-frames]");
}

async function boxOf(
  locator: Locator,
): Promise<{ x: number; y: number; width: number; height: number }> {
  const box = await locator.boundingBox();
  if (box === null) throw new Error("not in sight");
  return box;
}

/** What a reader sees, with every gap as one space. */
async function words(locator: Locator): Promise<string> {
  return (await locator.innerText()).replace(/\s+/g, " ").trim();
}

const details = (page: Page) => page.locator("#flame-selected");
const noSidewaysScroll = async (page: Page) =>
  expect(
    await page.evaluate(() => document.documentElement.scrollWidth - innerWidth),
  ).toBeLessThanOrEqual(0);

describe("what the page says", () => {
  test("the headline names peak, end, growth, top sites and limits", () =>
    using(openReport(serviceReport()), async (page) => {
      const head = page.locator("header");
      for (const said of [
        "+8:26",
        "+1,530 MiB/h",
        "256 MiB",
        "remember",
        "history.py:41",
        "50 %",
      ]) {
        expect(await words(head)).toContain(said);
      }
      await page.getByText("What could not be seen").click();
      await expect.poll(() => words(head)).toContain("started with a cleared environment");
      expect(await page.title()).toBe("serve.tidemark - Tidemark");
    }));

  test("a run that ended tidily begins at its fullest look, and an empty end says so", () => {
    const report = serviceReport();
    const last = report.looks[report.looks.length - 1] as ProfileLook;
    const nothing = new Float64Array(last.sites.length);
    const sites = {
      ...last.sites,
      liveBytes: nothing,
      liveObjects: nothing,
      liveVariance: nothing,
    };
    const end: ProfileLook = { ...last, timeMs: last.timeMs + 1000, sites };
    return using(openReport({ ...report, looks: [...report.looks, end] }), async (page) => {
      const head = page.locator("header");
      expect(await words(head)).toContain("256 MiB (50 %) live at +10:00 from remember");
      expect(await words(head)).toMatch(/512 MiB ± \S+ MiB at \+10:00/);
      await page.getByLabel("At", { exact: true }).selectOption({ label: "+10:01 (end)" });
      await expect
        .poll(() => words(head))
        .toContain("Nothing that was sampled is live at the end.");
      expect(await words(head)).not.toMatch(/\(0\S* %\) live/);
      await page.getByLabel("At", { exact: true }).selectOption({ index: 0 });
      await expect.poll(() => words(head)).toContain("live at +12.0 s from read_weights");
    });
  });

  test("missing PSS, missing samples and missing readings are named", () =>
    using(openReport(serviceReport({ withPss: false, withSamples: false })), async (page) => {
      const body = page.locator("body");
      expect(await words(body)).toContain("PSS could not be read");
      for (const tab of ["Flame graph", "Sites", "Ages", "Lifetimes"]) {
        await page.getByRole("tab", { name: tab }).click();
        expect(await words(page.getByRole("tabpanel"))).toContain("No samples");
      }
    }));

  test("a title and names from outside cannot become markup", () => {
    const report = serviceReport();
    const name = '</script><img src=x onerror="throw 1"><!--';
    const strings = report.tables.strings.map((text) => (text === "remember" ? name : text));
    return using(
      openReport({ ...report, title: name, tables: { ...report.tables, strings } }),
      async (page) => {
        expect(await page.title()).toContain(name);
        await page.getByRole("tab", { name: "Sites" }).click();
        expect(await words(page.getByRole("tabpanel"))).toContain(name);
      },
    );
  });
});

describe("flame graph", () => {
  test("a click finds its rectangle, zooms to it, and the breadcrumb leads back", () =>
    using(openReport(serviceReport()), async (page) => {
      await clickFlame(page, 5, 0.25);
      await expect.poll(() => words(details(page))).toContain("remember");
      expect(await words(page.getByTestId("source"))).toBe("/srv/app/history.py:41");
      expect(await words(page.getByTestId("selected-value"))).toBe("256 MiB");
      expect(await page.getByTestId("source-link").getAttribute("href")).toBe(
        "vscode://file/srv/app/history.py:41",
      );
      // Zoomed: what was at the left quarter now fills the width.
      await clickFlame(page, 5, 0.95);
      expect(await words(details(page))).toContain("remember");
      await page.getByRole("navigation", { name: "Zoom" }).getByText("all live bytes").click();
      await clickFlame(page, 4, 0.7);
      expect(await words(details(page))).toContain("read_weights");
      expect(await words(details(page))).toContain("native 100 %");
    }));

  test("the link to the editor follows the reader's template, and runs no script", () =>
    using(openReport(serviceReport()), async (page) => {
      await clickFlame(page, 5, 0.25);
      await page.locator(".link-template summary").click();
      const field = page.getByLabel("Link template with {file} and {line}");
      await field.fill("idea://open?file={file}&line={line}");
      await expect
        .poll(() => page.getByTestId("source-link").getAttribute("href"))
        .toBe("idea://open?file=/srv/app/history.py&line=41");
      await field.fill("javascript:alert(1)//{file}");
      await expect.poll(() => page.getByTestId("source-link").count()).toBe(0);
    }));

  test("search tells the matched share and steps through what it found", () =>
    using(openReport(serviceReport()), async (page) => {
      await drawn(page);
      await page.keyboard.press("/");
      await page.keyboard.type("model.py");
      const found = page.locator(".found");
      // load_model twice and read_weights and embed: 128 + 64 + 16 of 512 MiB.
      await expect.poll(() => words(found)).toContain("4 found, 41 % of the width");
      await page.getByRole("button", { name: "Next match" }).click();
      await expect.poll(() => words(details(page))).toContain("load_model");
      await page.getByLabel("Search functions and files").fill("/(/");
      await expect.poll(() => words(found)).toContain("cannot be read");
    }));

  test("reversed, allocating functions come first and their callers below", () =>
    using(openReport(serviceReport()), async (page) => {
      await drawn(page);
      await page.keyboard.press("r");
      await clickFlame(page, 1, 0.25);
      await expect.poll(() => words(details(page))).toContain("remember");
      await clickFlame(page, 5, 0.5);
      await expect.poll(() => words(details(page))).toContain("<module>");
      expect(await words(page.getByTestId("selected-value"))).toBe("256 MiB");
    }));

  test("roots below: the same graph, upside down", () =>
    using(openReport(serviceReport()), async (page) => {
      await page.getByRole("button", { name: "Flames" }).click();
      const flame = page.getByTestId("flame");
      await drawn(page);
      const { width, height } = await boxOf(flame);
      await flame.click({ position: { x: width / 4, y: height - 5 * ROW - ROW / 2 } });
      await expect.poll(() => words(details(page))).toContain("remember");
    }));

  test("figures and filters change what is shown", () =>
    using(openReport(serviceReport()), async (page) => {
      const whole = async () => {
        await clickFlame(page, 0, 0.5);
        return words(page.getByTestId("selected-value"));
      };
      expect(await whole()).toBe("512 MiB");
      await page.getByRole("button", { name: "Allocated" }).click();
      await expect.poll(whole).toBe("13.2 GiB");
      await page.getByRole("button", { name: "Live" }).click();
      await page.getByLabel("Thread", { exact: true }).selectOption({ label: "pool-0 4247" });
      await expect.poll(whole).toBe("56.0 MiB");
      await page.getByLabel("Label", { exact: true }).selectOption("endpoint=/embed");
      await expect.poll(whole).toBe("16.0 MiB");
      await page.getByLabel("Label", { exact: true }).selectOption("");
      await page.getByLabel("Thread", { exact: true }).selectOption("");
      await page.getByLabel("Allocator", { exact: true }).selectOption("mapped");
      await expect.poll(whole).toBe("64.0 MiB");
      await page.getByLabel("Allocator", { exact: true }).selectOption("");
      await page.getByLabel("Process", { exact: true }).selectOption({ index: 2 });
      await expect.poll(() => words(page.getByRole("tabpanel"))).toContain("pass these filters");
    }));

  test("the keyboard walks, zooms in and out, and switches views", () =>
    using(openReport(serviceReport()), async (page) => {
      await drawn(page);
      await page.getByTestId("flame").focus();
      const shows = (name: string) => expect.poll(() => words(details(page))).toContain(name);
      await page.keyboard.press("ArrowDown");
      await shows("Everything");
      for (const name of ["<module>", "main", "run"]) {
        await page.keyboard.press("ArrowDown");
        await shows(name);
      }
      await page.keyboard.press("ArrowRight");
      await shows("load_model");
      await page.keyboard.press("ArrowDown");
      await shows("read_weights");
      await page.keyboard.press("Enter");
      const crumbs = page.getByRole("navigation", { name: "Zoom" });
      await expect.poll(() => words(crumbs)).toContain("read_weights");
      await page.keyboard.press("Escape");
      await expect.poll(() => words(crumbs)).not.toContain("read_weights");
      await page.keyboard.press("Home");
      await expect.poll(() => words(crumbs)).toBe("all live bytes");
      await page.keyboard.press("2");
      expect(await page.getByRole("tab", { name: "Sites" }).getAttribute("aria-selected")).toBe(
        "true",
      );
      await page.keyboard.press("?");
      await expect.poll(() => words(page.getByRole("dialog"))).toContain("Keyboard");
      await page.keyboard.press("Escape");
      await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
    }));
});

describe("timeline", () => {
  test("a click shows the look nearest to that time", () =>
    using(openReport(serviceReport()), async (page) => {
      const chart = page.getByTestId("memory-chart").locator(".u-over");
      const { width } = await boxOf(chart);
      await chart.click({ position: { x: width / 2, y: 60 } });
      await clickFlame(page, 0, 0.5);
      // Half-way: (232 + 512) / 2 MiB.
      await expect.poll(() => words(page.getByTestId("selected-value"))).toBe("372 MiB");
    }));

  test("a drag compares two times; the wider rectangle is what grew", () =>
    using(openReport(serviceReport()), async (page) => {
      const { x, y, width } = await boxOf(page.getByTestId("memory-chart").locator(".u-over"));
      await page.mouse.move(x + 0.1 * width, y + 60);
      await page.mouse.down();
      await page.mouse.move(x + 0.6 * width, y + 60, { steps: 4 });
      await page.mouse.move(x + 0.995 * width, y + 60, { steps: 4 });
      await page.mouse.up();
      await expect.poll(() => words(page.locator(".difference"))).toContain("A +1:00 → B +10:00");
      expect(await words(page.locator(".difference"))).toContain("+252 MiB");
      await clickFlame(page, 5, 0.5);
      await expect.poll(() => words(details(page))).toContain("remember");
      expect(await words(details(page))).toContain("27.4 MiB → 256 MiB, +229 MiB");
      await page.getByLabel("Width", { exact: true }).selectOption("before");
      await clickFlame(page, 4, 0.4);
      await expect.poll(() => words(details(page))).toContain("read_weights");
      await page.getByRole("button", { name: "End comparison" }).click();
      await expect.poll(() => page.locator(".difference").count()).toBe(0);
    }));

  test("a finger drags across the chart, and still scrolls the page", () =>
    using(openReport(serviceReport(), PHONE), async (page) => {
      const { x, y, width } = await boxOf(page.getByTestId("memory-chart").locator(".u-over"));
      const finger = await page.context().newCDPSession(page);
      const touch = (type: "touchStart" | "touchMove" | "touchEnd", points: [number, number][]) =>
        finger.send("Input.dispatchTouchEvent", {
          type,
          touchPoints: points.map(([toX, toY]) => ({ x: toX, y: toY })),
        });
      await touch("touchStart", [[x + 0.1 * width, y + 60]]);
      for (const part of [0.2, 0.4, 0.7, 0.995]) {
        await touch("touchMove", [[x + part * width, y + 60]]);
      }
      expect(
        await page
          .locator(".u-select")
          .first()
          .evaluate((one) => one.clientWidth),
      ).toBeGreaterThan(width / 2);
      await touch("touchEnd", []);
      await expect.poll(() => words(page.locator(".difference"))).toContain("A +1:00 → B +10:00");

      await touch("touchStart", [[x + 0.5 * width, y + 100]]);
      for (const up of [20, 60, 120]) await touch("touchMove", [[x + 0.5 * width, y + 100 - up]]);
      await touch("touchEnd", []);
      await expect.poll(() => page.evaluate(() => scrollY)).toBeGreaterThan(0);
      expect(await words(page.locator(".difference"))).toContain("A +1:00 → B +10:00");
    }));
});

describe("tables", () => {
  test("sites sort by any heading, follow the search, and lead to the flame graph", () =>
    using(openReport(serviceReport()), async (page) => {
      await page.getByRole("tab", { name: "Sites" }).click();
      const first = page.locator("[role=grid] [aria-rowindex='2']");
      expect(await words(first)).toContain("remember");
      await page.getByRole("columnheader", { name: "Allocated" }).getByRole("button").click();
      await expect.poll(() => words(first)).toContain("matmul");
      expect(await words(first)).toContain("8.89 GiB");
      await page.getByLabel("Search functions and files").fill("tokens");
      await expect.poll(() => page.locator("[role=grid] [aria-rowindex]").count()).toBe(1);
      await first.click();
      await drawn(page);
      await expect.poll(() => words(page.locator(".found"))).toContain("1 found");
    }));

  test("ages tell a leak from a cache; lifetimes put the churn on top", () =>
    using(openReport(serviceReport()), async (page) => {
      await page.getByRole("tab", { name: "Ages" }).click();
      const first = page.locator("[role=grid] [aria-rowindex='2']");
      expect(await words(first)).toContain("5 min 00 s");
      await page.getByRole("tab", { name: "Lifetimes" }).click();
      await expect.poll(() => words(first)).toContain("matmul");
      expect(await words(first)).toContain("100 %");
    }));

  test("a long table keeps few rows in the page and scrolls by keyboard", () =>
    using(openReport(wideReport(20_000)), async (page) => {
      await page.getByRole("tab", { name: "Sites" }).click();
      const grid = page.getByRole("grid");
      expect(Number(await grid.getAttribute("aria-rowcount"))).toBeGreaterThan(5000);
      expect(await page.locator("[role=grid] [aria-rowindex]").count()).toBeLessThan(80);
      await grid.focus();
      await page.keyboard.press("End");
      await expect
        .poll(() => page.locator("[role=grid] [aria-selected=true]").getAttribute("aria-rowindex"))
        .toBe(await grid.getAttribute("aria-rowcount"));
    }));
});

describe("every screen", () => {
  test.each(["light", "dark"] as const)(
    "a phone in %s: no sideways scroll in any view",
    (colorScheme) =>
      using(openReport(serviceReport(), { ...PHONE, colorScheme }), async (page) => {
        for (const tab of await page.getByRole("tab").all()) {
          await tab.tap();
          await noSidewaysScroll(page);
        }
      }),
  );

  test("dark follows the system and the reader's choice wins", () =>
    using(openReport(serviceReport(), { ...DESKTOP, colorScheme: "dark" }), async (page) => {
      const theme = () => page.locator("html").getAttribute("data-theme");
      expect(await theme()).toBe("dark");
      await page.getByRole("button", { name: "Light colours" }).click();
      await expect.poll(theme).toBe("light");
    }));

  test("every control has a name", () =>
    using(openReport(serviceReport()), async (page) => {
      const nameless = await page.evaluate(() =>
        [...document.querySelectorAll("button, input, select, a, canvas")]
          .filter((element) => !element.closest("[role=img]"))
          .filter((element) => {
            const labelled = (element as HTMLInputElement).labels?.[0]?.textContent;
            return !(element.getAttribute("aria-label") || element.textContent?.trim() || labelled);
          })
          .map((element) => element.outerHTML),
      );
      expect(nameless).toEqual([]);
    }));
});

describe("bad input", () => {
  const fault = (page: Page) => words(page.getByRole("alert"));
  const damage = async (change: (html: string) => string): Promise<string> => {
    const path = join(folder, `damaged-${written++}.html`);
    await writeReport(serviceReport(), path, untold, template);
    writeFileSync(path, change(readFileSync(path, "utf8")));
    return path;
  };
  const body = /(id="tidemark-document">)([^<]*)/;

  test.each([
    ["cut off", (html: string) => html.replace(body, (_, tag, text) => tag + text.slice(0, 4000))],
    [
      "changed",
      (html: string) =>
        html.replace(
          body,
          (_, tag, text) => `${tag}${text.slice(0, 900)}AAAAAAAA${text.slice(908)}`,
        ),
    ],
    ["not base64", (html: string) => html.replace(body, (_, tag) => `${tag}§§§§`)],
    ["empty", (html: string) => html.replace(body, (_, tag) => tag)],
  ])("a document that is %s: one line", async (_, change) =>
    using(openFile(await damage(change)), async (page) => {
      expect(await fault(page)).toMatch(/damaged/);
    }),
  );

  test("no document, or one of another schema: one line", async () => {
    await using(openFile(template), async (page) => {
      expect(await fault(page)).toContain("holds no recording");
    });
    const other = { ...serviceReport(), schema: "tidemark.report/9" } as unknown as ReportDocument;
    await using(openReport(other), async (page) => {
      expect(await fault(page)).toContain('"tidemark.report/9"');
    });
  });

  test("no template: says what to run", async () => {
    await expect(
      writeReport(serviceReport(), join(folder, "x.html"), untold, join(folder, "none.html")),
    ).rejects.toThrow(/TM-E012.*npm run build/);
    await expect(
      writeReport(serviceReport(), join(folder, "no/such/x.html"), untold, template),
    ).rejects.toThrow(/TM-E004/);
  });
});

describe("a million stacks", () => {
  test("are drawn by what is in sight, zoomed, searched and turned", () =>
    using(openReport(wideReport(1_000_000)), async (page) => {
      await drawn(page);
      const flame = page.getByTestId("flame");
      const drawnRectangles = async () => Number(await flame.getAttribute("data-rectangles"));
      expect(await drawnRectangles()).toBeGreaterThan(100);
      // Never more than the pixels of the rows in sight can hold apart.
      const { width, height } = await boxOf(flame);
      expect(await drawnRectangles()).toBeLessThan(width * Math.ceil(height / ROW + 1));
      await clickFlame(page, 2, 0.3);
      await expect.poll(() => words(details(page))).toContain("function_");
      await page.keyboard.press("/");
      await page.keyboard.type("function_77");
      await expect.poll(() => words(page.locator(".found"))).toMatch(/[\d,]+ found/);
      await page.getByLabel("Search functions and files").fill("");
      await page.getByRole("button", { name: "Callers" }).click();
      await clickFlame(page, 1, 0.3);
      await expect.poll(() => words(details(page))).toContain("function_");
    }));

  test("the empty page stays small", () => {
    expect(statSync(template).size).toBeLessThan(400_000);
  });
});
