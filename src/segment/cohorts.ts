import { itemAt } from "../model/base/columns.js";
import type { Millis, TimeMs } from "../model/base/units.js";

const MAX_COHORTS = 16;
const SMALLEST_SLICE_MS: Millis = 125;

/** Upper bounds of the time slices for live bytes: equal slices of the whole run,
 * so that a row of cohorts reads as a growth history (even: grows all the time; first ones only:
 * start-up or cache; last one only: churn). Their width is 125 ms doubled as often as needed, counted
 * from the run's start: two snapshots of one run share their bounds, or one has every second bound of the other.
 * Between 8 and 16 of them once a run is longer than a second. */
export function cohortBounds(startMs: TimeMs, timeMs: TimeMs): TimeMs[] {
  const span = Math.max(0, timeMs - startMs);
  let width = SMALLEST_SLICE_MS;
  while (width * MAX_COHORTS < span) {
    width *= 2;
  }
  const count = Math.max(1, Math.ceil(span / width));
  return Array.from({ length: count }, (_, index) => startMs + (index + 1) * width);
}

/** The cohort of an allocation time; the last one if clocks disagree and it is after the last bound. */
export function cohortOf(bounds: readonly TimeMs[], startMs: TimeMs, birthMs: TimeMs): number {
  const width = itemAt(bounds, 0) - startMs;
  const cohort = Math.floor((birthMs - startMs) / width);
  return Math.min(Math.max(cohort, 0), bounds.length - 1);
}
