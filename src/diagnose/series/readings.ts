import type { TimeMs } from "../../model/base/units.js";
import type { MemorySeries, Metric } from "../../model/profile/series.js";

/** A metric over time. */
export interface Readings {
  /** Ascending. */
  readonly times: readonly number[];
  readonly values: readonly number[];
}

/** Share of a run; a program may take this long to free everything before it exits. */
const LONGEST_END_SHARE = 0.08;
const FALLEN = 0.9;
/** The last moments are the program's exit; their readings are left out. */
const END_SHARE = 0.02;
const LEAST_END_MS = 400;

/** Readings of one metric of a process at work. `endedMs`: null while the process runs. */
export function readingsOf(
  { timesMs, values }: MemorySeries,
  metric: Metric,
  endedMs: TimeMs | null,
): Readings {
  const known: { times: number[]; values: number[] } = { times: [], values: [] };
  const first = timesMs[0] ?? 0;
  const last = timesMs.at(-1) ?? 0;
  const until = last - Math.max(LEAST_END_MS, (last - first) * END_SHARE);
  values.get(metric)?.forEach((value, i) => {
    const time = timesMs[i] ?? 0;
    if (!Number.isNaN(value) && time <= until) {
      known.times.push(time);
      known.values.push(value);
    }
  });
  if (endedMs === null) {
    return known;
  }
  const kept = readingsAtWork(known, first, last);
  return { times: known.times.slice(0, kept), values: known.values.slice(0, kept) };
}

/**
 * Number of readings of the program at work. A fall shortly before the end, below all readings shortly before
 * it, is the program's exit.
 */
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
