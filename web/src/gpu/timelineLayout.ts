/**
 * The timeline's picture: every allocation in the order in which it began, each upon those before it. A
 * pixel column stands for the moment of its highest total, so that no peak is lost at any zoom, and an
 * allocation costs as many steps as it has columns: a million of them are drawn in one pass.
 */
import type { GpuAllocationColumns, GpuReplay } from "../../../src/model/gpu_replay.js";

export interface TimelineView {
  /** Moments at the left and right edge. */
  readonly from: number;
  readonly to: number;
  readonly width: number;
  readonly height: number;
  /** Bytes at the upper edge. */
  readonly top: number;
}

/** The moment that each column shows, ascending. */
export function columnMoments(
  { requested }: GpuReplay,
  { from, to, width }: TimelineView,
): Int32Array {
  const moments = new Int32Array(width);
  for (let column = 0; column < width; column++) {
    const first = Math.floor(from + ((to - from) * column) / width);
    const end = Math.max(first + 1, Math.floor(from + ((to - from) * (column + 1)) / width));
    let highest = Math.min(first, requested.length - 1);
    for (let moment = highest; moment < end && moment < requested.length; moment++) {
      if (requested[moment]! > requested[highest]!) highest = moment;
    }
    moments[column] = highest;
  }
  return moments;
}

/** Rows of the allocations by their beginning: the order in which they lie upon each other. */
export function stackingOrder({ start, length }: GpuAllocationColumns): Uint32Array {
  return Uint32Array.from({ length }, (_, row) => row).sort((a, b) => start[a]! - start[b]!);
}

/** Fills `pixels` (width * height, top row first). `colour` gives a row's pixel. */
export function drawAllocations(
  allocations: GpuAllocationColumns,
  order: Uint32Array,
  moments: Int32Array,
  { width, height, top }: TimelineView,
  colour: (row: number) => number,
  pixels: Uint32Array,
): void {
  const base = new Float64Array(width);
  const scale = height / top;
  const { start, end, size } = allocations;
  for (const row of order) {
    const first = firstAfter(moments, start[row]!);
    if (first === width || moments[first]! > end[row]!) continue;
    const tall = size[row]! * scale;
    const pixel = colour(row);
    for (let column = first; column < width && moments[column]! <= end[row]!; column++) {
      const low = base[column]!;
      base[column] = low + tall;
      const from = Math.round(low);
      let to = Math.round(low + tall);
      // A thin line between large neighbours.
      if (to - from > 4) to -= 1;
      for (let y = from; y < to && y < height; y++) {
        pixels[(height - 1 - y) * width + column] = pixel;
      }
    }
  }
}

/** The allocation at a height of a moment; -1 where there is none. `bytes` is counted from below. */
export function allocationAt(
  { start, end, size }: GpuAllocationColumns,
  order: Uint32Array,
  moment: number,
  bytes: number,
): number {
  let below = 0;
  for (const row of order) {
    if (start[row]! < moment && moment <= end[row]!) {
      below += size[row]!;
      if (below > bytes) return row;
    }
  }
  return -1;
}

/** The first column whose moment lies behind an event. */
function firstAfter(moments: Int32Array, event: number): number {
  let low = 0;
  let high = moments.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (moments[middle]! <= event) low = middle + 1;
    else high = middle;
  }
  return low;
}
