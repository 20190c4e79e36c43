/** The report page in a real browser: timeline, tables, every screen, bad input, a million stacks. */
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { writeReport } from "../src/cli/files/report_page.js";
import type { ReportDocument } from "../src/model/documents/report_document.js";
import { LIFETIME_BUCKETS } from "../src/model/profile/profile.js";
import {
  boxOf,
  clickFlame,
  closeBrowser,
  DESKTOP,
  details,
  drawn,
  folder,
  newPagePath,
  noProgress,
  noSidewaysScroll,
  openBrowser,
  openFile,
  openReport,
  PHONE,
  ROW,
  template,
  using,
  words,
} from "./report_page.js";
import { serviceReport } from "./service_report.js";
import { wideReport } from "./wide_report.js";

beforeAll(openBrowser);
afterAll(closeBrowser);

describe("timeline", () => {
  test("a click shows the snapshot nearest to that time", () =>
    using(openReport(serviceReport()), async (page) => {
      const chart = page.getByTestId("memory-chart").locator(".u-over");
      const { width } = await boxOf(chart);
      await chart.click({ position: { x: width / 2, y: 60 } });
      await clickFlame(page, 0, 0.5);
      // Half-way: (232 + 512) / 2 MiB.
      await expect.poll(() => words(page.getByTestId("selected-value"))).toBe("372 MiB");
    }));

  test("the pointer's time is shown since the start and as clock time", () =>
    using(openReport(serviceReport()), async (page) => {
      const { x, y, width } = await boxOf(page.getByTestId("memory-chart").locator(".u-over"));
      await page.mouse.move(x + 0.5 * width, y + 60);
      const readout = page.locator(".timeline-readout").first();
      const start = serviceReport().summary.window.startMs;
      const clock = (ms: number) =>
        page.evaluate((at) => new Date(at).toTimeString().slice(0, 5), ms);
      await expect.poll(() => words(readout)).toMatch(/^\+5:\d\d ?\d\d:\d\d:\d\d/);
      await expect.poll(() => words(readout)).toContain(await clock(start + 300_000));
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
      await expect.poll(() => words(page.locator(".difference"))).toContain("+252 MiB");
      await clickFlame(page, 5, 0.5);
      await expect.poll(() => words(details(page))).toContain("remember");
      await expect.poll(() => words(details(page))).toContain("27.4 MiB → 256 MiB, +229 MiB");
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
      const selected = page.locator(".u-select").first();
      await expect
        .poll(() => selected.evaluate((one) => one.clientWidth))
        .toBeGreaterThan(width / 2);
      await touch("touchEnd", []);
      await expect.poll(() => words(page.locator(".difference"))).toContain("A +1:00 → B +10:00");

      await touch("touchStart", [[x + 0.5 * width, y + 100]]);
      for (const up of [20, 60, 120]) {
        await touch("touchMove", [[x + 0.5 * width, y + 100 - up]]);
      }
      await touch("touchEnd", []);
      await expect.poll(() => page.evaluate(() => scrollY)).toBeGreaterThan(0);
      await expect.poll(() => words(page.locator(".difference"))).toContain("A +1:00 → B +10:00");
    }));
});

describe("tables", () => {
  test("sites sort by any heading, follow the search, and lead to the flame graph", () =>
    using(openReport(serviceReport()), async (page) => {
      await page.getByRole("tab", { name: "Sites" }).click();
      const first = page.locator("[role=grid] [aria-rowindex='2']");
      await expect.poll(() => words(first)).toContain("remember");
      await page.getByRole("columnheader", { name: "Allocated" }).getByRole("button").click();
      await expect.poll(() => words(first)).toContain("matmul");
      await expect.poll(() => words(first)).toContain("8.89 GiB");
      await page.getByLabel("Search functions and files").fill("tokens");
      await expect.poll(() => page.locator("[role=grid] [aria-rowindex]").count()).toBe(1);
      await first.click();
      await drawn(page);
      await expect.poll(() => words(page.locator(".found"))).toContain("1 found");
    }));

  test("source: bars beside the lines of each file, by the chosen figure; the rest is folded", () => {
    const text = Array.from({ length: 200 }, (_, index) => `line ${index + 1} <b>`).join("\n");
    const sources = ["/srv/app/model.py", "/srv/app/history.py"].map((file) => ({
      ...{ file, text, changed: file.endsWith("model.py") },
    }));
    return using(openReport({ ...serviceReport(), sources }), async (page) => {
      await page.getByRole("tab", { name: "Source" }).click();
      const lines = page.getByRole("table");
      await expect.poll(() => words(lines)).toContain("line 41 <b>");
      const bytes = page.locator(".source-allocates").first();
      await expect.poll(() => words(bytes)).toMatch(/256 MiB 41 line 41/);
      const before = await words(bytes);
      await page.getByText("Allocated", { exact: true }).click();
      await expect.poll(() => words(bytes)).not.toBe(before);
      await page.getByRole("button", { name: "lines" }).first().click();
      await expect.poll(() => words(lines)).toContain("line 1 <b>");
      await page.locator(".source-file select").selectOption("/srv/app/model.py");
      await expect.poll(() => words(page.locator(".source"))).toContain("was changed after");
    });
  });

  test("ages distinguish a leak from a cache; lifetimes list short-lived allocations first", () =>
    using(openReport(serviceReport()), async (page) => {
      await page.getByRole("tab", { name: "Ages" }).click();
      const first = page.locator("[role=grid] [aria-rowindex='2']");
      await expect.poll(() => words(first)).toContain("5 min 00 s");
      await page.getByRole("tab", { name: "Lifetimes" }).click();
      await expect.poll(() => words(first)).toContain("matmul");
      await expect.poll(() => words(first)).toContain("100 %");
    }));

  test("rows without a value come last in both directions", () => {
    const report = serviceReport();
    for (const { sites } of report.snapshots) {
      // The first site is the one in `remember`.
      sites.lifetimes.fill(0, 0, LIFETIME_BUCKETS);
    }
    return using(openReport(report), async (page) => {
      await page.getByRole("tab", { name: "Lifetimes" }).click();
      const heading = page.getByRole("columnheader", { name: "Lifetime", exact: true });
      const rows = page.locator("[role=grid] [aria-rowindex]");
      await heading.getByRole("button").click();
      await expect.poll(() => heading.getAttribute("aria-sort")).toBe("descending");
      await expect.poll(() => words(rows.first())).toContain("read_weights");
      await expect.poll(() => words(rows.last())).toContain("remember");
      // Enter on a heading sorts, and does not open the active row.
      await page.keyboard.press("Enter");
      await expect.poll(() => heading.getAttribute("aria-sort")).toBe("ascending");
      await expect.poll(() => words(rows.first())).toContain("dumps");
      await expect.poll(() => words(rows.last())).toContain("remember");
      const names = page.getByRole("columnheader", { name: "Function" });
      await names.getByRole("button").click();
      await expect.poll(() => names.getAttribute("aria-sort")).toBe("ascending");
      await expect.poll(() => heading.getAttribute("aria-sort")).toBe("none");
      await expect.poll(() => words(rows.first())).toContain("_tokenize");
    });
  });

  test("a long table keeps few rows in the page and scrolls by keyboard", () =>
    using(openReport(wideReport(20_000)), async (page) => {
      await page.getByRole("tab", { name: "Sites" }).click();
      const grid = page.getByRole("grid");
      const count = Number(await grid.getAttribute("aria-rowcount"));
      expect(count).toBeGreaterThan(5000);
      const rows = page.locator("[role=grid] [aria-rowindex]");
      await expect.poll(() => rows.count()).toBeLessThan(80);
      // Only the page's own style sheet: a content security policy may forbid others.
      expect(await page.locator("style").count()).toBe(1);
      await grid.focus();
      const active = () => activeRow(page);
      expect(await active()).toBe(2);
      await page.keyboard.press("End");
      await expect.poll(active).toBe(count);
      await page.keyboard.press("ArrowUp");
      await expect.poll(active).toBe(count - 1);
      await page.keyboard.press("PageUp");
      await expect.poll(active).toBeLessThan(count - 5);
      const above = (await active()) ?? 0;
      await page.keyboard.press("PageDown");
      await expect.poll(active).toBe(count - 1);
      expect(count - 1 - above).toBeLessThan(await rows.count());
      await page.keyboard.press("Home");
      await expect.poll(active).toBe(2);
      await page.keyboard.press("PageUp");
      await page.keyboard.press("ArrowDown");
      await expect.poll(active).toBe(3);
      expect(await rows.count()).toBeLessThan(80);
      const place = await page.locator("[aria-rowindex='3'] .place").getAttribute("title");
      await page.keyboard.press("Enter");
      await expect
        .poll(() => page.getByLabel("Search functions and files").inputValue())
        .toBe(place);
    }));

  test("a table that was empty scrolls like any other", () =>
    using(openReport(wideReport(20_000)), async (page) => {
      await page.getByRole("tab", { name: "Sites" }).click();
      const grid = page.getByRole("grid");
      const count = await grid.getAttribute("aria-rowcount");
      await grid.focus();
      await page.keyboard.press("End");
      await expect.poll(() => activeRow(page)).toBe(Number(count));
      const search = page.getByLabel("Search functions and files");
      await search.fill("no such function");
      await expect.poll(() => grid.count()).toBe(0);
      await search.fill("function_4");
      await expect.poll(() => grid.count()).toBe(1);
      // The active row is still one that the table has.
      const found = Number(await grid.getAttribute("aria-rowcount"));
      expect(found).toBeLessThan(Number(count));
      await page.locator(".table-body").hover();
      await page.mouse.wheel(0, 60_000);
      await expect.poll(() => page.locator(`[aria-rowindex='${found}']`).count()).toBe(1);
      await expect.poll(() => activeRow(page)).toBe(found);
    }));

  test("a phone shows fewer columns, each below its heading", () =>
    using(openReport(serviceReport(), PHONE), async (page) => {
      await page.getByRole("tab", { name: "Sites" }).tap();
      const left = async (role: string) => {
        const shown = page.locator(`[role=grid] [role=row]:nth-child(1) > [role=${role}]:visible`);
        const boxes = await Promise.all((await shown.all()).map(boxOf));
        return boxes.map(({ x, width }) => [Math.round(x), Math.round(width)]);
      };
      expect(await left("columnheader")).toHaveLength(3);
      expect(await left("gridcell")).toEqual(await left("columnheader"));
    }));
});

/** aria-rowindex of the row that assistive technology reads; null if it is not visible in its table. */
function activeRow(page: Page): Promise<number | null> {
  return page.getByRole("grid").evaluate((grid) => {
    const row = document.getElementById(grid.getAttribute("aria-activedescendant") ?? "");
    const body = grid.querySelector(".table-body");
    if (row?.getAttribute("aria-selected") !== "true" || body === null) {
      return null;
    }
    const [inner, outer] = [row.getBoundingClientRect(), body.getBoundingClientRect()];
    const isInSight = inner.top >= outer.top - 1 && inner.bottom <= outer.bottom + 1;
    return isInSight ? Number(row.getAttribute("aria-rowindex")) : null;
  });
}

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

  test("dark colours follow the system, and the reader's choice overrides it", () =>
    using(openReport(serviceReport(), { ...DESKTOP, colorScheme: "dark" }), async (page) => {
      const theme = () => page.locator("html").getAttribute("data-theme");
      await expect.poll(() => theme()).toBe("dark");
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
    const path = newPagePath();
    await writeReport(serviceReport(), path, noProgress, template);
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
      expect(await fault(page)).toContain("contains no recording");
    });
    const other = { ...serviceReport(), schema: "tidemark.report/9" } as unknown as ReportDocument;
    await using(openReport(other), async (page) => {
      expect(await fault(page)).toContain('"tidemark.report/9"');
    });
  });

  test("without a template it names the command to run", async () => {
    await expect(
      writeReport(serviceReport(), join(folder, "x.html"), noProgress, join(folder, "none.html")),
    ).rejects.toThrow(/TM-E012.*npm run build/);
    await expect(
      writeReport(serviceReport(), join(folder, "no/such/x.html"), noProgress, template),
    ).rejects.toThrow(/TM-E004/);
  });
});

describe("a million stacks", () => {
  test("are drawn by visible parts, zoomed, searched and reversed", () =>
    using(openReport(wideReport(1_000_000)), async (page) => {
      await drawn(page);
      const flame = page.getByTestId("flame");
      const drawnRectangles = async () => Number(await flame.getAttribute("data-rectangles"));
      await expect.poll(() => drawnRectangles()).toBeGreaterThan(100);
      // Never more than the pixels of the visible rows can show separately.
      const { width, height } = await boxOf(flame);
      await expect.poll(() => drawnRectangles()).toBeLessThan(width * Math.ceil(height / ROW + 1));
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

  // One page for recordings and heaps: React and the charts are half of it.
  test("the empty page stays small", () => {
    expect(statSync(template).size).toBeLessThan(512 * 1024);
  });
});
