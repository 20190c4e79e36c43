/**
 * Removes the memory that follows the load from each process of a service, so that what is left is growth and steps.
 *
 *   requests known:    RSS = a + b x requests + c x (highest requests so far) + the rest
 *   requests unknown:  RSS = a + s x daily load of the service (../series/daily_load.ts) + the rest
 *
 * b and c are fitted to changes within hours, where growth is small; s is the share that one process has.
 *
 * Where it fails: with less than two days of mature processes and no request rate the load is unknown. The result then
 * reports it ({@link WithoutLoad.by}).
 */

import type { Bytes } from "../../model/base/units.js";
import { dailyLoad, hourly, slopeOf } from "../series/daily_load.js";
import { firstFrom, reorderedQuantile } from "../series/medians.js";
import type { Readings } from "../series/readings.js";
import type { FleetProcess } from "./fleet_evidence.js";
import { leastSquares } from "./least_squares.js";

const HOUR_MS = 3_600_000;
/** A younger process warms up or fills caches. */
const MATURE_MS = 6 * HOUR_MS;
const FEWEST_DAYS = 2;
const FEWEST_CHANGES = 8;
const FEWEST_OF_SHARE = 12;
/** Hours from which a process has its own memory per request. */
const FEWEST_OF_OWN = 48;
const MOST_SHARE = 4;
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
  const matured = processes.map((process) => hourly(mature(process)));
  const load = dailyLoad(matured, FEWEST_DAYS);
  if (load === null) {
    return {
      processes: processes.map((process) => ({ process, rss: process.rss, work: null })),
      by: "unknown",
    };
  }
  return {
    processes: processes.map((process, at) => {
      const { times, values } = process.rss;
      const share = shareOf(matured[at] as Levels, load);
      const rest = values.map((value, at) => value - share * load(times[at] as number));
      return { process, rss: { times, values: rest }, work: null };
    }),
    by: "day",
  };
}

function mature({ rss: { times, values }, startedMs }: FleetProcess): Readings {
  const from = firstFrom(times, startedMs + MATURE_MS);
  return { times: times.slice(from), values: values.slice(from) };
}

/** By hour since 1970. */
type Levels = ReadonlyMap<number, number>;

/** How much of the service's mean load one process has. */
function shareOf(levels: Levels, load: (timeMs: number) => number): number {
  const rows: [number, number][] = [];
  for (const [hour, level] of levels) {
    const next = levels.get(hour + 1);
    if (next !== undefined) {
      const middle = (hour + 0.5) * HOUR_MS;
      rows.push([load(middle + HOUR_MS) - load(middle), next - level]);
    }
  }
  return rows.length < FEWEST_OF_SHARE ? 1 : Math.min(MOST_SHARE, Math.max(0, slopeOf(rows)));
}

function withoutRequests(processes: readonly FleetProcess[]): Unloaded[] {
  const courses = processes.map((process) => ({
    process,
    rates: ratesOf(process.requests ?? { times: [], values: [] }),
    columns: [[], [], []] as Columns,
    changes: [] as number[],
  }));
  for (const { process, rates, columns, changes } of courses) {
    const levels = hourly(process.rss);
    for (const [hour, level] of levels) {
      const next = levels.get(hour + 1);
      const isMature = hour * HOUR_MS >= process.startedMs + HOUR_MS;
      const [from, to] = [rates((hour + 0.5) * HOUR_MS), rates((hour + 1.5) * HOUR_MS)];
      if (next !== undefined && isMature && from !== null && to !== null) {
        columns[0].push(1);
        columns[1].push(to.now - from.now);
        columns[2].push(to.highest - from.highest);
        changes.push(next - level);
      }
    }
  }
  const all = courses.flatMap(({ changes }) => changes);
  if (all.length < FEWEST_CHANGES) {
    return processes.map((process) => ({ process, rss: process.rss, work: null }));
  }
  const usual = nonNegative(
    [0, 1, 2].map((at) => courses.flatMap(({ columns }) => columns[at] as number[])) as Columns,
    all,
  );
  return courses.map(({ process, rates, columns, changes }) => {
    const [, byRate, byHighest] =
      changes.length < FEWEST_OF_OWN ? usual : nonNegative(columns, changes);
    const { times, values } = process.rss;
    const rest = values.map((value, at) => {
      const rate = rates(times[at] as number);
      return rate === null ? value : value - byRate * rate.now - byHighest * rate.highest;
    });
    const work = worked(times, (time) => rates(time)?.now ?? null);
    return { process, rss: { times, values: rest }, work };
  });
}

/** The sum of requests, with the last known rate where none is known. */
function worked(
  times: readonly number[],
  rateAt: (timeMs: number) => number | null,
): readonly number[] {
  let [sum, rate] = [0, 0];
  return times.map((time, at) => {
    rate = rateAt(time) ?? rate;
    sum += at === 0 ? 0 : (rate * (time - (times[at - 1] as number))) / 1000;
    return sum;
  });
}

/** Ones, changes of the rate, and changes of the highest rate. */
type Columns = [number[], number[], number[]];

/** A constant and two factors that are not negative. */
function nonNegative(
  columns: Columns,
  changes: readonly number[],
): readonly [number, number, number] {
  const both = leastSquares(columns, changes)?.factors;
  if (both !== undefined && (both[1] as number) >= 0 && (both[2] as number) >= 0) {
    return both as [number, number, number];
  }
  const [constant = 0, rate = 0] = leastSquares(columns.slice(0, 2), changes)?.factors ?? [];
  return [constant, Math.max(0, rate), 0];
}

/** The rate at a time, smoothed over the hour, and the highest such rate up to it. null: none is known. */
function ratesOf(
  requests: Readings,
): (timeMs: number) => { readonly now: number; readonly highest: number } | null {
  const levels = hourly(requests);
  const hours = [...levels.keys()].sort((a, b) => a - b);
  const highest = new Map<number, number>();
  let most = 0;
  for (const hour of hours) {
    most = Math.max(most, levels.get(hour) as number);
    highest.set(hour, most);
  }
  const at = (kept: Map<number, number>, hours: number): number | null => {
    const hour = Math.floor(hours);
    const [from, to] = [kept.get(hour), kept.get(hour + 1)];
    return from === undefined ? (to ?? null) : from + (hours - hour) * ((to ?? from) - from);
  };
  return (timeMs) => {
    const hours = timeMs / HOUR_MS - 0.5;
    const [now, top] = [at(levels, hours), at(highest, hours)];
    return now === null || top === null ? null : { now, highest: top };
  };
}
