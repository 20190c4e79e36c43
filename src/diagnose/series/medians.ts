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
    medians.set(group, end - at === 1 ? (values[at] as number) : median(values.slice(at, end)));
    at = end;
  }
  return medians;
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
