import { expect, test } from "vitest";
import type { MemorySeries, Metric } from "../../model/profile/series.js";
import {
  lastReading,
  levelAtEnd,
  levelBeforeEnd,
  membersOf,
  pssOfTree,
  totalGrowth,
} from "./total_growth.js";

const MIB = 2 ** 20;
const TIMES = Float64Array.from({ length: 60 }, (_, second) => second * 1000);

const series = (pid: number, metrics: Readonly<Record<string, (i: number) => number>>) =>
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
  expect(levelAtEnd(root, members)).toMatchObject({ metric: "rssBytes", bytes: rss(59) });
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
  expect(levelAtEnd(root, members)).toMatchObject({ metric: "treePssBytes", bytes: 88 * MIB });
});

test("without a process there is still one", () => {
  expect(membersOf([])).toBe(1);
});

test("between two readings of PSS, what RSS gains counts, unless processes start or end", () => {
  const tree = (children: (i: number) => number) =>
    series(1, {
      children,
      treeRssBytes: (i) => (i < 8 ? 100 + i : 50) * MIB,
      treePssBytes: (i) => (i === 2 ? 70 * MIB : Number.NaN),
    });
  const course = (children: (i: number) => number) =>
    [...pssOfTree(tree(children)).subarray(0, 9)].map((bytes) => bytes / MIB);
  const none = Number.NaN;
  expect(course(() => 3)).toEqual([none, none, 70, 71, 72, 73, 74, 75, 50]);
  expect(course((i) => (i < 5 ? 3 : 4))).toEqual([none, none, 70, 71, 72, none, none, none, none]);
  // Recordings without that figure.
  expect(course(() => Number.NaN).filter((mib) => mib > 0)).toEqual([70]);
});

test("the level of a tree at its end is not that of a reading long ago", () => {
  const children = {
    ...root,
    values: new Map(root.values).set(
      "children",
      TIMES.map(() => 1),
    ),
  };
  expect(levelAtEnd(children, 2)).toMatchObject({
    metric: "treePssBytes",
    bytes: (60 + 59 - 2) * MIB,
  });
});

test("a tree whose PSS was read often only at first is judged by its RSS", () => {
  const steady = () => 64 * MIB;
  const often = (i: number) => (i < 16 || i === 45 ? steady() : Number.NaN);
  const tree = series(1, { rssBytes: steady, treeRssBytes: steady, treePssBytes: often });
  expect(totalGrowth({ series: tree, endedMs: null }, 4)).toMatchObject({
    metric: "treeRssBytes",
    shape: "flat",
  });
  const known = series(1, { rssBytes: steady, treeRssBytes: steady, treePssBytes: steady });
  expect(totalGrowth({ series: known, endedMs: null }, 4).metric).toBe("treePssBytes");
});

test("a reading during the exit, below what was live until then, is not the level at the end", () => {
  const exits = series(1, { rssBytes: (i) => (i < 59 ? 400 : 106) * MIB });
  const [before, last] = [58, 59].map((i) => exits.timesMs[i]);
  expect(lastReading(exits, "rssBytes")).toEqual({ bytes: 106 * MIB, timeMs: last });
  expect(lastReading(exits, "rssBytes", 390 * MIB)).toEqual({ bytes: 400 * MIB, timeMs: before });
  // Most of what is live was never written, or RSS fell long ago.
  expect(lastReading(exits, "rssBytes", 900 * MIB)?.bytes).toBe(106 * MIB);
  const swapped = series(1, { rssBytes: (i) => (i < 30 ? 400 : 106) * MIB });
  expect(lastReading(swapped, "rssBytes", 390 * MIB)?.bytes).toBe(106 * MIB);
});

test("a tree whose workers ended is below its level", () => {
  const fallen = (at: number) => (i: number) => (i < at ? 352 : 13) * MIB;
  const tree = (at: number) => ({
    series: series(1, { rssBytes: () => 13 * MIB, treeRssBytes: fallen(at) }),
    endedMs: 60_000,
  });
  expect(levelBeforeEnd(totalGrowth(tree(57), 5))).toBe(352 * MIB);
  expect(levelBeforeEnd(totalGrowth(tree(60), 5))).toBeNull();
  expect(levelBeforeEnd(totalGrowth(tree(12), 5))).toBeNull();
});
