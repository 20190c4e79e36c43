import type { Readings } from "./readings.js";

/** Medians of readings by bins of `binMs` from `fromMs` on. NaN: no reading. Earlier readings are left out. */
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

let copied = new Float64Array(64);

/** Of one part, which stays as it is. `end` is above `from`. */
export function medianOf(values: ArrayLike<number>, from: number, end: number): number {
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
  if (count > copied.length) {
    copied = new Float64Array(2 * count);
  }
  for (let at = 0; at < count; at++) {
    copied[at] = values[from + at] as number;
  }
  return reorderedMedian(copied, 0, count);
}

/** The same, of values that may change their order, without a copy. */
export function reorderedMedian(values: Float64Array, from: number, end: number): number {
  const middle = from + ((end - from) >> 1);
  select(values, middle, from, end - 1);
  const upper = values[middle] as number;
  if ((end - from) % 2 === 1) {
    return upper;
  }
  let lower = Number.NEGATIVE_INFINITY;
  for (let at = from; at < middle; at++) {
    lower = Math.max(lower, values[at] as number);
  }
  return (lower + upper) / 2;
}

/** The value at a share of the way from the least to the greatest one; the order of `values` may change. 0 for none. */
export function reorderedQuantile(values: Float64Array, share: number): number {
  const rank = Math.floor(share * (values.length - 1));
  select(values, rank, 0, values.length - 1);
  return values[rank] ?? 0;
}

/** Puts the value of a rank in its place, lower ones before it and higher ones after it (Hoare 1961, "Algorithm 65: find"). */
function select(values: Float64Array, rank: number, first: number, last: number): void {
  let [low, high] = [first, last];
  while (low < high) {
    const pivot = values[rank] as number;
    let [left, right] = [low, high];
    while (left <= right) {
      while ((values[left] as number) < pivot) {
        left++;
      }
      while ((values[right] as number) > pivot) {
        right--;
      }
      if (left <= right) {
        const value = values[left] as number;
        values[left++] = values[right] as number;
        values[right--] = value;
      }
    }
    if (right < rank) {
      low = left;
    }
    if (rank < left) {
      high = right;
    }
  }
}

/** Index of the first time that is not before a moment; the length if there is none. `times`: ascending. */
export function firstFrom(times: ArrayLike<number>, timeMs: number): number {
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
