/**
 * The growth rate of a process for `ps` and `top`, computed as for a verdict, from a recording in progress or
 * the readings of a live view.
 */
import { assessGrowth, totalGrowth } from "../../diagnose/index.js";
import { isMappingNamed } from "../../linux/index.js";
import type { Bytes, Millis, Pid, TimeMs } from "../../model/base/units.js";
import { orNull } from "../../model/errors/errors.js";
import { growingRecordingOf, openRecording } from "../../record/index.js";
import type { ProcessRow } from "./process_rows.js";

const MS_PER_HOUR = 3_600_000;
/** Least time between two readings, and least difference, to compute a rate, because heaps fluctuate. */
const SHORTEST_APART_MS: Millis = 60_000;
const SMALLEST_CHANGE: Bytes = 1 << 20;
/** Number of readings that a live view keeps per process. */
const MOST_READINGS = 64;
const POOL_NAMES = /^tidemark-(?:pool|\d+\.pool)\b/;

/** @internal */
export type MeasuredGrowth = Pick<
  ProcessRow,
  | "growthBytesPerHour"
  | "growthLowBytesPerHour"
  | "growthHighBytesPerHour"
  | "minRssBytes"
  | "baselineRssBytes"
>;

/** RSS since a view started, thinned evenly: the longer the time, the further apart the readings. @internal */
export interface Course {
  readonly timesMs: readonly TimeMs[];
  readonly rssBytes: readonly Bytes[];
  readonly leastBytes: Bytes;
  /** Polls so far, and the interval at which one is kept. */
  readonly polls: number;
  readonly every: number;
}

const NO_COURSE: Course = {
  timesMs: [],
  rssBytes: [],
  leastBytes: Number.POSITIVE_INFINITY,
  polls: 0,
  every: 1,
};

/** @internal */
export function withReading(course: Course | undefined, timeMs: TimeMs, rssBytes: Bytes): Course {
  const { timesMs, rssBytes: readings, leastBytes, polls, every } = course ?? NO_COURSE;
  const isKept = polls % every === 0;
  const isFull = isKept && timesMs.length + 1 > MOST_READINGS;
  const keep = <Value>(values: readonly Value[], value: Value): readonly Value[] => {
    const all = isKept ? [...values, value] : values;
    return isFull ? all.filter((_, at) => at % 2 === 0) : all;
  };
  return {
    timesMs: keep(timesMs, timeMs),
    rssBytes: keep(readings, rssBytes),
    leastBytes: Math.min(leastBytes, rssBytes),
    polls: polls + 1,
    every: isFull ? every * 2 : every,
  };
}

/** Only the minimum until there are enough readings to measure growth. @internal */
export function growthIn({ timesMs, rssBytes, leastBytes, polls }: Course): MeasuredGrowth {
  const growth = assessGrowth({ times: timesMs, values: rssBytes });
  return {
    ...(polls > 1 ? { minRssBytes: leastBytes } : {}),
    ...(growth.shape === "short" ? {} : perHour(growth)),
  };
}

/** From the readings of the last `tidemark ps`; nothing if they are too close in time. @internal */
export function growthBetween(change: Bytes, apartMs: Millis): MeasuredGrowth {
  return apartMs < SHORTEST_APART_MS || Math.abs(change) < SMALLEST_CHANGE
    ? {}
    : { growthBytesPerHour: Math.round((change / apartMs) * MS_PER_HOUR) };
}

/** From the recording in progress of the process; nothing if it is not being recorded. @internal */
export function growthInRecording(pid: Pid): MeasuredGrowth {
  const path = isMappingNamed(pid, POOL_NAMES) ? growingRecordingOf(pid) : null;
  const recording = path === null ? null : orNull(() => openRecording(path));
  const series = recording?.series.findLast((one) => one.pid === pid);
  if (series === undefined) {
    return {};
  }
  const { readings, shape, ...growth } = totalGrowth({ series, endedMs: null }, 1);
  const least = readings.values.reduce(
    (low, value) => Math.min(low, value),
    Number.POSITIVE_INFINITY,
  );
  return {
    ...(Number.isFinite(least) ? { minRssBytes: least } : {}),
    ...(shape === "short" ? {} : perHour(growth)),
  };
}

function perHour(growth: { slope: number; low: number; high: number; baseline: Bytes }) {
  const hourly = (slope: number) => Math.round(slope * MS_PER_HOUR);
  return {
    growthBytesPerHour: hourly(growth.slope),
    growthLowBytesPerHour: hourly(growth.low),
    growthHighBytesPerHour: hourly(growth.high),
    baselineRssBytes: Math.round(growth.baseline),
  };
}
