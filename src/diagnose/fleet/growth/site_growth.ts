/**
 * Whether one allocation site keeps growing, where an agent ran. RSS mixes leaks with caches, load and noise; a site has
 * only its own memory, so it shows a slow leak that RSS hides:
 *
 *   RSS    ▃▅▄▆▅▆▅▇▆▇      site of the leak  ▁▂▃▄▅▆▇█      site of a cache  ▁▄▆▇▇███      site of load  ▃█▂▇▃█▂▇
 *
 * A site that frees most of what it allocates follows the load, even if it also rises. Only a site that gives back little
 * of its rise can be a leak.
 */
import type { Bytes, Millis } from "../../../model/base/units.js";
import type { FrameJson } from "../../../model/documents/documents.js";
import { assessGrowth, smallestRise } from "../../series/growth.js";
import { median, theilSenSlope } from "../../series/trend.js";
import {
  type AgeCurve,
  ageCurve,
  LOAD_BENDS_MS,
  lateOnAxes,
  lateShare,
} from "../curves/age_curve.js";
import { type LastingGrowth, SLOWING_FINE } from "../curves/lasting_growth.js";
import { type Unloaded, workAt } from "../curves/load_removal.js";
import { boundednessOf, mayFill } from "../lines/bounded_lines.js";
import { didAlikeBefore } from "../lines/seen_lines.js";
import { linesOf } from "./fleet_suspects.js";
import type { GroupGrowth, Judging } from "./group_growth.js";
import {
  FASTER,
  LEAST_DECIDED_MS,
  LEAST_LASTING_MS,
  LEAST_SURE,
  lastingByBest,
  WINDOWS_MS,
} from "./group_growth.js";

/** Largest decrease of a growing site as a share of its rise. */
const MOST_GIVEN_BACK = 0.2;
/** RSS that certainly grows by less than this share of a site's rate contradicts it. */
export const LEAST_IN_RSS = 0.5;
/** Sites that together grow by less than this share of RSS do not explain it. */
const LEAST_EXPLAINED = 0.4;
/** Growth is a cache's if lines that are bounded, filled in earlier versions, or clearly slow down explain this share of it. */
const MOSTLY = 0.6;
/** RSS that grows without any site may be memory that the allocator keeps, or rising load. It counts as a leak only if it
 * lasts this long. */
const LEAST_UNEXPLAINED_MS = 4 * 24 * 3_600_000;
/** Growth that is straight and large counts earlier, such as the stacks of threads or memory that a C library lost: the low end of its
 * interval as a share of the rate, and its rise as a share of the level. What the allocator keeps bends, or is less. */
const MUCH_UNEXPLAINED = { ms: LEAST_DECIDED_MS, low: 0.8, share: 0.15 };
/** A site is measured without what other sites do, so less than usual is significant. */
const LEAST_OF_SITE = 0.3;
/** A leak soon makes up most of what its line holds, whereas memory that follows the load varies around a level. */
const LEAST_OF_OWN = 0.25;
/** A cache that fills within a day has slowed down after three: the last third's growth as a share of the whole. */
const LEAST_STEADY_MS = 3 * 24 * 3_600_000;
const STEADY = 0.5;
/** What fills slows down: see {@link lateShare}. Within days, load may bend a leak as well. */
const SLOWED = { inDays: 0.65, later: 0.8 };
/** The same of what clearly fills, whatever the load does; what is named after a cache fills if it slows down like one. */
const FILLED = 0.35;
/** Within days, what lasts as a share of what filled: a line that only leaks fills nothing. */
const LEAST_OF_FILL = 0.75;
/** Readings whose median is one level. */
const SMOOTHED = 5;

/** The growth of a version, with what its sites say: a leak that RSS hides, or a rise of RSS that is in no site. */
export function withSites(
  growth: GroupGrowth,
  processes: readonly Unloaded[],
  { endMs, z, before }: Judging,
): GroupGrowth {
  const window = { startMs: endMs - (WINDOWS_MS[0] as number), endMs };
  const unloaded = new Map(processes.map((each) => [each.process, each]));
  const sites = linesOf([...unloaded.keys()]).flatMap(({ line, rows }) => {
    const curve = ageCurve(
      rows.map(([process, { live }]) => ({
        process,
        rss: live,
        work: workAt(live.times, unloaded.get(process) as Unloaded),
      })),
      window,
    );
    return curve === null ? [] : [{ line, curve }];
  });
  // Most of the work, so it is done for lines that matter.
  const bestOf = (curve: AgeCurve) => lastingByBest(curve, z, SLOWING_FINE);
  const isUsual = (line: FrameJson, curve: AgeCurve, rate: number) => {
    const lengthMs = lengthOf(curve);
    return (
      mayFill(line, [...unloaded.keys()], lengthMs) ||
      didAlikeBefore(line, { rise: rate * lengthMs, level: endOf(curve), lengthMs }, before)
    );
  };
  // What fills by requests may be straight over the hours of a day.
  const ranMs = endMs - Math.min(...processes.map(({ process }) => process.startedMs));
  const isUnwatched = (line: FrameJson, curve: AgeCurve) =>
    curve.workTimes === null &&
    ranMs < LOAD_BENDS_MS &&
    boundednessOf(line, [...unloaded.keys()]) === "unknown";
  // A line has no start-up to leave out. At nightfall, a leak that follows requests slows down too, so memory that will pass
  // the limit is still reported.
  const fills = (line: FrameJson, curve: AgeCurve) =>
    !growth.isFatal &&
    lengthOf(curve) >= LEAST_LASTING_MS &&
    lateOnAxes(curve, false, 0) <
      (boundednessOf(line, [...unloaded.keys()]) === "fills" ? SLOWED.inDays : FILLED);
  // Of growth that RSS shows: whether neither caches explain it, nor lines contradict it.
  const isOfLeak = (): boolean => {
    const ofCaches = sites
      .map(({ line, curve }) => ({ line, curve, rate: theilSenSlope(curve.times, curve.values) }))
      .filter(
        ({ line, curve, rate }) => rate > 0 && (fills(line, curve) || isUsual(line, curve, rate)),
      )
      .reduce((sum, { rate }) => sum + rate, 0);
    if (ofCaches > MOSTLY * Math.max(growth.rate, growth.straight.rate)) {
      return false;
    }
    if (growth.isFatal || growth.windowMs >= LEAST_UNEXPLAINED_MS || isMuch(growth)) {
      return true;
    }
    const seen = sites.flatMap(({ line, curve }) => {
      const best = lengthOf(curve) >= growth.windowMs / 2 ? bestOf(curve) : null;
      return best === null ? [] : [{ line, curve, ...best.lasting }];
    });
    const unusual = seen.filter(
      ({ line, curve, straight }) => !isUsual(line, curve, straight.rate),
    );
    return seen.length === 0 || isExplained(unusual, growth.rate);
  };
  if (growth.shape === "leaking" && isOfLeak()) {
    return growth;
  }
  const [fastest] = sites
    .flatMap(({ line, curve }) =>
      lastingSite(curve, bestOf, {
        level: growth.level,
        isOpen: boundednessOf(line, [...unloaded.keys()]) === "open",
      }).flatMap((lasting) =>
        isUsual(line, curve, lasting.rate) || isUnwatched(line, curve)
          ? []
          : [{ ...lasting, shownBy: line }],
      ),
    )
    .filter(({ rate }) => growth.high > LEAST_IN_RSS * rate)
    .sort((a, b) => b.rate - a.rate);
  const shape = growth.shape === "leaking" ? "undecided" : growth.shape;
  return fastest === undefined ? { ...growth, shape } : { ...growth, ...fastest, shape: "leaking" };
}

/** Whether it needs no site to be certain. */
function isMuch({ windowMs, rate, low, level }: GroupGrowth): boolean {
  return (
    windowMs >= MUCH_UNEXPLAINED.ms &&
    low > MUCH_UNEXPLAINED.low * rate &&
    rate * windowMs > MUCH_UNEXPLAINED.share * level
  );
}

/** Whether all sites that still grow do so together by a share of this rate, as straight lines or whatever they fill. */
function isExplained(
  sites: readonly (LastingGrowth & { readonly curve: AgeCurve })[],
  rate: number,
): boolean {
  const sum = sites.reduce((total, { curve, rate: lasting, straight }) => {
    const grown = assessGrowth(curve).shape === "growing" ? straight.rate : 0;
    return total + Math.max(0, lasting, grown);
  }, 0);
  return sum > LEAST_EXPLAINED * rate;
}

function endOf({ values }: AgeCurve): Bytes {
  return median(values.slice(-SMOOTHED));
}

function lengthOf({ times }: AgeCurve): Millis {
  return (times.at(-1) ?? 0) - (times[0] ?? 0);
}

/** The growth of a site that lasts; otherwise nothing. `isOpen`: a process found what holds its memory, without a bound. */
function lastingSite(
  curve: AgeCurve,
  bestOf: (curve: AgeCurve) => ReturnType<typeof lastingByBest>,
  { level, isOpen }: { readonly level: Bytes; readonly isOpen: boolean },
): LastingGrowth[] {
  const lengthMs = lengthOf(curve);
  if (lengthMs < LEAST_LASTING_MS || !keeps(curve)) {
    return [];
  }
  const { shape, lastThird } = assessGrowth(curve);
  const best = shape === "growing" ? bestOf(curve) : null;
  if (best === null) {
    return [];
  }
  const least = lengthMs < LEAST_STEADY_MS ? SLOWED.inDays : SLOWED.later;
  const late = lateShare(best.curve);
  if (late < least || late > FASTER) {
    return [];
  }
  const { lasting } = best;
  // Growth by requests follows the load, which leaves no exact interval; but a cache would slow down, and what has no bound is none.
  const isSteady = isOpen || (lengthMs >= LEAST_STEADY_MS && lastThird >= STEADY);
  const { rate } = lasting.straight;
  const found =
    lasting.low <= LEAST_SURE * lasting.rate && isSteady
      ? { ...lasting, rate, low: rate * STEADY, high: rate * (2 - STEADY) }
      : lasting;
  const rise = found.rate * lengthMs;
  const isEnough =
    (lengthMs >= LEAST_STEADY_MS || rise > LEAST_OF_FILL * lasting.fillBytes) &&
    rise > LEAST_OF_SITE * smallestRise(lengthMs, level) &&
    rise > LEAST_OF_OWN * (curve.values.at(-1) as number);
  return found.low > LEAST_SURE * found.rate && isEnough ? [found] : [];
}

/** Whether what was gained is not given back. */
function keeps({ values }: AgeCurve): boolean {
  const levels = values
    .slice(0, 1 - SMOOTHED)
    .map((_, at) => median(values.slice(at, at + SMOOTHED)));
  let [highest, given] = [Number.NEGATIVE_INFINITY, 0];
  for (const level of levels) {
    highest = Math.max(highest, level);
    given = Math.max(given, highest - level);
  }
  return given <= MOST_GIVEN_BACK * ((levels.at(-1) ?? 0) - (levels[0] ?? 0));
}
