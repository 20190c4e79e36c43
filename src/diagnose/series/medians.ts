import type { Readings } from "./readings.js";
import { median } from "./trend.js";

/** Medians of readings by group; `groupOf` must not descend over time. `fromMs`, `toMs`: only readings of these times. */
export function mediansOf(
  { times, values }: Readings,
  groupOf: (timeMs: number) => number,
  fromMs = Number.NEGATIVE_INFINITY,
  toMs = Number.POSITIVE_INFINITY,
): Map<number, number> {
  const medians = new Map<number, number>();
  let at = firstFrom(times, fromMs);
  while (at < times.length && (times[at] as number) <= toMs) {
    const group = groupOf(times[at] as number);
    let end = at + 1;
    while (
      end < times.length &&
      (times[end] as number) <= toMs &&
      groupOf(times[end] as number) === group
    ) {
      end++;
    }
    medians.set(group, medianOf(values, at, end));
    at = end;
  }
  return medians;
}

/** The same for groups of equal length: of `binMs` from `fromMs` on. By group; NaN: no reading. Earlier readings are left out. */
export function binnedMedians(
  { times, values }: Readings,
  { fromMs, binMs }: { readonly fromMs: number; readonly binMs: number },
  { startMs, endMs }: { readonly startMs: number; readonly endMs: number },
): Float64Array {
  let at = firstFrom(times, Math.max(startMs, fromMs));
  const last = firstFrom(times, endMs + 1) - 1;
  const binAt = (index: number) => Math.floor(((times[index] as number) - fromMs) / binMs);
  const medians = new Float64Array(last < at ? 0 : binAt(last) + 1).fill(Number.NaN);
  while (at <= last) {
    const bin = binAt(at);
    const nextMs = fromMs + (bin + 1) * binMs;
    let end = at + 1;
    while (end <= last && (times[end] as number) < nextMs) {
      end++;
    }
    medians[bin] = medianOf(values, at, end);
    at = end;
  }
  return medians;
}

const FEW = 16;
const sorted = new Float64Array(FEW);

/** Of one part, without a copy for the usual few. `end` is above `from`. */
export function medianOf(values: readonly number[], from: number, end: number): number {
  const [a, b, c] = [values[from], values[from + 1], values[from + 2]] as [number, number, number];
  switch (end - from) {
    case 1:
      return a;
    case 2:
      return (a + b) / 2;
    case 3:
      return Math.max(Math.min(a, b), Math.min(Math.max(a, b), c));
  }
  const count = end - from;
  if (count > FEW) {
    return median(values.slice(from, end));
  }
  // Insertion sort: faster than a sorted copy of so few.
  for (let at = 0; at < count; at++) {
    const value = values[from + at] as number;
    let place = at;
    while (place > 0 && (sorted[place - 1] as number) > value) {
      sorted[place] = sorted[place - 1] as number;
      place--;
    }
    sorted[place] = value;
  }
  const middle = count >> 1;
  const upper = sorted[middle] as number;
  return count % 2 === 1 ? upper : ((sorted[middle - 1] as number) + upper) / 2;
}

/** Index of the first time that is not before a moment; the length if there is none. `times`: ascending. */
export function firstFrom(times: readonly number[], timeMs: number): number {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle] as number) < timeMs) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}
