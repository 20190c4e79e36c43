/**
 * What earlier versions did at the same age. RSS alone cannot distinguish a young leak from a cache that fills; the
 * version before it often can, because its caches and its warm-up took about as long:
 *
 *   age            0 h ────── 12 h ───────────── 5 d
 *   version 41     ▁▃▄▅▆▆▇▇▇▇▇▇▇█████████████████     rose at this age, then levelled off
 *   version 42     ▁▄▅▆▇▇██                           the same rise: not decided yet
 *
 * An earlier version counts if it lived longer, or filled its caches and ended a little sooner, was seen from its start, and is itself
 * judged not to grow. One that was level
 * proves no leak of the next: a deploy that adds a slow cache where there was none looks the same.
 */
import type { Bytes, Millis, TimeMs } from "../../../model/base/units.js";
import type { FleetShape } from "../../../model/documents/fleet_diagnosis_document.js";
import { firstFrom, reorderedQuantile } from "../../series/medians.js";
import { median, theilSenSlope } from "../../series/trend.js";
import { type AgeCurve, ageCurve, EARLY } from "../curves/age_curve.js";
import type { Unloaded } from "../curves/load_removal.js";
import { LEAST_USUAL_MS } from "../lines/seen_lines.js";
import type { GroupGrowth } from "./group_growth.js";

/** A version that rises by more than this multiple of its precedent does more than fill a larger cache. */
const ALIKE = 3.5;
/** The share of a version's rate that leaks without what its precedent did, from which the precedent does not explain it. */
const LEAST_BEYOND = 0.7;
/** The same within a version, whose instances differ only in load. */
const ALIKE_SIBLINGS = 2;
/** A precedent that rises by less than this share of the version was level. */
const LEVEL = 0.15;
const LEVEL_SINCE_START = 0.2;
/** The part of a curve that is compared: without start-up, and without the fast part of filling. */
const COMPARED_FROM = 1 / 3;
const FILLED_FROM = 1 / 2;
/** The first reading of a life that was seen from its start comes within this share of the compared age. */
const SEEN_FROM = 0.05;
/** Longest time without readings as a share of the compared ages. */
const LONGEST_GAP = 0.25;
/** How much longer than the curve a precedent must have lived to have levelled off after it. */
const LONGER = 1.5;
/** The same where it is seen to have levelled off. */
const OUTLIVED = 1;
/** The part of a curve that a precedent may cover, the longest first: it has levelled off by then. */
const SEEN_PARTS = [1, 0.8, 0.6];
/** Start-up, as a share of the ages, and how far rates of filling differ at most. */
const WARM = 0.05;
const SAME_PACE = 1.6;
/** The share of its room from which a cache is nearly full. */
const NEARLY_FULL = 0.9;
/** Whose median is a level. */
const LEVEL_READINGS = 3;

interface Earlier {
  readonly processes: readonly Unloaded[];
  readonly growth: GroupGrowth | null;
}

const CALM: ReadonlySet<FleetShape> = new Set(["flat", "filling", "stepped"]);
/** What these did may be subtracted: if they leaked as well, nothing is left. */
const NOT_LEAKING: ReadonlySet<FleetShape> = new Set([...CALM, "undecided"]);
const DAY_MS: Millis = 24 * 3_600_000;
/** Levels of releases differ by this share; readings above the level are rare. */
const SAME_LEVEL = 0.02;
const RARE = 0.05;
/** Cosine of an hour of the day; the share of an age that a life reached; and of lives. */
const SAME_HOUR = 0.966;
const LONG_LIFE = 0.6;
const MOST = 0.8;

/**
 * A leak unless an earlier version rose alike and levelled off. One that will pass its limit anyway is cleared only if it goes on
 * filling as the earlier version did.
 * `earlier`: the latest last. `beyond`: what leaks without what these did.
 */
export function clearedByPrecedent(
  growth: GroupGrowth,
  earlier: readonly Earlier[],
  beyond: GroupGrowth | null = null,
): GroupGrowth {
  const { shape, isFatal, curve } = growth;
  if (shape !== "leaking") {
    return growth;
  }
  const precedent = isFatal ? null : latestPrecedent(curve, earlier);
  const isMore =
    beyond !== null && beyond.rate > LEAST_BEYOND * Math.max(growth.rate, slopeIn(curve));
  const isAlike =
    !isMore &&
    precedent !== null &&
    slopeIn(precedent.curve, precedent.ages) * ALIKE > slopeIn(curve, precedent.ages);
  return isAlike || goesOnFilling(curve, earlier) ? { ...growth, shape: "undecided" } : growth;
}

/**
 * Whether an earlier version of which at least as much was seen rose as far at these ages, and is undecided. Two versions that
 * behave alike have the same verdict: that of the better evidence.
 */
export function isLikeUndecided(
  { curve, windowMs }: GroupGrowth,
  processes: readonly Unloaded[],
  earlier: readonly Earlier[],
): boolean {
  const known = earlier.findLast(
    (each) =>
      each.growth?.shape === "undecided" &&
      each.growth.windowMs >= windowMs &&
      each.processes.length >= processes.length,
  );
  const before =
    known === undefined || curve.axis !== "age"
      ? null
      : precedentOf(known, curve.times.at(-1) ?? 0, OUTLIVED, NOT_LEAKING);
  return before !== null && risen(before) >= risen(curve);
}

/** Whether the latest earlier version that lived as long was level at the same ages, without start-up. */
export function wasLevelBefore(curve: AgeCurve, earlier: readonly Earlier[]): boolean {
  const before = latestOutlived(curve, earlier);
  const fromAge = EARLY * (curve.times.at(-1) ?? 0);
  const sinceStart = ({ times, values }: AgeCurve) =>
    risen({ values: values.slice(firstFrom(times, fromAge)) });
  return before !== undefined && sinceStart(before) < LEVEL_SINCE_START * sinceStart(curve);
}

/** From its first hours to its end. */
export function risen({ values }: Pick<AgeCurve, "values">): Bytes {
  const levels = [values.slice(0, LEVEL_READINGS), values.slice(-LEVEL_READINGS)].map(median);
  return (levels[1] as Bytes) - (levels[0] as Bytes);
}

/** The curve of the latest earlier version that lived as long and does not grow; undefined: there is none, or this one is not over age. */
function latestOutlived(curve: AgeCurve, earlier: readonly Earlier[]): AgeCurve | undefined {
  const ageMs = curve.times.at(-1) ?? 0;
  return curve.axis === "age"
    ? earlier.flatMap((each) => precedentOf(each, ageMs, OUTLIVED) ?? []).at(-1)
    : undefined;
}

/**
 * Whether it still rises as it did first, and as the latest earlier version did before that had filled: a cache with more
 * room. A leak beside the same cache bends where the cache is full.
 */
function goesOnFilling(curve: AgeCurve, earlier: readonly Earlier[]): boolean {
  const ageMs = curve.times.at(-1) ?? 0;
  const filled = latestOutlived(curve, earlier);
  if (filled === undefined) {
    return false;
  }
  const first = agesOf(curve, WARM, COMPARED_FROM);
  const slope = slopeIn(curve);
  const isLike = (other: number) => isPaceOf(slope, other);
  const pace = slopeIn(filled, first);
  // Warm-up is no room of a cache: what it filled before counts at its pace.
  const room = filledFrom(filled, first.from) + pace * first.from;
  return (
    isLike(slopeIn(curve, first)) &&
    isLike(pace) &&
    filledStraight(filled, first) &&
    slopeIn(filled, agesOf(curve, 2 / 3)) < LEVEL * slope &&
    slope * ageMs < ALIKE * room
  );
}

export function isPaceOf(slope: number, other: number): boolean {
  return other > slope / SAME_PACE && other < slope * SAME_PACE;
}

/** Whether a cache filled in a straight line until it was nearly full. One that bends while it fills also bends with more room. */
function filledStraight(filled: AgeCurve, { from, to }: Ages): boolean {
  const nearly = Math.max(...filled.values) - (1 - NEARLY_FULL) * filledFrom(filled, from);
  const full = filled.times.find(
    (time, at) => time >= from && (filled.values[at] as number) >= nearly,
  );
  const until = Math.min(to, full ?? to);
  const middle = (from + until) / 2;
  return isPaceOf(
    slopeIn(filled, { from, to: middle }),
    slopeIn(filled, { from: middle, to: until }),
  );
}

/** From the level at an age to the highest one. */
function filledFrom({ times, values }: AgeCurve, age: Millis): Bytes {
  const from = Math.max(0, firstFrom(times, age) - (LEVEL_READINGS >> 1));
  return Math.max(...values) - median(values.slice(from, from + LEVEL_READINGS));
}

/**
 * Whether the processes that run use no more at the busiest time of the last day than the latest earlier version, which does not
 * grow, used at its busiest. A version that is deployed on a quiet day, or with empty caches, rises to what is usual.
 */
export function isWithinUsual(
  processes: readonly Unloaded[],
  earlier: readonly Earlier[],
  endMs: TimeMs,
): boolean {
  const calm = earlier.findLast(
    ({ growth }) => growth !== null && CALM.has(growth.shape) && growth.windowMs >= LEAST_USUAL_MS,
  );
  const now = highLevel(processes, endMs - DAY_MS);
  const usual = calm === undefined ? 0 : highLevel(calm.processes, Number.NEGATIVE_INFINITY);
  return now > 0 && now < (1 + SAME_LEVEL) * usual;
}

/** The level that readings since a time rarely exceed, as a median over the instances; 0: there is none. */
function highLevel(processes: readonly Unloaded[], sinceMs: TimeMs): Bytes {
  const byInstance = new Map<string, Bytes>();
  for (const { process } of processes) {
    const { times, values } = process.rss;
    const read = Float64Array.from(values.slice(firstFrom(times, sinceMs)));
    if (read.length > 0) {
      const high = reorderedQuantile(read, 1 - RARE);
      byInstance.set(process.instance, Math.max(high, byInstance.get(process.instance) ?? 0));
    }
  }
  return median([...byInstance.values()]);
}

interface Precedent {
  readonly curve: AgeCurve;
  /** The ages that are compared. */
  readonly ages: Ages;
}

function latestPrecedent(curve: AgeCurve, earlier: readonly Earlier[]): Precedent | null {
  const ageMs = curve.times.at(-1) ?? 0;
  const found = earlier.flatMap((each): Precedent[] => {
    const outlived = precedentOf(each, ageMs);
    if (outlived !== null) {
      return [{ curve: outlived, ages: agesOf(curve) }];
    }
    // One that ended sooner had levelled off in the later half of its ages, where it does not hide a leak of the next.
    const filled = each.growth?.shape === "filling" ? longestPrecedent(each, ageMs, CALM) : null;
    return filled === null ? [] : [{ curve: filled, ages: agesOf(filled, FILLED_FROM) }];
  });
  return curve.axis === "age" ? (found.at(-1) ?? null) : null;
}

export interface Beyond {
  readonly processes: Unloaded[];
  /** Whether all lives began at the same hour of the day, so that their load was subtracted as well. */
  readonly isAtSameHours: boolean;
  /** How far their memory rose and fell at these ages, from the busiest to the quietest. */
  readonly earlierBytes: Bytes;
}

/**
 * Processes without what earlier versions did at the same ages: their caches, their warm-up, and the daily load where every process
 * is restarted at the same hour. What is left of a leak is a straight line. null: no earlier version was seen for long enough.
 */
export function beyondPrecedent(
  processes: readonly Unloaded[],
  curve: AgeCurve,
  earlier: readonly Earlier[],
): Beyond | null {
  const ageMs = curve.times.at(-1) ?? 0;
  const [usual, before] =
    (curve.axis === "age"
      ? earlier
          .map((each) => [longestPrecedent(each, ageMs), each] as const)
          .findLast(([found]) => found !== null)
      : undefined) ?? [];
  if (!usual || before === undefined) {
    return null;
  }
  const [start = 0] = usual.values;
  const left = processes.map(({ process, rss, work }) => ({
    process,
    rss: {
      times: rss.times,
      values: rss.values.map(
        (value, at) =>
          value - (levelAt(usual, (rss.times[at] as number) - process.startedMs) - start),
      ),
    },
    work,
  }));
  return {
    processes: left,
    earlierBytes: Math.max(...usual.values) - Math.min(...usual.values),
    isAtSameHours: startAlike([...processes, ...before.processes], ageMs),
  };
}

/** Whether most lives that reached such an age began at the same hour of the day, so that age and load go together. */
function startAlike(processes: readonly Unloaded[], ageMs: Millis): boolean {
  const angles = processes.flatMap(({ process: { startedMs }, rss }) =>
    (rss.times.at(-1) ?? 0) - startedMs >= LONG_LIFE * ageMs
      ? [(2 * Math.PI * startedMs) / DAY_MS]
      : [],
  );
  const [x, y] = [Math.cos, Math.sin].map((part) => median(angles.map(part)));
  const middle = Math.atan2(y as number, x as number);
  const near = angles.filter((angle) => Math.cos(angle - middle) > SAME_HOUR);
  return near.length > MOST * angles.length;
}

/** Up to an age that it outlived, or a part of it. */
function longestPrecedent(
  earlier: Earlier,
  ageMs: Millis,
  shapes: ReadonlySet<FleetShape> = NOT_LEAKING,
): AgeCurve | null {
  for (const part of SEEN_PARTS) {
    const curve = precedentOf(earlier, part * ageMs, OUTLIVED, shapes);
    if (curve !== null) {
      return curve;
    }
  }
  return null;
}

/** Between the bins of a curve; before and after it, that of its ends. */
function levelAt({ times, values }: AgeCurve, age: Millis): number {
  const next = firstFrom(times, age);
  const [from, to] = [Math.max(0, next - 1), Math.min(times.length - 1, next)];
  const [start, end] = [times[from] as number, times[to] as number];
  const share = end > start ? Math.min(1, Math.max(0, (age - start) / (end - start))) : 0;
  return (values[from] as number) + share * ((values[to] as number) - (values[from] as number));
}

/** Whether siblings of the same version, which are older, rose by at least half as much at this age. */
export function siblingsDidAlike(
  own: readonly Unloaded[],
  siblings: readonly Unloaded[],
  window: { readonly startMs: TimeMs; readonly endMs: TimeMs },
): boolean {
  const curve = ageCurve(own, window);
  const usual = curve?.axis === "age" ? livesUntil(siblings, curve.times.at(-1) ?? 0) : null;
  return (
    curve !== null &&
    usual !== null &&
    slopeIn(usual, agesOf(curve)) * ALIKE_SIBLINGS > slopeIn(curve)
  );
}

/** The slopes of a curve and of other processes at the ages that both reached; null: none of these lived for most of its time, or the
 * curve is not over age. */
export function slopesAtSameAges(
  curve: AgeCurve,
  others: readonly Unloaded[],
): { readonly own: number; readonly other: number } | null {
  if (curve.axis !== "age") {
    return null;
  }
  for (const part of SEEN_PARTS) {
    const other = livesUntil(others, part * (curve.times.at(-1) ?? 0), OUTLIVED);
    if (other !== null) {
      return { own: slopeIn(curve, agesOf(other)), other: slopeIn(other) };
    }
  }
  return null;
}

/** The curve of an earlier version up to an age that it outlived without growing on. null: it is no precedent. */
function precedentOf(
  { processes, growth }: Earlier,
  ageMs: Millis,
  longer?: number,
  shapes: ReadonlySet<FleetShape> = CALM,
): AgeCurve | null {
  return growth === null || !shapes.has(growth.shape) ? null : livesUntil(processes, ageMs, longer);
}

/** The curve of processes up to an age that they outlived. null: none did. */
function livesUntil(
  processes: readonly Unloaded[],
  ageMs: Millis,
  longer = LONGER,
): AgeCurve | null {
  const lives = processes.flatMap(({ process, rss, work }): Unloaded[] => {
    const [first, last] = [rss.times[0], rss.times.at(-1)];
    const isSeen =
      first !== undefined &&
      first - process.startedMs <= SEEN_FROM * ageMs &&
      (last as number) - process.startedMs >= longer * ageMs;
    const until = firstFrom(rss.times, process.startedMs + ageMs);
    return isSeen
      ? [
          {
            process,
            rss: { times: rss.times.slice(0, until), values: rss.values.slice(0, until) },
            work: work === null ? null : work.slice(0, until),
          },
        ]
      : [];
  });
  const startMs = Math.min(...lives.map(({ process }) => process.startedMs));
  const endMs = Math.max(...lives.map(({ rss }) => rss.times.at(-1) ?? 0));
  const curve = lives.length === 0 ? null : ageCurve(lives, { startMs, endMs });
  return curve !== null && isSeenThroughout(curve) ? curve : null;
}

/** Without a gap, as hours without a collector leave it, in the ages that are compared. */
function isSeenThroughout(curve: AgeCurve): boolean {
  const { from, to } = agesOf(curve);
  const compared = curve.times.filter((time) => time >= from);
  const gaps = compared.map((time, at) => time - (compared[at - 1] ?? from));
  return Math.max(...gaps) <= LONGEST_GAP * (to - from);
}

interface Ages {
  readonly from: Millis;
  readonly to: Millis;
}

/** The ages of a curve that are compared, or a part of them. */
function agesOf({ times }: AgeCurve, from = COMPARED_FROM, to = 1): Ages {
  const [first, last] = [times[0] ?? 0, times.at(-1) ?? 0];
  return { from: first + from * (last - first), to: first + to * (last - first) };
}

function slopeIn(curve: AgeCurve, { from, to }: Ages = agesOf(curve)): number {
  const { times, values } = curve;
  const [start, end] = [firstFrom(times, from), firstFrom(times, to) + 1];
  return theilSenSlope(times.slice(start, end), values.slice(start, end));
}
