/** The pages of `tidemark heap -o` and `heap diff -o` for a live program's heap, in a real browser. */

import { execFile } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { writeReport } from "../src/cli/files/report_page.js";
import { heapDocument } from "../src/inspect/live/heap.js";
import { float64At, uint32At } from "../src/model/base/columns.js";
import type { HeapDiffJson } from "../src/model/documents/heap/heap_document.js";
import type { HeapPageDocument } from "../src/model/documents/heap/heap_page.js";
import { TreeKind } from "../src/model/heap/heap_tree.js";
import { anyInterpreter } from "./environment.js";
import { start, type Waiting } from "./python_program.js";
import {
  boxOf,
  closeBrowser,
  folder,
  newPagePath,
  noProgress,
  noSidewaysScroll,
  openBrowser,
  openFile,
  openReport,
  PHONE,
  template,
  using,
  words,
} from "./report_page.js";
import { tidemark } from "./run.js";
import { serviceReport } from "./service_report.js";

const SECRET = "hunter2-of-the-program";
const PROGRAM = `
import os, gc
class Session:
    def __init__(self, user):
        self.user, self.history = user, [float(n) for n in range(20)]
class Cache:
    pass
class Link:
    pass
CACHE = Cache()
CACHE.hits = {"hit %d" % n: [n, float(n)] for n in range(30000)}
CACHE.pages = [bytearray(300000 * (n + 1)) for n in range(5)]
SESSIONS = {"session %d" % n: Session("${SECRET} %d" % n) for n in range(2000)}
GONE = [complex(n) for n in range(20000)]
KEYED = {key: bytearray(40000) for key in [b"bytes key", 2**70, 1.5, (1, "bytes key"), frozenset({7})]}
CHAIN = None
for n in range(20000):
    link = Link(); link.next, CHAIN = CHAIN, link
def say():
    gc.collect(); os.write(1, b"{}\\n"); os.read(0, 1)
say()
GONE = None
SESSIONS.update({"late %d" % n: Session("${SECRET}") for n in range(3000)})
class Newcomer:
    __slots__ = ("n",)
LATE = [Newcomer() for n in range(5000)]
say()
`;
const run = promisify(execFile);
const files = { a: join(folder, "a.heap"), b: join(folder, "b.heap") };
const pages = { heap: newPagePath(), diff: newPagePath() };
let program: Waiting;
let shown: HeapPageDocument;

beforeAll(async () => {
  await openBrowser();
  program = await start([anyInterpreter().path, "-c", PROGRAM]);
  const pid = String(program.pid);
  const pause = ["--max-pause", "60s", "--quiet"];
  await run(tidemark, ["heap", pid, "--retained", "--save", files.a, ...pause]);
  const { document, tree } = await heapDocument({
    target: pid,
    exact: false,
    graph: true,
    maxPauseMs: 60_000,
    onPlan: () => {},
    wantsValue: false,
    wantsTree: true,
    draw: null,
  });
  shown = { schema: "tidemark.heapPage/1", title: "heap of <svc>", heap: document, tree };
  await writeReport(shown, pages.heap, noProgress, template);
  await program.go();
  await run(tidemark, ["heap", pid, "--retained", "--save", files.b, ...pause]);
});
afterAll(async () => {
  await program?.stop();
  await closeBrowser();
});

const map = (page: Page) => page.getByTestId("heap-map");
const crumbs = (page: Page) => page.getByRole("navigation", { name: "Position in the map" });
const line = (page: Page, name: RegExp) =>
  page.getByRole("treeitem").filter({ hasText: name }).first();

/** Opens a line of the tree by its name, and with it the map. */
async function open(page: Page, ...names: RegExp[]): Promise<void> {
  for (const name of names) {
    await line(page, name).click();
  }
}

describe("the page of a heap", () => {
  test("the tree leads to the holder, the map and the breadcrumbs follow", () =>
    using(openFile(pages.heap), async (page) => {
      await expect.poll(() => page.title()).toBe("heap of <svc> - Tidemark");
      const tiles = async () => Number(await map(page).getAttribute("data-tiles"));
      await expect.poll(tiles).toBeGreaterThan(20);
      const before = await tiles();
      await open(page, /^\S*\s*module __main__/, /^\S*\s*CACHE/, /\.hits/);
      const details = page.getByTestId("heap-details");
      await expect
        .poll(() => words(details))
        .toMatch(
          /^module __main__ → CACHE → \.hits dict retains \d.*MiB .* in 1[12]\d k objects;.* at 0x/,
        );
      await expect
        .poll(() => words(crumbs(page)))
        .toMatch(/All.*module __main__.*›\s*CACHE ›\s*\.hits/);
      await expect.poll(() => map(page).getAttribute("aria-label")).toContain(".hits");
      await expect.poll(() => words(line(page, /30\.0 k × list/))).toMatch(/MiB/);
      await map(page).press("Backspace");
      await expect.poll(() => words(crumbs(page))).toMatch(/CACHE \S+ MiB, \d+ %$/);
      await crumbs(page).getByRole("button", { name: /^All/ }).click();
      await expect.poll(tiles).toBe(before);
    }));

  test("a click on a rectangle zooms into it", () =>
    using(openFile(pages.heap), async (page) => {
      await open(page, /^\S*\s*module __main__/, /^\S*\s*CACHE/);
      await expect.poll(() => map(page).getAttribute("aria-label")).toContain("CACHE");
      const { width, height } = await boxOf(map(page));
      // The largest of what CACHE holds begins at the upper left; its name is in its first line.
      await map(page).click({ position: { x: width * 0.02, y: 30 } });
      await expect
        .poll(() => words(page.getByTestId("heap-details")))
        .toMatch(/CACHE → \.(hits|pages)/);
      await expect.poll(() => page.locator("[role=treeitem][aria-selected=true]").count()).toBe(1);
      await map(page).hover({ position: { x: width / 2, y: height / 2 } });
      await expect.poll(() => words(page.locator(".heap-selected"))).toMatch(/(B|iB), .* of all$/);
    }));

  test("a list of buffers is filled by them", () =>
    using(openFile(pages.heap), async (page) => {
      const { tree } = shown as { tree: NonNullable<HeapPageDocument["tree"]> };
      const pagesRow = tree.steps.findIndex((steps) => steps.at(-1) === ".pages");
      await open(page, /^\S*\s*module __main__/, /^\S*\s*CACHE/, /\.pages/);
      await expect.poll(() => map(page).getAttribute("aria-label")).toContain(".pages");
      await page.mouse.move(0, 0);
      const sizes = Array.from(tree.retained)
        .filter((_, row) => tree.parent[row] === pagesRow && tree.kind[row] === TreeKind.object)
        .sort((a, b) => b - a);
      expect(sizes).toHaveLength(5);
      const { width, height } = await boxOf(map(page));
      const filled = () =>
        map(page).evaluate((node) => {
          const canvas = node as HTMLCanvasElement;
          const context = canvas.getContext("2d", { willReadFrequently: true });
          const data = context?.getImageData(0, 0, canvas.width, canvas.height).data ?? [];
          const counts = new Map<string, number>();
          for (let at = 0; at < data.length; at += 4) {
            const colour = data.slice(at, at + 3).join();
            counts.set(colour, (counts.get(colour) ?? 0) + 1);
          }
          return Math.max(...counts.values());
        });
      // Five bytearrays of one colour, nearly all of the list: all but gaps, names and the head. The map is drawn
      // after it is named.
      await expect.poll(async () => (await filled()) / (width * height)).toBeGreaterThan(0.85);
    }));

  test("types are searched and sorted; a selected one shows its paths from roots", () =>
    using(openFile(pages.heap), async (page) => {
      const grid = page.getByRole("grid", { name: "Types" });
      await grid.getByRole("button", { name: "Objects" }).click();
      const first = () => words(grid.getByRole("row").nth(1));
      const most = [...shown.heap.types].sort((a, b) => b.objects - a.objects)[0];
      await expect.poll(first).toContain(most?.type);
      await page.getByLabel("Search types").fill("session");
      await expect.poll(first).toMatch(/^__main__\.Session 2,000 /);
      await grid.getByRole("row").nth(1).click();
      const places = page.getByTestId("heap-places");
      await expect
        .poll(() => words(places))
        .toContain("module __main__ → SESSIONS → 2,000 × __main__.Session");
      await places.getByRole("button", { name: /SESSIONS/ }).click();
      await expect
        .poll(() => words(page.getByTestId("heap-details")))
        .toMatch(/SESSIONS → 2,000 × __main__\.Session __main__\.Session retains/);
      await page.getByLabel("Search types").fill("float");
      await grid
        .getByRole("row")
        .filter({ hasText: /^float/ })
        .click();
      await expect.poll(() => words(places)).toMatch(/30\.0 k objects .*CACHE → \.hits → 30\.0 k/);
      await expect.poll(() => words(places)).toMatch(/40\.0 k objects .*SESSIONS.* → … float/);
      await page.getByLabel("Search types").fill("no such type");
      await expect
        .poll(() => words(page.locator(".heap-types")))
        .toContain("No type has that name");
    }));

  test("a holder leads to its place in the map", () =>
    using(openFile(pages.heap), async (page) => {
      const holders = page.getByRole("grid", { name: "Holders" });
      await holders.getByRole("row").filter({ hasText: "CACHE → .hits" }).first().click();
      await expect.poll(() => words(page.getByTestId("heap-details"))).toContain("CACHE → .hits");
      await expect.poll(() => words(page.getByLabel("Holders").first())).toContain("MiB");
    }));

  test("rows add up to the whole, and a chain of 20,000 leaves room for the rest", () => {
    const { heap, tree } = shown as { tree: NonNullable<HeapPageDocument["tree"]> } & typeof shown;
    expect(tree.rows).toBeLessThan(30_000);
    const own = tree.retained.slice();
    for (let row = 1; row < tree.rows; row++) {
      own[uint32At(tree.parent, row)] =
        float64At(own, uint32At(tree.parent, row)) - float64At(tree.retained, row);
    }
    expect(Math.min(...own)).toBeGreaterThan(-1);
    expect(Math.abs(float64At(tree.retained, 0) / heap.totals.bytes - 1)).toBeLessThan(0.05);
    expect(tree.steps.some((steps) => steps.at(-1) === "SESSIONS")).toBe(true);
  });

  test("names are shown, values are not", () => {
    // Here the program's source is an argument of its command, so it is shown, as in ps.
    const { target: _, ...heap } = shown.heap;
    const embedded = JSON.stringify([heap, shown.tree?.steps, shown.tree?.typeNames]);
    expect(embedded.includes(SECRET)).toBe(false);
    expect(embedded.includes("bytes key")).toBe(false);
    // Bytes that are not text would appear as characters that no name contains.
    const odd = (shown.tree?.steps ?? []).flat().filter((step) => /[^\x20-\x7e…]/.test(step));
    expect(odd).toEqual([]);
  });

  test("on a phone, in the dark", () =>
    using(openFile(pages.heap, { ...PHONE, colorScheme: "dark" }), async (page) => {
      await noSidewaysScroll(page);
      await expect
        .poll(() => page.evaluate(() => getComputedStyle(document.body).backgroundColor))
        .toBe("rgb(13, 18, 22)");
      await page.getByRole("button", { name: "Light colours" }).click();
      await open(page, /^\S*\s*module __main__/);
      await expect.poll(() => map(page).getAttribute("aria-label")).toContain("module __main__");
      await noSidewaysScroll(page);
    }));

  test("without a graph the types are shown, with the reason for the missing rest", () => {
    const { holders: _, ...census } = shown.heap;
    const page: HeapPageDocument = {
      ...shown,
      heap: { ...census, limits: ["so many objects need 9 TiB of memory here"] },
      tree: null,
    };
    const path = newPagePath();
    return using(
      writeReport(page, path, noProgress, template).then(() => openFile(path)),
      async (opened) => {
        await expect.poll(() => words(opened.locator("body"))).toContain("need 9 TiB");
        await expect
          .poll(() => words(opened.locator("main")))
          .toMatch(/No object graph.*Types.*dict/);
      },
    );
  });

  test("a report document still opens as a report", () =>
    using(openReport(serviceReport()), async (page) => {
      await expect.poll(() => words(page.locator("header"))).toContain("Peak RSS");
    }));
});

describe("the page of two heaps", () => {
  beforeAll(async () => {
    const { stdout } = await run(tidemark, ["heap", "diff", files.a, files.b, "--json"]);
    const diff = JSON.parse(stdout) as HeapDiffJson;
    expect(diff.limits).toEqual([]);
    const page = { schema: "tidemark.heapDiffPage/1", title: "a -> b", diff } as const;
    await writeReport(page, pages.diff, noProgress, template);
  });

  test("what appeared, grew and disappeared, by type and by holder", () =>
    using(openFile(pages.diff), async (page) => {
      const types = page.getByRole("region", { name: "By type" });
      const holders = page.getByRole("region", { name: "By holder" });
      await expect
        .poll(() => words(holders))
        .toMatch(/module __main__ → SESSIONS dict grew \+.* \+3,000/);
      await page.getByRole("button", { name: /^appeared/ }).click();
      await expect.poll(() => words(types)).toMatch(/__main__\.Newcomer appeared \+.* \+5,000/);
      await page.getByRole("button", { name: /^went/ }).click();
      await expect.poll(() => words(types)).toMatch(/complex went −.* −20\.0 k/);
      await expect.poll(() => words(holders)).toMatch(/GONE|No such holder/);
      await page.getByRole("button", { name: /^all changes/ }).click();
      await page.getByLabel("Search").fill("session");
      await expect.poll(() => words(types)).toMatch(/__main__\.Session grew \+.* \+3,000/);
      expect(await words(types)).not.toContain("Newcomer");
      await noSidewaysScroll(page);
    }));

  test("on a phone", () =>
    using(openFile(pages.diff, PHONE), async (page) => {
      await noSidewaysScroll(page);
      await expect
        .poll(() => words(page.getByRole("region", { name: "By type" })))
        .toContain("Session");
    }));
});

describe("-o", () => {
  test("writes both pages, prints their paths, and does not overwrite its input", async () => {
    const page = newPagePath();
    const pid = String(program.pid);
    const heap = await run(tidemark, ["heap", pid, "-o", page, "--max-pause", "60s", "--json"]);
    expect(JSON.parse(heap.stdout)).toMatchObject({
      schema: "tidemark.written/1",
      format: "html",
      files: [{ file: page }],
    });
    const diff = newPagePath();
    await run(tidemark, ["heap", "diff", files.a, files.b, "-o", diff, "--quiet"]);
    for (const path of [page, diff]) {
      await using(openFile(path), async (opened) => {
        await expect.poll(() => words(opened.locator("main"))).toContain("SESSIONS");
      });
    }
    const before = readFileSync(files.a);
    const other = join(folder, "other.html");
    writeFileSync(other, "mine");
    for (const refused of [
      ["diff", files.a, files.b, "-o", files.a],
      [pid, "-o", other, "--to", "dict"],
      [pid, "-o", join(folder, "none", "heap.html"), "--max-pause", "60s"],
    ]) {
      const { code, stderr } = await run(tidemark, ["heap", ...refused]).then(
        () => ({ code: 0, stderr: "" }),
        (error: { code: number; stderr: string }) => error,
      );
      expect(code).toBe(2);
      expect(stderr).toMatch(/TM-E00[24]/);
    }
    expect(readFileSync(files.a).equals(before)).toBe(true);
    expect(readFileSync(other, "utf8")).toBe("mine");
    expect(existsSync(join(folder, "none"))).toBe(false);
  });
});
