/**
 * Lines of code that allocate what no earlier version kept. RSS needs many hours to distinguish a leak from noise, load
 * and caches; a line that the earlier version never had in memory needs few, because nothing else is in its readings:
 *
 *   age              0 h ──── 2 h ──────────── 2 d
 *   version 41       ▁▅▇█████████████████████████    cached()      fills, which version 42 may do as well
 *                    ▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃    <module>      level
 *   version 42       ▁▅▇█                            cached()      has done so before: decides nothing early
 *                    ▁▂▄▅                            remember()    new, and in proportion to the age: leaks
 *
 * The excess of a function over its usual level in earlier versions is compared with the age: log(excess) = a + k log(age).
 * A leak has k = 1, what fills in T falls behind (k = 0.87 when the age is T/2, 0.75 when it is T), and load that came with a
 * deploy has k = 0. Lines move with each version, so functions are compared, by name and file.
 *
 * Where it fails: a cache that only the new version has, that takes several times as long to fill as the version is old, whose
 * bound is unknown, and whose name does not show that it is one (bounded_lines.ts).
 */
import type { Bytes, Millis } from "../../../model/base/units.js";
import type { FrameJson } from "../../../model/documents/documents.js";
import { smallestRise } from "../../series/growth.js";
import { median } from "../../series/trend.js";
import type { FleetProcess } from "../curves/fleet_evidence.js";
import { boundednessOf, mayFill } from "./bounded_lines.js";
import type { SeenLife } from "./seen_lines.js";
import {
  coursesOf,
  FEWEST_READINGS,
  LEAST_AGE_MS,
  oldestOf,
  SEEN_FROM,
  straightAxis,
  straightEarlier,
} from "./straight_line.js";

const MINUTE_MS: Millis = 60_000;
const HOUR_MS: Millis = 60 * MINUTE_MS;
/** Imports and start-up come before. */
const START_UP_MS: Millis = 10 * MINUTE_MS;
/** Without an earlier version only what passes the limit within this time, if nothing stops it, is decided early. */
const SOON_MS: Millis = 7 * 24 * HOUR_MS;
/** Earlier versions were seen for each hour of a day. */
const LEAST_SEEN_MS: Millis = 24 * HOUR_MS;
/** One life of an earlier version reached this share of the age, up to a day. */
const LEAST_COMPARED = 0.5;
/** What a function's memory varied by in earlier versions, as a share of its excess. */
const MOST_BEFORE = 0.15;
/** Functions that have gone with the earlier version and held this share of the excess may go on under a new name. */
const MOST_MOVED = 1 / 3.5;
const GONE = 0.15;
/** The least excess, as shares of the limit, of the level where no limit is known, and of what counts in RSS. */
const LEAST = { ofLimit: 0.005, ofLevel: 0.02, ofRise: 0.3 };

/** A line without precedent that grows. Rates are bytes per ms. */
export interface NewLine {
  readonly line: FrameJson;
  readonly stack: readonly FrameJson[];
  readonly rate: number;
  readonly low: number;
  readonly high: number;
  /** That have it. */
  readonly instances: ReadonlySet<string>;
}

interface Known {
  readonly level: Bytes;
  readonly limit: Bytes;
  readonly z: number;
  /** Of the version, with the holders that their own diagnoses found. */
  readonly processes: readonly FleetProcess[];
  /** Whether no version ran before. */
  readonly isFirst: boolean;
  /** Since its first start. */
  readonly ranMs: Millis;
}

/** Of one version, the fastest first. `earlier`: lives of the versions before it. */
export function newLines(
  all: readonly SeenLife[],
  earlier: readonly SeenLife[],
  about: Known,
): NewLine[] {
  const { level, limit, isFirst } = about;
  const lives = all.filter(({ ages }) => (ages.at(-1) ?? 0) >= LEAST_AGE_MS.open);
  const before = lives.length === 0 ? [] : fromStart(earlier);
  const oldest = Math.max(...lives.map(({ ages }) => ages.at(-1) as number));
  if (!isFirst && !areComparable(before, oldest)) {
    return [];
  }
  const most = smallestRise(oldest, level);
  const least = Math.max(
    limit > 0 ? LEAST.ofLimit * limit : LEAST.ofLevel * level,
    LEAST.ofRise * most,
  );
  const names = new Set(lives.flatMap(({ byFunction }) => [...byFunction.keys()]));
  const gone = goneFrom(lives, before);
  const found = [...names].flatMap((name) => {
    const usual = usualOf(name, before);
    const own = lives.filter(({ byFunction }) => byFunction.has(name));
    const growth = straightGrowth(name, own, usual.level, about);
    const isNew =
      growth !== null &&
      growth.excess >= least &&
      usual.range <= MOST_BEFORE * growth.excess &&
      gone <= MOST_MOVED * growth.excess &&
      (!isFirst || limit - level < growth.line.rate * SOON_MS);
    return isNew ? [{ ...growth.line, instances: instancesOf(own) }] : [];
  });
  return found.sort((a, b) => b.rate - a.rate);
}

/** Whether earlier versions were seen for a day in all, and in one life for long enough. */
function areComparable(before: readonly SeenLife[], oldest: Millis): boolean {
  const seenMs = before.reduce((sum, { ages }) => sum + (ages.at(-1) as number), 0);
  const comparedMs = LEAST_COMPARED * Math.min(oldest, LEAST_SEEN_MS);
  return (
    seenMs >= LEAST_SEEN_MS && before.some(({ ages }) => (ages.at(-1) as number) >= comparedMs)
  );
}

export function instancesOf(lives: readonly { readonly process: FleetProcess }[]): Set<string> {
  return new Set(lives.map(({ process }) => process.instance));
}

/** Lives that the agent saw from their start on. */
function fromStart(lives: readonly SeenLife[]): SeenLife[] {
  return lives.filter(({ ages }) => {
    const [first, last] = [ages[0] ?? 0, ages.at(-1) ?? 0];
    return last > START_UP_MS && first <= SEEN_FROM * last;
  });
}

/** What a function held in earlier lives after start-up: its median, and how far it rose and fell. */
function usualOf(name: string, before: readonly SeenLife[]) {
  const all = before.flatMap(({ ages, byFunction }) => {
    const values = byFunction.get(name)?.values;
    return ages.flatMap((age, at) => (age < START_UP_MS ? [] : [values?.[at] ?? 0]));
  });
  let [least, most] = [Number.POSITIVE_INFINITY, 0];
  for (const bytes of all) {
    least = Math.min(least, bytes);
    most = Math.max(most, bytes);
  }
  return { level: median(all), range: most - least };
}

interface Straight {
  readonly excess: Bytes;
  readonly line: Omit<NewLine, "instances">;
}

/** Of the excess over a level, if it is in proportion to the age, over all lives together; otherwise null. */
function straightGrowth(
  name: string,
  lives: readonly SeenLife[],
  level: Bytes,
  { z, processes, isFirst, ranMs }: Known,
): Straight | null {
  const courses = coursesOf(name, lives, level);
  if (courses.length === 0) {
    return null;
  }
  const points = courses.map((each) => each.points);
  const { line, stack } = courses
    .map(({ held }) => held)
    .reduce((a, b) => (b.lastOfLine > a.lastOfLine ? b : a));
  const oldest = oldestOf(points);
  const isOpen = boundednessOf(line, processes) === "open";
  const straight =
    mayFill(line, processes, oldest) || (isFirst && !isOpen)
      ? null
      : (straightAxis(points, ranMs, isFirst ? "first" : isOpen ? "open" : "unknown") ??
        (isOpen && !isFirst ? straightEarlier(name, lives, level) : null));
  if (straight === null) {
    return null;
  }
  const { error, spread, readings } = straight;
  const rates = courses.map(({ points }) => median(points.map(({ age, excess }) => excess / age)));
  const rate = median(rates);
  // Readings of one life err together.
  const width = rate * z * Math.max(spread / Math.sqrt(readings / FEWEST_READINGS), error);
  const ends = courses.map(({ points }) => median(points.slice(-3).map(({ excess }) => excess)));
  return {
    excess: median(ends),
    line: { line, stack, rate, low: Math.max(rate / 2, rate - width), high: rate + width },
  };
}

/** What functions held at the ages of `lives` that are gone in these. */
function goneFrom(lives: readonly SeenLife[], before: readonly SeenLife[]): Bytes {
  const age = median(lives.map(({ ages }) => ages.at(-1) as number));
  const names = new Set(before.flatMap(({ byFunction }) => [...byFunction.keys()]));
  let gone = 0;
  for (const name of names) {
    const then = median(before.flatMap((each) => heldAt(each, name, age)));
    const now = median(lives.flatMap((each) => heldAt(each, name, age)));
    gone += now <= GONE * then ? then : 0;
  }
  return gone;
}

/** Nothing if the life was shorter. */
function heldAt({ ages, byFunction }: SeenLife, name: string, age: Millis): Bytes[] {
  const at = ages.findIndex((each) => each >= age);
  return at < 0 ? [] : [byFunction.get(name)?.values[at] ?? 0];
}
