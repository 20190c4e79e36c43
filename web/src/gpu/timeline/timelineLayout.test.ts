/** Compares the fast layout with a simple one, which checks every allocation for every column. */

import { describe, expect, test } from "vitest";
import { float64At, int32At, itemAt, uint32At } from "../../../../src/model/base/columns.js";
import { randomFrom } from "../../../../src/model/base/random.fixture.js";
import type { GpuReplay } from "../../../../src/model/gpu/gpu_replay.js";
import { MomentHeights } from "./momentHeights.js";
import {
  allocationAt,
  columnMoments,
  drawAllocations,
  stackAllocations,
  type TimelineView,
} from "./timelineLayout.js";

/** A replay of `events` events that begin and end allocations at random, sizes as `sizeOf` gives them. */
function replayOf(seed: number, events: number, sizeOf: (random: number) => number): GpuReplay {
  const random = randomFrom(seed);
  const start: number[] = [];
  const end: number[] = [];
  const size: number[] = [];
  const live: number[] = [];
  const begin = (event: number) => {
    live.push(start.length);
    start.push(event);
    end.push(events);
    size.push(sizeOf(random()));
  };
  for (let before = 0; before < 5; before++) {
    begin(-1);
  }
  for (let event = 0; event < events; event++) {
    if (random() < 0.5 || live.length === 0) {
      begin(event);
    } else {
      end[itemAt(live.splice(Math.floor(random() * live.length), 1), 0)] = event;
    }
  }
  const requested = new Float64Array(events + 1);
  for (let moment = 0; moment <= events; moment++) {
    start.forEach((first, row) => {
      if (first < moment && moment <= itemAt(end, row)) {
        requested[moment] = float64At(requested, moment) + itemAt(size, row);
      }
    });
  }
  const allocations = {
    length: start.length,
    start: Int32Array.from(start),
    end: Int32Array.from(end),
    size: Float64Array.from(size),
  };
  return { events, requested, allocations } as unknown as GpuReplay;
}

/** Rows that are drawn in a column, by their beginning. */
function heldAt({ allocations }: GpuReplay, moment: number): number[] {
  return Array.from({ length: allocations.length }, (_, row) => row)
    .filter(
      (row) => int32At(allocations.start, row) < moment && moment <= int32At(allocations.end, row),
    )
    .sort((a, b) => int32At(allocations.start, a) - int32At(allocations.start, b) || a - b);
}

const VIEWS: readonly [from: number, to: number, width: number][] = [
  [0, 301, 100],
  [0, 301, 700],
  [37.4, 91.9, 60],
  [250.2, 262.2, 333],
  [0, 12, 40],
  [289, 301, 7],
];

describe("the layout of a trace", () => {
  test.each(VIEWS)("from %d to %d in %d columns: each column its highest moment", (...view) => {
    const [from, to, width] = view;
    const replay = replayOf(3, 300, (random) => Math.ceil(random * 1000));
    const moments = columnMoments(new MomentHeights(replay.requested), {
      ...{ from, to, width },
      height: 1,
      top: 1,
    });
    moments.forEach((moment, column) => {
      const first = Math.floor(from + ((to - from) * column) / width);
      const last = Math.max(first + 1, Math.floor(from + ((to - from) * (column + 1)) / width));
      const heights = replay.requested.subarray(first, last);
      expect(moment).toBeGreaterThanOrEqual(first);
      expect(moment).toBeLessThan(last);
      expect(replay.requested[moment]).toBe(Math.max(...heights));
    });
  });

  test.each(VIEWS)("from %d to %d in %d columns: every allocation where it belongs", (...place) => {
    const [from, to, width] = place;
    for (const seed of [1, 2, 5]) {
      // Sizes of whole pixels: nothing is thinner than a pixel, nothing is rounded.
      const replay = replayOf(seed, 300, (random) => 1 + Math.floor(random * 4));
      const top = Math.max(...replay.requested);
      const view: TimelineView = { from, to, width, height: top, top };
      const moments = columnMoments(new MomentHeights(replay.requested), view);
      const stacked = stackAllocations(replay);
      const pixels = new Uint32Array(width * top);
      const colours = Uint32Array.from(stacked.row, (row) => row + 1);
      drawAllocations({ stacked, colours }, moments, view, pixels);
      moments.forEach((moment, column) => {
        const plain: number[] = [];
        for (const row of heldAt(replay, moment)) {
          plain.push(...new Array<number>(float64At(replay.allocations.size, row)).fill(row + 1));
        }
        const drawn = Array.from({ length: top }, (_, y) =>
          uint32At(pixels, (top - 1 - y) * width + column),
        );
        expect(drawn).toEqual([...plain, ...new Array<number>(top - plain.length).fill(0)]);
        plain.forEach((colour, y) => {
          expect(allocationAt(stacked, moment, y)).toBe(colour - 1);
        });
        expect(allocationAt(stacked, moment, plain.length)).toBe(-1);
      });
    }
  });

  test("allocations thinner than a pixel keep their total height", () => {
    const replay = replayOf(9, 2000, () => 1);
    const top = Math.max(...replay.requested);
    const view: TimelineView = { from: 0, to: 2001, width: 150, height: 20, top };
    const moments = columnMoments(new MomentHeights(replay.requested), view);
    const stacked = stackAllocations(replay);
    const pixels = new Uint32Array(view.width * view.height);
    const colours = new Uint32Array(stacked.length).fill(7);
    drawAllocations({ stacked, colours }, moments, view, pixels);
    moments.forEach((moment, column) => {
      let drawn = 0;
      for (let y = 0; y < view.height; y++) {
        drawn += pixels[y * view.width + column] === 7 ? 1 : 0;
      }
      const exact = (float64At(replay.requested, moment) * view.height) / top;
      expect(Math.abs(drawn - exact)).toBeLessThanOrEqual(1);
    });
  });
});

test("the highest of any range is found without a full scan", () => {
  const random = randomFrom(4);
  const values = Float64Array.from({ length: 1000 }, () => Math.floor(random() * 50));
  const heights = new MomentHeights(values);
  for (let round = 0; round < 3000; round++) {
    const from = Math.floor(random() * 1000);
    const to = from + 1 + Math.floor(random() * (1000 - from));
    const range = values.subarray(from, to);
    const highest = Math.max(...range);
    expect(heights.highest(from, to)).toBe(from + range.indexOf(highest));
  }
  expect(heights.highest(1000, 1001)).toBe(999);
});
