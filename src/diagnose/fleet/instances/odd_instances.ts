/** Instances that grow unlike their siblings: one shard, one rank, one host. */

import type { Bytes, TimeMs } from "../../../model/base/units.js";
import { smallestRise } from "../../series/growth.js";
import { medianOf } from "../../series/medians.js";
import { median, theilSenSlope } from "../../series/trend.js";
import { ageCurve } from "../curves/age_curve.js";
import { loadRange, type Unloaded } from "../curves/load_removal.js";
import { straightLives } from "../curves/straight_lives.js";
import {
  type GroupGrowth,
  groupGrowth,
  type Judging,
  levelOf,
  WINDOWS_MS,
} from "../growth/group_growth.js";
import { siblingsDidAlike } from "../growth/precedent.js";
import { withSites } from "../growth/site_growth.js";
import {
  areMostLivesAhead,
  FEWEST_SIBLINGS,
  fillsAgain,
  highestLevels,
  isAhead,
  risesIn,
  type Window,
} from "./ahead_of_siblings.js";
import { withoutSiblings } from "./sibling_course.js";

/** How many times as far as siblings usually drift: over the curve, and over its later half, which is less exact. */
const FAR = 5;
const FAR_LATE = 2.5;
/** The drift of this many siblings may be half of the usual by chance. */
const FEW = 4;
/** What fills on one instance alone slows down: the later half's growth as a share of the whole. */
const STEADY = 0.5;
/** Memory that wanders is given back: the largest fall as a share of the growth. A leak gives nothing back while its process lives. */
const MOST_GIVEN_BACK = 0.5;
/** Load that was removed only in part can look like growth of this share of its range. */
const LEAST_OF_LOAD = 0.3;
const LEAST_LENGTH_MS = 12 * 3_600_000;
/** One that was not seen in this time before the version's end has ended for good: a pod whose successor has another name. */
const LATEST_MS = 6 * 3_600_000;
const FEWEST_POINTS = 8;
/** Of one instance, that rise to the limit alike. */
const FEWEST_LIVES = 2;
/** One of them is enough if it rose by this share of the limit. */
const FAR_OF_LIMIT = 0.5;
/** Odd ones are a minority. */
const MOST_SHARE = 0.4;

export interface OddInstance {
  readonly instance: string;
  readonly growth: GroupGrowth;
  readonly processes: readonly Unloaded[];
}

/** Only instances that leak, the fastest first; one whose level differs does not grow. */
export function oddInstances(
  processes: readonly Unloaded[],
  judging: Judging,
): readonly OddInstance[] {
  const lives = byInstance(processes);
  if (lives.size < FEWEST_SIBLINGS) {
    return [];
  }
  const killed = leakToTheLimit(lives, processes, judging);
  if (killed.length > 0) {
    return killed;
  }
  const window = windowOf(processes, judging.endMs);
  const windowMs = window.endMs - window.startMs;
  const rises = risesIn(processes, window);
  const levels = highestLevels(processes);
  const isFurther = (instance: string, rate: number) => {
    const own = lives.get(instance) as Unloaded[];
    return isAhead(own, rate, window, rises) && !fillsAgain(own, rate, levels);
  };
  // Costs less than to remove from all of them what they share.
  const mayBeOdd = [...lives].some(([instance, own]) =>
    isFurther(instance, smallestRise(LEAST_LENGTH_MS, levelOf(own, judging.endMs)) / windowMs),
  );
  if (!mayBeOdd) {
    return [];
  }
  const instances = byInstance(withoutSiblings(processes, window));
  const courses = [...instances].flatMap(([instance, own]) => {
    const curve = ageCurve(own, window);
    if (curve === null || curve.times.length < FEWEST_POINTS) {
      return [];
    }
    const [times, values] = thinned(curve.times, curve.values);
    const half = times.length >> 1;
    const rate = theilSenSlope(times, values);
    // Needed for few instances.
    const late = () => theilSenSlope(times.slice(half), values.slice(half));
    const lengthMs = (times.at(-1) as number) - (times[0] as number);
    return [{ instance, own, rate, late, lengthMs, fall: largestFall(values) }];
  });
  let loadRead: Bytes | null = null;
  const loadBytes = () => {
    loadRead ??= loadRange(processes);
    return loadRead;
  };
  const isOver = (own: readonly Unloaded[]) =>
    own.every(({ rss }) => (rss.times.at(-1) ?? 0) < judging.endMs - LATEST_MS);
  const odd = courses.flatMap(({ instance, own, rate, late, lengthMs, fall }) => {
    const isCalm = rate <= 0 || fall > MOST_GIVEN_BACK * rate * lengthMs;
    if (isCalm || lengthMs < LEAST_LENGTH_MS || isOver(own)) {
      return [];
    }
    const alike = courses.filter((each) => each.lengthMs >= lengthMs / 2);
    // What is left of siblings moves by as much in a long life as in a short one.
    const spread = spreadOf(alike.map((each) => each.rate * each.lengthMs)) / lengthMs;
    if (alike.length < FEWEST_SIBLINGS || rate <= FAR * spread) {
      return [];
    }
    const lateRate = late();
    const lateSpread = spreadOf(alike.map((each) => each.late() * each.lengthMs)) / lengthMs;
    if (lateRate < STEADY * rate || lateRate <= FAR_LATE * lateSpread) {
      return [];
    }
    const growth = groupGrowth(own, { ...judging, isLoadKnown: true, loadBytes: 0 });
    const least = Math.max(smallestRise(lengthMs, growth?.level ?? 0), LEAST_OF_LOAD * loadBytes());
    if (growth === null || rate * lengthMs < least) {
      return [];
    }
    const interval = { rate, low: rate - 2 * spread, high: rate + 2 * spread };
    const alone: GroupGrowth = { ...growth, ...interval, isFatal: false, shape: "leaking" };
    return [{ instance, growth: alone, processes: own }];
  });
  if (odd.length > MOST_SHARE * instances.size) {
    return [];
  }
  return odd
    .filter(({ instance, growth }) => {
      const own = lives.get(instance) as Unloaded[];
      const siblings = processes.filter(({ process }) => process.instance !== instance);
      return (
        isFurther(instance, growth.rate) &&
        !siblingsDidAlike(own, siblings, window) &&
        areMostLivesAhead(own, siblings, growth.rate, windowMs)
      );
    })
    .map((each) => ({ ...each, growth: withSites(each.growth, each.processes, judging) }))
    .filter(({ growth }) => growth.shape === "leaking")
    .sort((a, b) => b.growth.rate - a.growth.rate);
}

function hasRisenFar(values: readonly Bytes[], limit: Bytes): boolean {
  return limit > 0 && (values.at(-1) ?? 0) - (values[0] ?? 0) > FAR_OF_LIMIT * limit;
}

/** Instances that rise in a straight line towards their limit in one life after another, far ahead of their siblings at each age. */
function leakToTheLimit(
  instances: ReadonlyMap<string, readonly Unloaded[]>,
  processes: readonly Unloaded[],
  judging: Judging,
): OddInstance[] {
  const found = [...instances].flatMap(([instance, own]): OddInstance[] => {
    const limits = own.map(({ process }) => process.limitBytes);
    const limit = Math.min(...limits);
    const far = own.filter(({ rss: { values } }) => hasRisenFar(values, limit));
    const rates =
      own.length < FEWEST_LIVES
        ? null
        : (straightLives(own, limit, FEWEST_LIVES) ??
          (far.length === 0 ? null : straightLives(far, limit, 1)));
    const siblings = () => processes.filter(({ process }) => process.instance !== instance);
    const growth =
      rates !== null && areMostLivesAhead(own, siblings(), rates.rate)
        ? groupGrowth(own, { ...judging, isLoadKnown: true, loadBytes: 0 })
        : null;
    return rates === null || growth === null
      ? []
      : [
          {
            instance,
            growth: { ...growth, ...rates, isFatal: true, shape: "leaking" },
            processes: own,
          },
        ];
  });
  return found.length > MOST_SHARE * instances.size ? [] : found;
}

function byInstance(processes: readonly Unloaded[]): Map<string, Unloaded[]> {
  const instances = new Map<string, Unloaded[]>();
  for (const each of processes) {
    const own = instances.get(each.process.instance) ?? [];
    own.push(each);
    instances.set(each.process.instance, own);
  }
  return instances;
}

/** The spread of rates around those of most instances, which are zero; of a few, it may be small by chance. */
function spreadOf(rates: readonly number[]): number {
  return 1.4826 * median(rates.map(Math.abs)) * (1 + FEW / rates.length);
}

/** From the highest value so far. */
function largestFall(values: readonly number[]): Bytes {
  let [high, fall] = [Number.NEGATIVE_INFINITY, 0];
  for (const value of values) {
    high = Math.max(high, value);
    fall = Math.max(fall, high - value);
  }
  return fall;
}

/** The longest window, or what the processes lived of it. */
function windowOf(processes: readonly Unloaded[], endMs: TimeMs): Window {
  const first = Math.min(...processes.map(({ process }) => process.startedMs));
  return { startMs: Math.max(first, endMs - (WINDOWS_MS[0] as number)), endMs };
}

const MOST_POINTS = 32;

function thinned(times: readonly number[], values: readonly number[]): [number[], number[]] {
  const size = Math.ceil(times.length / MOST_POINTS);
  const groups = Array.from({ length: Math.ceil(times.length / size) }, (_, i) => i * size);
  return [
    groups.map((at) => medianOf(times, at, Math.min(times.length, at + size))),
    groups.map((at) => medianOf(values, at, Math.min(times.length, at + size))),
  ];
}
