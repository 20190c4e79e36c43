import { dailyLoad, hourly } from "./daily_load.js";
import type { Readings } from "./readings.js";

const DAY_MS = 24 * 3_600_000;
/** Least repetitions for a daily cycle. */
const FEWEST_DAYS = 3;

/**
 * The readings minus what follows the daily load. With the daily load included, a week's slices rise and fall and hide
 * slow growth, and a week that begins at a weekend seems to grow. Windows under three days are not changed.
 */
export function withoutDailyCycle(readings: Readings): Readings {
  const { times, values } = readings;
  const span = (times.at(-1) ?? 0) - (times[0] ?? 0);
  const load = span < FEWEST_DAYS * DAY_MS ? null : dailyLoad([hourly(readings)], FEWEST_DAYS - 1);
  return load === null
    ? readings
    : { times, values: values.map((value, at) => value - load(times[at] as number)) };
}
