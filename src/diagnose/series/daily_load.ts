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
import { binnedMedians, firstFrom } from "./medians.js";
import type { Readings } from "./readings.js";
import { median } from "./trend.js";

const HOUR_MS = 3_600_000;
const HOURS = 24;
const FEWEST_HOURS_OF_DAY = 12;
const MOST_STRENGTH = 4;
const DAYS_OF_WEEK = 7;

/** Bytes above the quietest hour of the day at a time. */
export type DailyLoad = (timeMs: number) => number;

/** Levels by hour. */
export interface HourlyLevels {
  /** Hours since 1970. */
  readonly first: number;
  /** From that hour on; NaN: no reading. */
  readonly levels: Float64Array;
}

interface Courses {
  /** Hours since 1970. */
  readonly first: number;
  /** From that hour on: mean change from it to the next over the processes with both; NaN: none. */
  readonly changes: Float64Array;
}

/** null if some hour of the day was seen on fewer than `days` days. */
export function dailyLoad(processes: readonly HourlyLevels[], days: number): DailyLoad | null {
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
  const steps = stepsOf(course);
  const [firstDay = 0, lastDay = -1] = [[...strengths.keys()].at(0), [...strengths.keys()].at(-1)];
  const kept = Array.from({ length: lastDay - firstDay + 1 }, (_, at) =>
    strengths.has(firstDay + at) ? strengthOf(firstDay + at) : usualStrength,
  );
  return (timeMs) => {
    const hours = timeMs / HOUR_MS - 0.5;
    const hour = Math.floor(hours);
    const ofDay = ((hour % HOURS) + HOURS) % HOURS;
    const level = (course[ofDay] as number) + (hours - hour) * (steps[ofDay] as number);
    return level * (kept[Math.floor((hour - quiet) / HOURS) - firstDay] ?? usualStrength);
  };
}

/** From each hour of the day to the next. */
function stepsOf(course: readonly number[]): number[] {
  return course.map((level, at) => (course[(at + 1) % HOURS] as number) - level);
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
  const steps = stepsOf(course);
  const days = new Map<number, { usual: number[]; seen: number[] }>();
  changes.forEach((change, at) => {
    if (!Number.isNaN(change)) {
      const hour = first + at;
      const day = Math.floor((hour - quiet) / HOURS);
      const rows = days.get(day) ?? { usual: [], seen: [] };
      rows.usual.push(steps[hour % HOURS] as number);
      rows.seen.push(change);
      days.set(day, rows);
    }
  });
  const most = steps.reduce((sum, step) => sum + step ** 2, 0);
  const strengths = new Map<number, Strength>();
  for (const [day, { usual, seen }] of days) {
    if (usual.length >= FEWEST_HOURS_OF_DAY) {
      const mean = usual.reduce((sum, step) => sum + step, 0) / usual.length;
      const varied = usual.reduce((sum, step) => sum + (step - mean) ** 2, 0);
      const strength = Math.min(MOST_STRENGTH, Math.max(0, slopeOf(usual, seen)));
      strengths.set(day, { strength, sure: most > 0 ? Math.min(1, varied / most) ** 2 : 1 });
    }
  }
  return strengths;
}

/** Slope of the least-squares line; 0 if x does not vary. */
export function slopeOf(x: readonly number[], y: readonly number[]): number {
  const [meanX, meanY] = [meanOf(x), meanOf(y)];
  let [xy, xx] = [0, 0];
  for (let at = 0; at < x.length; at++) {
    const distance = (x[at] as number) - meanX;
    xy += distance * ((y[at] as number) - meanY);
    xx += distance ** 2;
  }
  return xx > 0 ? xy / xx : 0;
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Medians. `fromMs`: earlier readings are left out. */
export function hourly(readings: Readings, fromMs = Number.NEGATIVE_INFINITY): HourlyLevels {
  const first = Math.floor((readings.times[firstFrom(readings.times, fromMs)] ?? 0) / HOUR_MS);
  const bins = { fromMs: first * HOUR_MS, binMs: HOUR_MS };
  const window = { startMs: fromMs, endMs: Number.POSITIVE_INFINITY };
  return { first, levels: binnedMedians(readings, bins, window) };
}

function changesOf(processes: readonly HourlyLevels[]): Courses {
  const seen = processes.filter(({ levels }) => levels.length > 0);
  const first = Math.min(...seen.map((each) => each.first));
  const end = Math.max(...seen.map((each) => each.first + each.levels.length));
  const size = seen.length === 0 ? 0 : end - first;
  const [sums, counts] = [new Float64Array(size), new Float64Array(size)];
  for (const { first: from, levels } of seen) {
    for (let at = 1; at < levels.length; at++) {
      const [level, next] = [levels[at - 1] as number, levels[at] as number];
      const hour = from + at - 1 - first;
      if (!Number.isNaN(level) && !Number.isNaN(next)) {
        sums[hour] = (sums[hour] as number) + next - level;
        counts[hour] = (counts[hour] as number) + 1;
      }
    }
  }
  return {
    first: size === 0 ? 0 : first,
    changes: sums.map((sum, at) => sum / (counts[at] as number)),
  };
}
