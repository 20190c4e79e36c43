/**
 * The memory that follows the daily load, from one or more processes that serve it.
 *
 *   bytes    ▁▆▁▆▁▂▁▂▁▆▁▆▁   =   usual course of a day ▁▆▁   x   strength of each day: 1, 1, 0.2, 0.2, 1, 1
 *             Th Fr Sa Su Mo Tu
 *
 * The usual course is the median over days of the change in each hour, without the trend, so that steps and slow growth
 * do not belong to it. The strength of a day is fitted to the changes within that day: a weekend has a small
 * one, whichever days and time zone it has. Growth does not change the strength, because it is constant while the course
 * rises and falls.
 */
import { mediansOf } from "./medians.js";
import type { Readings } from "./readings.js";
import { median } from "./trend.js";

const HOUR_MS = 3_600_000;
const HOURS = 24;
const FEWEST_HOURS_OF_DAY = 12;
const MOST_STRENGTH = 4;
const DAYS_OF_WEEK = 7;

/** Bytes above the quietest hour of the day at a time. */
export type DailyLoad = (timeMs: number) => number;

interface Courses {
  /** Index of the first hour since 1970. */
  readonly first: number;
  /** Mean change from each hour to the next over the processes with both; NaN: none. */
  readonly changes: readonly number[];
}

/** `processes`: their levels by hour ({@link hourly}). null if some hour of the day was seen on fewer than `days` days. */
export function dailyLoad(
  processes: readonly ReadonlyMap<number, number>[],
  days: number,
): DailyLoad | null {
  const { first, changes } = changesOf(processes);
  const byHour = Array.from({ length: HOURS }, () => [] as number[]);
  changes.forEach((change, at) => {
    if (!Number.isNaN(change)) {
      byHour[(first + at) % HOURS]?.push(change);
    }
  });
  if (byHour.some(({ length }) => length < days)) {
    return null;
  }
  const usual = byHour.map(median);
  const trend = usual.reduce((sum, change) => sum + change, 0) / HOURS;
  const levels = [0];
  for (const change of usual.slice(0, -1)) {
    levels.push((levels.at(-1) as number) + change - trend);
  }
  const least = Math.min(...levels);
  const course = levels.map((level) => level - least);
  const quiet = levels.indexOf(least);
  const strengths = strengthsOf({ first, changes }, course, quiet);
  const usualStrength = median([...strengths.values()].map(({ strength }) => strength));
  const strengthOf = (day: number) => {
    const before = strengths.get(day - DAYS_OF_WEEK)?.strength ?? usualStrength;
    const { strength, sure } = strengths.get(day) ?? { strength: 0, sure: 0 };
    return sure * strength + (1 - sure) * before;
  };
  const kept = new Map([...strengths.keys()].map((day) => [day, strengthOf(day)]));
  return (timeMs) => {
    const hours = timeMs / HOUR_MS - 0.5;
    const hour = Math.floor(hours);
    const at = (index: number) => course[((index % HOURS) + HOURS) % HOURS] as number;
    const level = at(hour) + (hours - hour) * (at(hour + 1) - at(hour));
    return level * (kept.get(Math.floor((hours - quiet) / HOURS)) ?? usualStrength);
  };
}

interface Strength {
  readonly strength: number;
  /**
   * 1 for a whole day. The rising half of a day alone hardly distinguishes strength from growth, because the course
   * changes there by nearly the same amount in each hour; then the same day of the week before counts.
   */
  readonly sure: number;
}

/** Least squares of a day's changes on those of the usual course, with a trend. */
function strengthsOf(
  { first, changes }: Courses,
  course: readonly number[],
  quiet: number,
): Map<number, Strength> {
  const days = new Map<number, [x: number, y: number][]>();
  changes.forEach((change, at) => {
    if (!Number.isNaN(change)) {
      const hour = first + at;
      const day = Math.floor((hour - quiet) / HOURS);
      const from = course[hour % HOURS] as number;
      const rows = days.get(day) ?? [];
      rows.push([(course[(hour + 1) % HOURS] as number) - from, change]);
      days.set(day, rows);
    }
  });
  const steps = course.map((level, at) => (course[(at + 1) % HOURS] as number) - level);
  const most = steps.reduce((sum, step) => sum + step ** 2, 0);
  const strengths = new Map<number, Strength>();
  for (const [day, rows] of days) {
    if (rows.length >= FEWEST_HOURS_OF_DAY) {
      const mean = rows.reduce((sum, [step]) => sum + step, 0) / rows.length;
      const seen = rows.reduce((sum, [step]) => sum + (step - mean) ** 2, 0);
      const strength = Math.min(MOST_STRENGTH, Math.max(0, slopeOf(rows)));
      strengths.set(day, { strength, sure: most > 0 ? Math.min(1, seen / most) ** 2 : 1 });
    }
  }
  return strengths;
}

/** Slope of the least-squares line; 0 if x does not vary. */
export function slopeOf(rows: readonly (readonly [x: number, y: number])[]): number {
  const n = rows.length;
  const meanX = rows.reduce((sum, [x]) => sum + x, 0) / n;
  const meanY = rows.reduce((sum, [, y]) => sum + y, 0) / n;
  let [xy, xx] = [0, 0];
  for (const [x, y] of rows) {
    xy += (x - meanX) * (y - meanY);
    xx += (x - meanX) ** 2;
  }
  return xx > 0 ? xy / xx : 0;
}

/** Median level by hour since 1970. */
export function hourly(readings: Readings): Map<number, number> {
  return mediansOf(readings, (time) => Math.floor(time / HOUR_MS));
}

function changesOf(processes: readonly ReadonlyMap<number, number>[]): Courses {
  const sums = new Map<number, [sum: number, count: number]>();
  for (const levels of processes) {
    for (const [hour, level] of levels) {
      const next = levels.get(hour + 1);
      if (next !== undefined) {
        const [sum, count] = sums.get(hour) ?? [0, 0];
        sums.set(hour, [sum + next - level, count + 1]);
      }
    }
  }
  const hours = [...sums.keys()];
  const first = hours.reduce((least, hour) => Math.min(least, hour), Number.POSITIVE_INFINITY);
  const last = hours.reduce((most, hour) => Math.max(most, hour), first - 1);
  const changes = Array.from(
    { length: hours.length === 0 ? 0 : last - first + 1 },
    () => Number.NaN,
  );
  for (const [hour, [sum, count]] of sums) {
    changes[hour - first] = sum / count;
  }
  return { first: hours.length === 0 ? 0 : first, changes };
}
