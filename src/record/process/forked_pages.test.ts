import { expect, test } from "vitest";
import { ForkedPages } from "./forked_pages.js";

/** Private memory and RSS at each poll, in MB. */
function turn(series: number, ...polls: readonly (readonly [uss: number, rss: number])[]): boolean {
  const pages = new ForkedPages();
  polls.forEach(([uss, rss], n) => {
    const row = { timeMs: n, series };
    pages.polled([
      { ...row, metric: "rssBytes", value: rss * 1e6 },
      { ...row, metric: "ussBytes", value: uss * 1e6 },
    ]);
  });
  return pages.turnPrivate;
}

test("private memory that grows under a constant RSS is pages becoming private", () => {
  expect(turn(1, [2, 100], [4, 100], [9, 101])).toBe(true);
  expect(turn(1, [2, 100], [4, 100])).toBe(false);
});

test("equal growth of both is the child's own memory, and the program itself shares nothing", () => {
  expect(turn(1, [2, 100], [40, 138])).toBe(false);
  expect(turn(0, [2, 100], [40, 100])).toBe(false);
});

test("no result before private memory was read", () => {
  const pages = new ForkedPages();
  pages.polled([{ timeMs: 1, series: 1, metric: "rssBytes", value: 1e8 }]);
  expect(pages.turnPrivate).toBe(false);
});
