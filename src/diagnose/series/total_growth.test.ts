import { expect, test } from "vitest";
import type { MemorySeries, Metric } from "../../model/profile/series.js";
import { levelAtEnd, membersOf, totalGrowth } from "./total_growth.js";

const MIB = 2 ** 20;
const TIMES = Float64Array.from({ length: 60 }, (_, second) => second * 1000);

const series = (pid: number, metrics: Partial<Record<Metric, (i: number) => number>>) =>
  ({
    pid,
    timesMs: TIMES,
    values: new Map(
      Object.entries(metrics).map(([metric, at]) => [
        metric as Metric,
        Float64Array.from(TIMES, (_, i) => at(i)),
      ]),
    ),
  }) satisfies MemorySeries;

const rss = (i: number) => (60 + i) * MIB;
/** PSS is read rarely: the last time at 30 s. */
const pss = (i: number) => (i % 10 === 0 && i <= 30 ? rss(i) - 2 * MIB : Number.NaN);
const root = series(1, { rssBytes: rss, treeRssBytes: rss, treePssBytes: pss });

const lived = (one: MemorySeries, ms: number | null) => ({
  series: one,
  startedMs: 0,
  endedMs: ms,
});

test("the steps of a launcher do not make a tree", () => {
  const shell = lived(series(2, { rssBytes: (i) => (i === 0 ? 3 * MIB : Number.NaN) }), 300);
  const members = membersOf([lived(root, 60_000), shell, lived(series(3, {}), 20)]);
  expect(members).toBe(1);
  expect(levelAtEnd(root, members)).toEqual({ metric: "rssBytes", bytes: rss(59) });
  expect(totalGrowth({ series: root, endedMs: null }, members).metric).toBe("rssBytes");
});

test.each([
  ["that still runs", 9, null],
  ["that ran for longer", 9, 2_000],
  ["that was large", 90, 300],
])("a second process %s makes a tree, whose level is PSS", (_, mib, endedMs) => {
  const second = lived(series(2, { rssBytes: () => mib * MIB }), endedMs);
  const members = membersOf([lived(root, null), second]);
  expect(members).toBe(2);
  expect(levelAtEnd(root, members)).toEqual({ metric: "treePssBytes", bytes: 88 * MIB });
});

test("without a process there is still one", () => {
  expect(membersOf([])).toBe(1);
});
