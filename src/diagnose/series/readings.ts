import type { TimeMs } from "../../model/base/units.js";

/** A figure over time. */
export interface Readings {
  /** Ascending. */
  readonly times: readonly number[];
  readonly values: readonly number[];
}

/** Of a run: a program that frees all it has may take so long for it. */
const LONGEST_END_SHARE = 0.08;
const FALLEN = 0.9;

/** How many of the readings are of the program at work: what falls shortly before its end below all that came
 * shortly before that is its end. */
export function readingsAtWork(
  { times, values }: Readings,
  startedMs: TimeMs,
  endedMs: TimeMs,
): number {
  const fromMs = endedMs - (endedMs - startedMs) * LONGEST_END_SHARE;
  const end = times.findIndex((time) => time >= fromMs);
  if (end < 0) {
    return values.length;
  }
  const before = values.slice(Math.max(0, end - (values.length - end)), end);
  const usual = FALLEN * Math.min(...before);
  const fallen = values.findIndex((value, i) => i >= end && value < usual);
  return fallen < 0 ? values.length : fallen;
}
