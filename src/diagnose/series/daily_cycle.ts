import { dailyLoad, hourly } from "./daily_load.js";
import type { Readings } from "./readings.js";

const DAY_MS = 24 * 3_600_000;
/** Shortest window, and on how many days each hour must have been seen. */
const SHORTEST_DAYS = 2.5;
const FEWEST_DAYS = 2;

/**
 * The readings minus what follows the daily load. With the daily load included, a week's slices rise and fall and hide
 * slow growth, and a week that begins at a weekend seems to grow. Windows under two and a half days are not changed.
 */
export function withoutDailyCycle(readings: Readings): Readings {
  const { times, values } = readings;
  const span = (times.at(-1) ?? 0) - (times[0] ?? 0);
  const load = span < SHORTEST_DAYS * DAY_MS ? null : dailyLoad([hourly(readings)], FEWEST_DAYS);
  return load === null
    ? readings
    : { times, values: values.map((value, at) => value - load(times[at] as number)) };
}
