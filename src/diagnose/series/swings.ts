/**
 * Memory that rises and falls again, which neither a rate nor a level describes:
 *
 *      /\              /| /| /|
 *     /  \            / |/ |/ |         at least one significant fall after the first third of the window
 *   _/    \___     __/                  (earlier ones are start-up)
 *   fell back       swings
 */
import { formatBytesBriefly } from "../../model/base/numbers.js";
import type { Bytes } from "../../model/base/units.js";
import type { Readings } from "./readings.js";

/** Smallest fall: bytes, share of the highest level, and share of the range. */
const SMALLEST_FALL_BYTES: Bytes = 3_000_000;
const SMALLEST_FALL_SHARE = 0.1;
const SMALLEST_FALL_OF_RANGE = 0.2;
/** The peaks of swings that do not grow differ by noise. */
const MOST_ABOVE_PEAKS = 1.05;

export interface Swings {
  readonly peaks: readonly Bytes[];
  /** The lowest level after each peak. */
  readonly troughs: readonly Bytes[];
  /** Whether it rose significantly after the last trough. */
  readonly isRising: boolean;
  /** Whether it rose significantly before the first peak. */
  readonly rose: boolean;
}

/** null if memory does not fall significantly after the first third of the window. */
export function swingsOf({ times, values }: Readings): Swings | null {
  const first = values[0] ?? 0;
  const highest = values.reduce((most, value) => Math.max(most, value), first);
  const lowest = values.reduce((least, value) => Math.min(least, value), first);
  const least = Math.max(
    SMALLEST_FALL_BYTES,
    SMALLEST_FALL_SHARE * highest,
    SMALLEST_FALL_OF_RANGE * (highest - lowest),
  );
  const settledMs = (times[0] ?? 0) + ((times.at(-1) ?? 0) - (times[0] ?? 0)) / 3;
  const [peaks, troughs]: [Bytes[], Bytes[]] = [[], []];
  let [high, low] = [first, first];
  let direction: "level" | "up" | "down" = "level";
  let rose = false;
  let fellMs = Number.NEGATIVE_INFINITY;
  values.forEach((value, i) => {
    high = direction === "down" ? high : Math.max(high, value);
    low = direction === "up" ? low : Math.min(low, value);
    if (direction !== "down" && high - value >= least) {
      peaks.push(high);
      direction = "down";
      low = value;
      fellMs = times[i] ?? 0;
    } else if (direction !== "up" && value - low >= least) {
      if (direction === "down") {
        troughs.push(low);
      } else {
        rose = true;
      }
      direction = "up";
      high = value;
    }
  });
  const isRising = peaks.length === troughs.length;
  return peaks.length === 0 || fellMs < settledMs
    ? null
    : { peaks, troughs: isRising ? troughs : [...troughs, low], isRising, rose };
}

/** Whether memory swings several times, and what it reached in the last swing is no more than what it had reached before. */
export function isWithinSwings(readings: Readings): boolean {
  const swings = swingsOf(readings);
  const earlier = swings?.peaks.slice(0, swings.isRising ? undefined : -1) ?? [];
  const last = readings.values.slice(-Math.ceil(readings.values.length / 3));
  const highest = (some: Iterable<Bytes>) => Math.max(...some);
  return earlier.length > 0 && highest(last) <= MOST_ABOVE_PEAKS * highest(earlier);
}

/** "rose to 46 MiB and fell back to 15 MiB", "swings between 15 MiB and 26 MiB". `endBytes`: the level at the end. */
export function swingsText({ peaks, troughs, isRising, rose }: Swings, endBytes: Bytes): string {
  const [peak, trough] = [peaks[0] ?? endBytes, troughs[0] ?? endBytes];
  if (peaks.length > 1) {
    const high = peaks.reduce((most, bytes) => Math.max(most, bytes), peak);
    const low = troughs.reduce((least, bytes) => Math.min(least, bytes), trough);
    return `swings between ${formatBytesBriefly(low)} and ${formatBytesBriefly(high)}`;
  }
  const first = rose
    ? `rose to ${formatBytesBriefly(peak)}`
    : `began at ${formatBytesBriefly(peak)}`;
  return isRising
    ? `${first}, fell to ${formatBytesBriefly(trough)} and rose again to ${formatBytesBriefly(endBytes)}`
    : `${first} and fell back to ${formatBytesBriefly(endBytes)}`;
}
