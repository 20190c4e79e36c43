/**
 * Sites whose memory is one block that is replaced by a several times larger one whenever it is full: a C++
 * vector or hash table, a growing array with spare capacity. Between two steps nothing changes, not even RSS,
 * for the time it took to fill the previous block, times the growth factor:
 *
 *   bytes   8 ──── 16 ──────── 32 ──────────────── 64 ────────
 *   time    |  t  |     2 t    |        4 t        |
 *
 * Loading data in steps, or a buffer as large as the largest request so far, has no such regularity.
 */
import type { Bytes, TimeMs } from "../../model/base/units.js";
import type { SiteHistories, SiteHistory } from "./site_history.js";

const FEWEST_STEPS = 4;
const SMALLEST_RISE_BYTES = 4_000_000;
/** Growth factor from one block to the next. */
const LEAST_FACTOR = 1.4;
const MOST_FACTOR = 4.2;
/** Largest deviation of a step from a whole power of the factor. */
const OFF_POWER = 0.2;
/** Largest variation of a level. */
const LEAST_STEP = 0.1;
/**
 * Largest deviation of a step's time from the expected time, as a factor; also for a step that has not happened
 * yet.
 */
const OFF = 1.5;

interface Step {
  /** The last snapshot before it, and the first after it. */
  readonly afterMs: TimeMs;
  readonly untilMs: TimeMs;
  readonly from: Bytes;
  readonly to: Bytes;
}

interface Doubling {
  /** Factor of the last steps. */
  readonly keptBytes: Bytes;
  /** Filled bytes per ms. */
  readonly slope: number;
}

/** How a site's block doubles up to the last snapshot; null if it does not. */
export function doublingOf(
  { largeBytes }: Pick<SiteHistory, "largeBytes">,
  { snapshotTimes }: Pick<SiteHistories, "snapshotTimes">,
): Doubling | null {
  const steps = largeBytes === undefined ? null : stepsOf(largeBytes, snapshotTimes);
  const last = steps?.slice(-FEWEST_STEPS) ?? [];
  const [first] = last;
  const newest = last.at(-1);
  if (!first || !newest || last.length < FEWEST_STEPS) {
    return null;
  }
  const rise = newest.to - first.from;
  return rise >= SMALLEST_RISE_BYTES &&
    areOfOneFactor(last) &&
    keepTime(last, snapshotTimes.at(-1) as TimeMs)
    ? { keptBytes: rise, slope: (newest.from - first.from) / (newest.untilMs - first.untilMs) }
    : null;
}

const factorOf = ({ from, to }: Step) => to / from;

/** Two or more steps may happen between two snapshots; then the factor is a power. */
function areOfOneFactor(steps: readonly Step[]): boolean {
  const factor = Math.min(...steps.map(factorOf));
  return (
    factor <= MOST_FACTOR &&
    steps.every((step) => {
      const power = Math.log(factorOf(step)) / Math.log(factor);
      return Math.abs(power - Math.round(power)) <= OFF_POWER;
    })
  );
}

/**
 * The steps between snapshots; null if the level falls or creeps. While a new block is filled from the old one,
 * both are live, so the level is the minimum of this and all later snapshots.
 */
function stepsOf(live: Float64Array, times: readonly TimeMs[]): Step[] | null {
  const levels = live.map((_, i) => Math.min(...live.subarray(i)));
  const steps: Step[] = [];
  for (let i = 1; i < levels.length; i++) {
    const [from, to] = [levels[i - 1] as Bytes, levels[i] as Bytes];
    if (to > LEAST_FACTOR * from && from > 0) {
      steps.push({ afterMs: times[i - 1] as TimeMs, untilMs: times[i] as TimeMs, from, to });
    } else if (to > (1 + LEAST_STEP) * from && from > 0) {
      return null;
    }
  }
  return steps;
}

/** Each block lasts longer than the previous one by the factor of its size, within the resolution of the snapshots. */
function keepTime(steps: readonly Step[], endMs: TimeMs): boolean {
  const lasted = steps.slice(1).map((step, i) => {
    const before = steps[i] as Step;
    const least = Math.max(0, step.afterMs - before.untilMs);
    return { least, most: step.untilMs - before.afterMs, next: OFF * factorOf(step) };
  });
  const areInTime = lasted.slice(1).every(({ least, most }, i) => {
    const before = lasted[i] as (typeof lasted)[number];
    return least <= before.next * before.most && most * OFF ** 2 >= before.next * before.least;
  });
  const newest = lasted.at(-1);
  return (
    areInTime &&
    newest !== undefined &&
    endMs - (steps.at(-1) as Step).untilMs <= newest.next * newest.most
  );
}
