/** Days (UTC) and their names. */
import type { TimeMs } from "../../model/base/units.js";

const MS_PER_DAY = 86_400_000;

/** "2026-11-25" */
export type Day = string;

export function dayNamed(timeMs: TimeMs): Day {
  return new Date(Math.floor(timeMs / MS_PER_DAY) * MS_PER_DAY).toISOString().slice(0, 10);
}

/** A test of whether a time is on that day. It is much faster than naming the day of each row. */
export function isOn(day: Day): (timeMs: TimeMs) => boolean {
  const startMs = Date.parse(day);
  return (timeMs) => timeMs >= startMs && timeMs < startMs + MS_PER_DAY;
}
