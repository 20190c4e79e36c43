import type { Readings } from "./readings.js";
import { median, theilSen } from "./trend.js";

const DAY_MS = 24 * 3_600_000;
/** Least repetitions for a daily cycle. */
const FEWEST_DAYS = 3;
const PARTS_OF_A_DAY = 24;

/**
 * The readings minus the usual value of each hour of the day. With the daily load included, a week's slices
 * rise and fall and hide slow growth. Windows under three days are not changed.
 */
export function withoutDailyCycle(readings: Readings): Readings {
  const { times, values } = readings;
  const span = (times.at(-1) ?? 0) - (times[0] ?? 0);
  if (span < FEWEST_DAYS * DAY_MS) {
    return readings;
  }
  const { slope } = theilSen(times, values);
  const parts = times.map((time) => Math.floor(((time % DAY_MS) / DAY_MS) * PARTS_OF_A_DAY));
  const residuals: number[][] = Array.from({ length: PARTS_OF_A_DAY }, () => []);
  values.forEach((value, i) => {
    const level = value - slope * ((times[i] as number) - (times[0] as number));
    residuals[parts[i] as number]?.push(level);
  });
  const usual = residuals.map(median);
  const middle = median(usual.filter((_, part) => (residuals[part]?.length ?? 0) > 0));
  return {
    times,
    values: values.map((value, i) => value - ((usual[parts[i] as number] ?? middle) - middle)),
  };
}
