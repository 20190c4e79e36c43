/**
 * Restart loops. A process that a supervisor starts again follows the end of the one before it. A job that runs repeatedly
 * is not a restart: its processes end with exit code 0, or its starts are at equal distances, at the same second of a minute.
 *
 *     loop   ▇▇ ▇ ▇▇▇ ▇ ▇▇   each start follows an end by seconds or minutes
 *     job    ▇▇    ▇     ▇▇    the distance between starts is fixed, or each process has done its work
 */
import type { Millis, TimeMs } from "../../model/base/units.js";
import type { ProcessLife } from "../../store/index.js";

/** Kubernetes waits up to five minutes before it starts a container again. */
const LONGEST_PAUSE_MS: Millis = 6 * 60_000;
/** Between the starts of a job: how far they may be from their mean distance. */
const REGULAR_MS: Millis = 5_000;
const MINUTE_MS: Millis = 60_000;
/** Fewer starts cannot show whether they are regular. */
const LEAST_REGULAR = 3;

/** Restarts since then of the instance that has most. */
export function restartsOf(
  lives: readonly ProcessLife[],
  sinceMs: TimeMs,
): { readonly restarts: number; readonly place: string } {
  const places = new Map<string, ProcessLife[]>();
  for (const life of lives) {
    const place = life.pod || life.host;
    const own = places.get(place) ?? [];
    own.push(life);
    places.set(place, own);
  }
  return [...places]
    .map(([place, own]) => ({ place, restarts: countOf(own, sinceMs) }))
    .reduce((most, each) => (each.restarts > most.restarts ? each : most), {
      restarts: 0,
      place: "",
    });
}

function countOf(lives: readonly ProcessLife[], sinceMs: TimeMs): number {
  const ordered = [...lives].sort((a, b) => a.startedMs - b.startedMs);
  const starts = ordered.map(({ startedMs }) => startedMs).filter((timeMs) => timeMs >= sinceMs);
  if (isRegular(starts)) {
    return 0;
  }
  // Each end can be followed by one start only: instances that run side by side are not restarts of each other.
  const ends = ordered
    .filter(({ exitCode }) => exitCode !== 0)
    .map(({ endedMs }) => endedMs)
    .filter((timeMs) => timeMs !== null);
  ends.sort((a, b) => a - b);
  let restarts = 0;
  for (const startedMs of starts) {
    const at = ends.findIndex(
      (endedMs) => endedMs <= startedMs && startedMs - endedMs <= LONGEST_PAUSE_MS,
    );
    if (at >= 0) {
      ends.splice(at, 1);
      restarts++;
    }
  }
  return restarts;
}

function isRegular(starts: readonly TimeMs[]): boolean {
  if (starts.length < LEAST_REGULAR) {
    return false;
  }
  const [first = 0] = starts;
  const distance = ((starts.at(-1) ?? 0) - first) / (starts.length - 1);
  const isEven = starts.every(
    (timeMs, at) => Math.abs(timeMs - first - at * distance) <= REGULAR_MS,
  );
  const seconds = starts.map((timeMs) => (timeMs - first + MINUTE_MS / 2) % MINUTE_MS);
  return isEven && seconds.every((second) => Math.abs(second - MINUTE_MS / 2) <= REGULAR_MS);
}
