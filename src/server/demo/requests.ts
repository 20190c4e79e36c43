/** The requests of the demo fleet: their mean, how far they swing, and the quietest time of the day. */
import type { Millis, TimeMs } from "../../model/base/units.js";

const HOUR: Millis = 3_600_000;
const DAY: Millis = 24 * HOUR;
const MEAN_LOAD = 0.6;
const LOAD_SWING = 0.4;
const QUIET_MS: Millis = 4 * HOUR;

/** Requests by the time of day, from 0.2 to 1. */
export function loadAt(timeMs: TimeMs): number {
  return MEAN_LOAD - LOAD_SWING * Math.cos(angleOfDay(timeMs));
}

/** Load times the length of the period, in ms. */
export function loadBetween(fromMs: TimeMs, toMs: TimeMs): number {
  const swung = Math.sin(angleOfDay(toMs)) - Math.sin(angleOfDay(fromMs));
  return MEAN_LOAD * (toMs - fromMs) - (LOAD_SWING * swung * DAY) / (2 * Math.PI);
}

/** 0 at the hour with the fewest requests. */
function angleOfDay(timeMs: TimeMs): number {
  return (2 * Math.PI * (timeMs - QUIET_MS)) / DAY;
}
