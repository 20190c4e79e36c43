/**
 * Removes the memory that follows the load from each process of a service, so that what is left is growth and steps.
 *
 *   requests known:    RSS = a + b x requests + c x (highest requests so far) + the rest
 *   requests unknown:  RSS = a + s x daily load of the service (../../series/daily_load.ts) + the rest
 *
 * b and c are fitted to changes within hours, where growth is small; s is the share that one process has. What is removed is the
 * difference from the usual load of the service, so that the rest is the memory that a process has at that load: b, c and s
 * are not exact, and the levels of processes are compared.
 *
 * Where it fails: with less than two days of mature processes and no request rate the load is unknown. The result then
 * reports it ({@link WithoutLoad.by}).
 */

import type { Bytes, TimeMs } from "../../../model/base/units.js";
import { dailyLoad, type HourlyLevels, hourly, slopeOf } from "../../series/daily_load.js";
import { firstFrom, reorderedQuantile } from "../../series/medians.js";
import type { Readings } from "../../series/readings.js";
import { median } from "../../series/trend.js";
import type { FleetProcess } from "./fleet_evidence.js";
import { leastSquares } from "./least_squares.js";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** A younger process warms up or fills caches. */
const MATURE_MS = 6 * HOUR_MS;
const FEWEST_DAYS = 2;
const FEWEST_CHANGES = 8;
const FEWEST_OF_SHARE = 12;
/** Hours from which a process has its own memory per request. */
const FEWEST_OF_OWN = 48;
const MOST_SHARE = 4;
/** The range of the load on a day, as a multiple of that on a quiet one, from which these are unlike. */
const UNLIKE = 1.25;
/** Share of the readings that may lie outside the range of the load, at either end. */
const RARE = 0.05;

export interface Unloaded {
  readonly process: FleetProcess;
  readonly rss: Readings;
  /** Requests since its start, at the times of `rss`; null: unknown. */
  readonly work: readonly number[] | null;
}

/** How far the load that was removed rises and falls, as a median over processes by their numbers of readings, so that many
 * short lives do not outweigh long ones; 0: none was. */
export function loadRange(processes: readonly Unloaded[]): Bytes {
  const ranges = processes
    .map(({ process, rss }) => {
      const removed = Float64Array.from(
        rss.values,
        (rest, at) => (process.rss.values[at] as number) - rest,
      );
      const high = reorderedQuantile(removed, 1 - RARE);
      return { range: high - reorderedQuantile(removed, RARE), readings: removed.length };
    })
    .sort((a, b) => a.range - b.range);
  const half = ranges.reduce((sum, { readings }) => sum + readings, 0) / 2;
  let before = 0;
  const middle = ranges.find(({ readings }) => {
    before += readings;
    return before >= half;
  });
  return middle?.range ?? 0;
}

/**
 * Whether a service whose requests are unknown was not seen for a week, and has days on which the load moves memory further than on
 * others. Nothing shows then how much more a working day needs than a weekend.
 */
export function isWeekOpen({ processes, by }: WithoutLoad, endMs: TimeMs): boolean {
  const sinceMs = Math.min(...processes.map(({ rss }) => rss.times[0] ?? endMs));
  return by !== "requests" && endMs - sinceMs < 7 * DAY_MS && haveDaysUnlike(processes);
}

function haveDaysUnlike(processes: readonly Unloaded[]): boolean {
  const days = new Map<number, Bytes>();
  for (const { process, rss } of processes) {
    const { times, values } = rss;
    const last = times.at(-1) ?? 0;
    for (let day = Math.ceil((times[0] ?? 0) / DAY_MS); (day + 1) * DAY_MS <= last; day++) {
      const [from, to] = [firstFrom(times, day * DAY_MS), firstFrom(times, (day + 1) * DAY_MS)];
      let [least, most] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
      for (let at = from; at < to; at++) {
        const removed = (process.rss.values[at] as number) - (values[at] as number);
        least = Math.min(least, removed);
        most = Math.max(most, removed);
      }
      days.set(day, Math.max(days.get(day) ?? 0, most - least));
    }
  }
  const ranges = [...days.values()];
  return Math.max(...ranges) > UNLIKE * Math.min(...ranges);
}

/** The requests that a process had served at these times; null: unknown. */
export function workAt(
  times: readonly number[],
  { rss, work }: Unloaded,
): readonly number[] | null {
  return work === null || work.length === 0
    ? null
    : times.map((time) => work[Math.min(work.length - 1, firstFrom(rss.times, time))] as number);
}

export interface WithoutLoad {
  readonly processes: readonly Unloaded[];
  readonly by: "requests" | "day" | "unknown";
}

export function withoutLoad(processes: readonly FleetProcess[]): WithoutLoad {
  if (processes.every(({ requests }) => requests !== null)) {
    return { processes: withoutRequests(processes), by: "requests" };
  }
  const matured = processes.map(({ rss, startedMs }) => hourly(rss, startedMs + MATURE_MS));
  const load = dailyLoad(matured, FEWEST_DAYS);
  if (load === null) {
    return {
      processes: processes.map((process) => ({ process, rss: process.rss, work: null })),
      by: "unknown",
    };
  }
  const usual = median(
    matured.flatMap(({ first, levels }) =>
      Array.from(levels.keys(), (at) => load((first + at + 0.5) * HOUR_MS)),
    ),
  );
  return {
    processes: processes.map((process, at) => {
      const { times, values } = process.rss;
      const share = shareOf(matured[at] as HourlyLevels, load);
      const rest = values.map((value, at) => value - share * (load(times[at] as number) - usual));
      return { process, rss: { times, values: rest }, work: null };
    }),
    by: "day",
  };
}

/** How much of the service's mean load one process has. */
function shareOf({ first, levels }: HourlyLevels, load: (timeMs: number) => number): number {
  const [usual, changes] = [[] as number[], [] as number[]];
  for (let at = 1; at < levels.length; at++) {
    const change = (levels[at] as number) - (levels[at - 1] as number);
    if (!Number.isNaN(change)) {
      const middle = (first + at - 0.5) * HOUR_MS;
      usual.push(load(middle + HOUR_MS) - load(middle));
      changes.push(change);
    }
  }
  return usual.length < FEWEST_OF_SHARE
    ? 1
    : Math.min(MOST_SHARE, Math.max(0, slopeOf(usual, changes)));
}

function withoutRequests(processes: readonly FleetProcess[]): Unloaded[] {
  const courses = processes.map((process) => {
    const rates = ratesOf(process.requests ?? { times: [], values: [] });
    return { process, rates, ...changesWith(process, rates) };
  });
  const all = joined(courses.map(({ changes }) => changes));
  if (all.length < FEWEST_CHANGES) {
    return processes.map((process) => ({ process, rss: process.rss, work: null }));
  }
  const usual = nonNegative(
    [0, 1, 2].map((at) =>
      joined(courses.map(({ columns }) => columns[at] as Float64Array)),
    ) as Columns,
    all,
  );
  const [usualRate, usualHighest] = (["now", "highest"] as const).map((which) =>
    median(
      courses.flatMap(({ rates }) =>
        Array.from(rates[which].levels).filter((level) => !Number.isNaN(level)),
      ),
    ),
  ) as [number, number];
  return courses.map(({ process, rates, columns, changes }) => {
    const [, byRate, byHighest] =
      changes.length < FEWEST_OF_OWN ? usual : nonNegative(columns, changes);
    const { times, values } = process.rss;
    const now = times.map((time) => levelAt(rates.now, time));
    const rest = values.map((value, at) => {
      const rate = now[at] as number;
      return Number.isNaN(rate)
        ? value
        : value -
            byRate * (rate - usualRate) -
            byHighest * (levelAt(rates.highest, times[at] as number) - usualHighest);
    });
    return { process, rss: { times, values: rest }, work: worked(times, now) };
  });
}

/** Changes of memory from hour to hour, with those of the requests, once the process has run for an hour. */
function changesWith({ rss, startedMs }: FleetProcess, { now, highest }: Rates) {
  const { first, levels } = hourly(rss);
  const [ones, byRate, byHighest, changes] = Array.from(
    { length: 4 },
    () => new Float64Array(levels.length),
  ) as [Float64Array, Float64Array, Float64Array, Float64Array];
  let count = 0;
  for (let at = 0; at + 1 < levels.length; at++) {
    const change = (levels[at + 1] as number) - (levels[at] as number);
    const hour = first + at;
    const [from, to] = [(hour + 0.5) * HOUR_MS, (hour + 1.5) * HOUR_MS];
    const rate = levelAt(now, to) - levelAt(now, from);
    if (hour * HOUR_MS >= startedMs + HOUR_MS && !Number.isNaN(change + rate)) {
      ones[count] = 1;
      byRate[count] = rate;
      byHighest[count] = levelAt(highest, to) - levelAt(highest, from);
      changes[count++] = change;
    }
  }
  const seen = (column: Float64Array) => column.subarray(0, count);
  return {
    columns: [seen(ones), seen(byRate), seen(byHighest)] as Columns,
    changes: seen(changes),
  };
}

/** The sum of requests, with the last known rate where none is known. */
function worked(times: readonly number[], rates: readonly number[]): readonly number[] {
  let [sum, rate] = [0, 0];
  return times.map((time, at) => {
    const now = rates[at] as number;
    rate = Number.isNaN(now) ? rate : now;
    sum += at === 0 ? 0 : (rate * (time - (times[at - 1] as number))) / 1000;
    return sum;
  });
}

/** Ones, changes of the rate, and changes of the highest rate. */
type Columns = [Float64Array, Float64Array, Float64Array];

function joined(parts: readonly Float64Array[]): Float64Array {
  const all = new Float64Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** A constant and two factors that are not negative. */
function nonNegative(columns: Columns, changes: Float64Array): readonly [number, number, number] {
  const both = leastSquares(columns, changes)?.factors;
  if (both !== undefined && (both[1] as number) >= 0 && (both[2] as number) >= 0) {
    return both as [number, number, number];
  }
  const [constant = 0, rate = 0] = leastSquares(columns.slice(0, 2), changes)?.factors ?? [];
  return [constant, Math.max(0, rate), 0];
}

/** Requests a second by hour, and the most of any hour until then. */
interface Rates {
  readonly now: HourlyLevels;
  readonly highest: HourlyLevels;
}

function ratesOf(requests: Readings): Rates {
  const now = hourly(requests);
  let most = 0;
  const highest = now.levels.map((level) => {
    most = Math.max(most, Number.isNaN(level) ? 0 : level);
    return Number.isNaN(level) ? level : most;
  });
  return { now, highest: { first: now.first, levels: highest } };
}

/** Between the middles of hours. NaN: unknown. */
function levelAt({ first, levels }: HourlyLevels, timeMs: number): number {
  const hours = timeMs / HOUR_MS - 0.5;
  const hour = Math.floor(hours);
  const at = hour - first;
  const from = at >= 0 && at < levels.length ? (levels[at] as number) : Number.NaN;
  const to = at >= -1 && at + 1 < levels.length ? (levels[at + 1] as number) : Number.NaN;
  if (Number.isNaN(from) || Number.isNaN(to)) {
    return Number.isNaN(from) ? to : from;
  }
  return from + (hours - hour) * (to - from);
}
