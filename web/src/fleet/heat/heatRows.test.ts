import { expect, it } from "vitest";
import type { HeatMapAnswer, HeatMapRow } from "../../../../src/model/wire/heat_map.js";
import {
  cellAt,
  cellOf,
  cursorAt,
  hasLimits,
  heatBox,
  heatRows,
  movedCell,
  rowName,
  timeTicks,
} from "./heatRows.js";

const row = (stream: string, values: (number | null)[], some: Partial<HeatMapRow> = {}) => ({
  ...{ stream, version: "1", host: "h", pod: "", startedMs: 0, limitBytes: 100, values },
  ...some,
});
const answer = (instances: HeatMapRow[]): HeatMapAnswer => ({
  ...{ service: "shop", name: "rssBytes", startMs: 0, stepMs: 10, instances, otherInstances: 0 },
});
const all = answer([
  row("a", [10, 90, 20], { startedMs: 1 }),
  row("b", [null, 40, 60], { startedMs: 3, limitBytes: 60 }),
  row("c", [30, 50, null], { startedMs: 2, odd: { differenceBytes: 9, siblings: 4 } }),
  row("d", [null, null, null]),
]);
const names = ({ rows }: ReturnType<typeof heatRows>) => rows.map(({ stream }) => stream).join("");

it("sorts rows by what is shown, and leaves out those without a value", () => {
  expect(hasLimits(all)).toBe(true);
  expect(names(heatRows(all, "limit", "peak"))).toBe("bac");
  expect(names(heatRows(all, "largest", "peak"))).toBe("abc");
  expect(names(heatRows(all, "largest", "newest"))).toBe("bca");
  expect(names(heatRows(all, "largest", "growth"))).toMatch(/^[bc]{2}a$/);
  expect(names(heatRows(all, "largest", "start"))).toBe("bca");
  const shown = heatRows(all, "limit", "peak");
  expect([shown.whole, shown.steps, shown.odd]).toEqual([[60, 100, 100], 3, 1]);
  expect(heatRows(all, "largest", "peak").whole).toEqual([90, 90, 90]);
  expect(hasLimits(answer([row("a", [1]), row("b", [1], { limitBytes: 0 })]))).toBe(false);
  expect(heatRows(answer([]), "largest", "peak")).toMatchObject({ rows: [], steps: 0 });
});

it("finds the cell at a place, and the next one by key", () => {
  const shown = heatRows(all, "limit", "peak");
  const box = heatBox(shown.rows.length, 600, "fine");
  expect(box.rowHeight).toBe(20);
  const { left, top, width } = box;
  expect(cellAt(shown, box, left, top)).toEqual({ row: 0, step: 0 });
  expect(cellAt(shown, box, left + width - 1, top + 41)).toEqual({ row: 2, step: 2 });
  expect(cellAt(shown, box, 0, 9999)).toEqual({ row: 2, step: 0 });
  expect(movedCell(shown, null, "ArrowDown")).toEqual({ row: 0, step: 2 });
  expect(movedCell(shown, { row: 0, step: 2 }, "ArrowDown")).toEqual({ row: 1, step: 2 });
  expect(movedCell(shown, { row: 0, step: 2 }, "ArrowRight")).toEqual({ row: 0, step: 2 });
  expect(movedCell(shown, { row: 0, step: 2 }, "Home")).toEqual({ row: 0, step: 0 });
  expect(movedCell(shown, { row: 0, step: 2 }, "x")).toBeNull();
});

it("keeps the cursor on its instance and its time when another answer arrives", () => {
  const before = heatRows(all, "limit", "peak");
  const cursor = cursorAt(before, all, { row: 0, step: 2 });
  expect(cellOf(before, all, cursor)).toEqual({ row: 0, step: 2 });
  const after = heatRows(all, "largest", "peak");
  expect(cellOf(after, { startMs: 10, stepMs: 10 }, cursor)).toEqual({ row: 1, step: 1 });
  // Its time is before the new range, then its instance has no row.
  expect(cellOf(after, { startMs: 900, stepMs: 10 }, cursor)).toEqual({ row: 1, step: 0 });
  expect(cellOf(heatRows(answer([]), "largest", "peak"), all, cursor)).toBeNull();
  expect(cursorAt(before, all, null)).toBeNull();
});

it("keeps rows of hundreds of instances visible, and large enough for a finger", () => {
  expect(heatBox(300, 1200, "fine").rowHeight).toBe(2);
  expect(heatBox(300, 380, "coarse").rowHeight).toBe(5);
  expect(heatBox(300, 380, "coarse").left).toBeLessThan(heatBox(300, 1200, "fine").left);
});

it("names rows, and marks round times", () => {
  expect(rowName({ pod: "shop-7f", stream: "0123456789" })).toBe("shop-7f");
  expect(rowName({ pod: "", stream: "0123456789" })).toBe("01234567");
  const start = new Date(2026, 10, 1, 9, 17).getTime();
  const ticks = timeTicks(start, start + 30 * 86_400_000, 10).map((ms) => new Date(ms));
  expect(ticks.length).toBeGreaterThan(3);
  expect(ticks.length).toBeLessThanOrEqual(11);
  expect(timeTicks(start, start + 3_600_000, 8).map((ms) => new Date(ms).getMinutes())).toEqual([
    30, 45, 0, 15,
  ]);
});
