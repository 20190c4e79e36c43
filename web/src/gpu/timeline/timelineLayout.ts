/**
 * The timeline's layout: allocations stacked in the order in which they began. Each pixel column shows the
 * moment of its highest total, so that no peak is lost at any zoom.
 *
 *   order    columns sorted by beginning, so that one pass reads memory sequentially
 *   columns  the column of a moment is computed, not searched, so that a million invisible short lifetimes
 *            cost one comparison each
 *   runs     neighbours thinner than a pixel in the same columns are merged
 *
 * Drawing a million allocations takes a few milliseconds at any zoom.
 */
import { float64At, int32At, uint32At } from "../../../../src/model/base/columns.js";
import type { GpuReplay } from "../../../../src/model/gpu/gpu_replay.js";
import type { MomentHeights } from "./momentHeights.js";

export interface TimelineView {
  /** Moments at the left and right edge. */
  readonly from: number;
  readonly to: number;
  readonly width: number;
  readonly height: number;
  /** Bytes at the upper edge. */
  readonly top: number;
}

/** The allocations by their beginning, which is their stacking order. */
export interface StackedAllocations {
  readonly length: number;
  readonly start: Int32Array;
  readonly end: Int32Array;
  readonly size: Float64Array;
  /** Row of the replay's allocations. */
  readonly row: Uint32Array;
}

/** The moment that each column shows, ascending. */
export function columnMoments(
  heights: MomentHeights,
  { from, to, width }: TimelineView,
): Int32Array {
  const moments = new Int32Array(width);
  for (let column = 0; column < width; column++) {
    const first = Math.floor(from + ((to - from) * column) / width);
    const end = Math.floor(from + ((to - from) * (column + 1)) / width);
    moments[column] = heights.highest(first, Math.max(first + 1, end));
  }
  return moments;
}

export function stackAllocations({ allocations, events }: GpuReplay): StackedAllocations {
  const { length } = allocations;
  // An event begins at most one allocation; allocations older than the trace come first.
  const beginning = new Int32Array(events).fill(-1);
  const row = new Uint32Array(length);
  let placed = 0;
  for (let one = 0; one < length; one++) {
    const start = int32At(allocations.start, one);
    if (start < 0) {
      row[placed++] = one;
    } else {
      beginning[start] = one;
    }
  }
  for (const one of beginning) {
    if (one >= 0) {
      row[placed++] = one;
    }
  }
  return {
    length: placed,
    start: Int32Array.from(row, (one) => int32At(allocations.start, one)),
    end: Int32Array.from(row, (one) => int32At(allocations.end, one)),
    size: Float64Array.from(row, (one) => float64At(allocations.size, one)),
    row,
  };
}

/** Maps moments to columns: the column is estimated from the scale and corrected by one step. */
class ColumnScale {
  readonly #width: number;
  readonly #columnsPerMoment: number;

  constructor(
    readonly moments: Int32Array,
    readonly view: TimelineView,
  ) {
    this.#width = moments.length;
    this.#columnsPerMoment = moments.length / (view.to - view.from);
  }

  /** The first column whose moment is after `event`; the width if there is none. */
  firstAfter(event: number): number {
    const guess = Math.floor((event - this.view.from) * this.#columnsPerMoment);
    let column = Math.max(0, Math.min(this.#width, guess));
    while (column > 0 && int32At(this.moments, column - 1) > event) {
      column--;
    }
    while (column < this.#width && int32At(this.moments, column) <= event) {
      column++;
    }
    return column;
  }
}

/** Fills `pixels` (width * height, top row first). `colours` holds a pixel for each of `stacked`. */
export function drawAllocations(
  { stacked, colours }: { stacked: StackedAllocations; colours: Uint32Array },
  moments: Int32Array,
  view: TimelineView,
  pixels: Uint32Array,
): void {
  const { width, height, top } = view;
  const { start, end, size, length } = stacked;
  const base = new Float64Array(width);
  const bytesToPixels = height / top;
  const scale = new ColumnScale(moments, view);
  const firstMoment = int32At(moments, 0);
  const lastMoment = int32At(moments, width - 1);
  let runFirst = 0;
  let runEnd = 0;
  let runTall = 0;
  let runColour = 0;
  let tallest = 0;
  for (let at = 0; at < length && int32At(start, at) < lastMoment; at++) {
    if (int32At(end, at) < firstMoment) {
      continue;
    }
    const first = int32At(start, at) < firstMoment ? 0 : scale.firstAfter(int32At(start, at));
    if (int32At(moments, first) > int32At(end, at)) {
      continue;
    }
    const past = int32At(end, at) >= lastMoment ? width : scale.firstAfter(int32At(end, at));
    const tall = float64At(size, at) * bytesToPixels;
    if (first === runFirst && past === runEnd && tall < 1 && runTall + tall < 1) {
      runTall += tall;
      if (tall > tallest) {
        tallest = tall;
        runColour = uint32At(colours, at);
      }
      continue;
    }
    if (runTall > 0) {
      fill(runFirst, runEnd, runTall, runColour);
    }
    runFirst = first;
    runEnd = past;
    runTall = tall;
    tallest = tall;
    runColour = uint32At(colours, at);
  }
  if (runTall > 0) {
    fill(runFirst, runEnd, runTall, runColour);
  }

  function fill(first: number, past: number, tall: number, colour: number): void {
    for (let column = first; column < past; column++) {
      const low = float64At(base, column);
      base[column] = low + tall;
      const from = Math.round(low);
      let to = Math.round(low + tall);
      // A thin line between large neighbours.
      if (to - from > 4) {
        to -= 1;
      }
      if (to > height) {
        to = height;
      }
      for (
        let pixel = (height - 1 - from) * width + column;
        pixel > (height - 1 - to) * width + column;
        pixel -= width
      ) {
        pixels[pixel] = colour;
      }
    }
  }
}

/** The allocation at a height of a moment; -1 if there is none. `bytes` is counted from the bottom. */
export function allocationAt(
  { start, end, size, row, length }: StackedAllocations,
  moment: number,
  bytes: number,
): number {
  let below = 0;
  for (let at = 0; at < length && int32At(start, at) < moment; at++) {
    if (moment <= int32At(end, at)) {
      below += float64At(size, at);
      if (below > bytes) {
        return uint32At(row, at);
      }
    }
  }
  return -1;
}

/** A pixel for each of `stacked`, from its allocation's row. */
export function coloursOf(
  { row }: StackedAllocations,
  colour: (row: number) => number,
): Uint32Array {
  return Uint32Array.from(row, colour);
}
