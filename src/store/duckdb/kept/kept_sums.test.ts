import { expect, it } from "vitest";
import { partsOf } from "../queries/spans.js";
import { KeptSums, type SpanSums, SUMMED } from "./kept_sums.js";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const START = Date.UTC(2026, 8, 10);

function spanOf(startMs: number, rows: number): SpanSums {
  const figures = Object.fromEntries(
    SUMMED.map((name) => [name, new Float64Array(rows)]),
  ) as SpanSums["figures"];
  const stacks = new Uint32Array(rows);
  return { startMs, endMs: startMs + HOUR, stacks, figures, lives: new Map(), mergedMs: 0 };
}

it("keeps sums up to its size, those used last", async () => {
  const sums = new KeptSums();
  const key = { text: "all", service: null };
  // 48 bytes each: two of them fit into 64 MiB.
  for (const hour of [0, 1, 0, 2]) {
    if (sums.find(key, hour * HOUR, (hour + 1) * HOUR) === undefined) {
      await sums.compute(key, (hour + 1) * HOUR, async () => [spanOf(hour * HOUR, 600_000)]);
    }
  }
  const kept = [0, 1, 2].filter((hour) => sums.find(key, hour * HOUR, (hour + 1) * HOUR));
  expect(kept).toEqual([0, 2]);
});

it("keeps what belongs to another service or precedes a change", async () => {
  const sums = new KeptSums();
  const [shop, pay] = ["shop", "pay"].map((service) => ({ text: service, service }));
  if (shop === undefined || pay === undefined) {
    throw new Error("two keys");
  }
  for (const key of [shop, pay]) {
    for (const hour of [0, 1, 2]) {
      await sums.compute(key, (hour + 1) * HOUR, async () => [spanOf(hour * HOUR, 1)]);
    }
  }
  sums.changed("shop", 1.5 * HOUR);
  const kept = (key: typeof shop) =>
    [0, 1, 2].filter((hour) => sums.find(key, hour * HOUR, (hour + 1) * HOUR));
  expect(kept(shop)).toEqual([0]);
  expect(kept(pay)).toEqual([0, 1, 2]);
  sums.changed(null, 2 * HOUR);
  expect(kept(pay)).toEqual([0, 1]);
});

it("cuts a window at the limits of hours and days, without a gap", () => {
  const lengths = (from: number, to: number, now = START + 100 * DAY) =>
    partsOf({ startMs: START + from, endMs: START + to }, now).map(
      ({ startMs, endMs, stepMs, isKept }) =>
        `${(startMs - START) / HOUR}-${(endMs - START) / HOUR} by ${stepMs / HOUR}${isKept ? "" : "!"}`,
    );
  expect(lengths(15.5 * HOUR, 3 * DAY + 9.25 * HOUR)).toEqual([
    "15.5-16 by 0.5!",
    "16-24 by 1",
    "24-72 by 24",
    "72-81 by 1",
    "81-81.25 by 0.25!",
  ]);
  expect(lengths(0, 2 * DAY)).toEqual(["0-48 by 24"]);
  expect(lengths(0.5 * HOUR, 3 * HOUR)).toEqual(["0.5-3 by 2.5!"]);
  // Now is 2:30: what follows is not over.
  expect(lengths(0, DAY, START + 2.5 * HOUR)).toEqual(["0-2 by 1", "2-24 by 22!"]);
  expect(lengths(DAY, DAY)).toEqual([]);
});
