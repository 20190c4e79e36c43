/**
 * Lives that rise in a straight line by more than caches take. Fits over the curve of a version need readings whose errors are
 * independent; where load that is unknown bends every life, or the kernel kills each of them within hours, the lives
 * themselves agree:
 *
 *   limit  ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄
 *   life 1  ▁▂▃▄▅▆▇█ killed          rose by 30 % of the limit or more, half of it in half of its time
 *   life 2         ▁▂▃▄▅▆▇█ killed
 *   life 3  ▁▂▃▄▄▅▆▇█ killed         three lives, or all instances if there are fewer, and most of
 *                                          those that lived as long: leaks
 *
 * Where no limit is known, lives count that rose to three times their level after start-up.
 *
 * Where requests are few at night, a leak that follows them is no straight line. A life of more than a day that rose by half of the
 * limit, or a shorter one that came near to it, counts as well if it rose in each half of its time and gave nothing back: what fills
 * rises less and less, and load gives back.
 *
 * Where lives end at the limit repeatedly, what is removed as load may be a part of the leak. Three such lives show it as they
 * were read, if they rose in each half of their time and most of those that lived as long ended so.
 */
import type { Bytes, Millis } from "../../../model/base/units.js";
import { firstFrom, medianOf } from "../../series/medians.js";
import { median } from "../../series/trend.js";
import type { Unloaded } from "./load_removal.js";

const DAY_MS: Millis = 24 * 3_600_000;
const LONG_LIFE_MS: Millis = 2 * DAY_MS;
const START_UP_MS: Millis = 10 * 60_000;
/** Of the limit. */
const LEAST_RISE = 0.3;
/** Where no limit is known: multiples of the level after start-up, and bytes. */
const LEAST_UNLIMITED = { ofStart: 2, bytes: 256 * 2 ** 20 };
/** The part of its rise that a life has at half of its time. */
const HALFWAY = { least: 0.35, most: 0.6 };
/** The same of a life that gives nothing back, and is long or comes near to its limit: its least length and rise, the level from which
 * it is near, and its largest decrease as a share of the rise. */
const KEPT = { lengthMs: 30 * 3_600_000, rise: 0.5, killed: 0.9, halfway: 0.1, given: 0.05 };
/** The part of its rise that a life which ended at the limit has at half of its time. A single large request has none. */
const KILLED_HALFWAY = { least: 0.1, most: 0.75 };
const FEWEST_LIVES = 3;
const MOST_OTHERS = 0.25;
/** Readings whose median is one level. */
const SMOOTHED = 5;
/** Over a life, to see what it gives back. */
const LEVELS = 48;

/** Bytes per ms, over lives; null: too few rise so far, or they disagree. `fewest`: lives. */
export function straightLives(
  processes: readonly Unloaded[],
  limit: Bytes,
  fewest = Math.min(FEWEST_LIVES, instancesIn(processes)),
): Rates | null {
  return (
    agreeing(
      processes.flatMap(riseOf),
      (life) => life.rise > leastOf(life, limit) && (isStraight(life) || isKept(life, limit)),
      fewest,
    ) ?? killedLives(processes, limit)
  );
}

/** The same of lives that ended at the limit, as they were read. */
function killedLives(processes: readonly Unloaded[], limit: Bytes): Rates | null {
  const read = processes.map((each) => ({ ...each, rss: each.process.rss }));
  const killed = read.filter(
    ({ process, rss }) =>
      process.endedMs !== null && (rss.values.at(-1) ?? 0) > KEPT.killed * process.limitBytes,
  );
  return limit > 0 && killed.length >= FEWEST_LIVES
    ? agreeing(
        read.filter(({ process }) => process.endedMs !== null).flatMap(riseOf),
        (life) =>
          life.end > KEPT.killed * limit &&
          life.rise > leastOf(life, limit) &&
          isWithin(life, KILLED_HALFWAY) &&
          givesNothingBack(life),
        FEWEST_LIVES,
      )
    : null;
}

interface Rates {
  readonly rate: number;
  readonly low: number;
  readonly high: number;
}

/** The rates of lives that leak, if they are enough and most of those that lived as long do. */
function agreeing(
  lives: readonly Life[],
  leaks: (life: Life) => boolean,
  fewest: number,
): Rates | null {
  const straight = lives.filter(leaks);
  const least = Math.min(...straight.map(({ lengthMs }) => lengthMs));
  const others = lives.filter((each) => each.lengthMs >= least && !straight.includes(each));
  if (straight.length < fewest || others.length > MOST_OTHERS * straight.length) {
    return null;
  }
  const rates = straight.map(({ rise, lengthMs }) => rise / lengthMs);
  return { rate: median(rates), low: Math.min(...rates), high: Math.max(...rates) };
}

function instancesIn(processes: readonly Unloaded[]): number {
  return new Set(processes.map(({ process }) => process.instance)).size;
}

interface Life {
  /** After start-up. */
  readonly start: Bytes;
  readonly end: Bytes;
  /** Needed for few lives. */
  readonly levels: () => readonly Bytes[];
  readonly rise: Bytes;
  readonly lengthMs: Millis;
  /** Share of the rise. */
  readonly halfway: number;
}

function leastOf({ start }: Life, limit: Bytes): Bytes {
  return limit > 0
    ? LEAST_RISE * limit
    : Math.max(LEAST_UNLIMITED.bytes, LEAST_UNLIMITED.ofStart * start);
}

function isStraight(life: Life): boolean {
  return isWithin(life, HALFWAY);
}

function isWithin({ halfway }: Life, { least, most }: typeof HALFWAY): boolean {
  return halfway >= least && halfway <= most;
}

function isKept(life: Life, limit: Bytes): boolean {
  const { end, rise, lengthMs } = life;
  const isLong = lengthMs >= KEPT.lengthMs && rise > KEPT.rise * limit;
  const isFar = limit > 0 && (isLong || end > KEPT.killed * limit);
  const isSpread = isWithin(life, { least: KEPT.halfway, most: HALFWAY.most });
  return isFar && isSpread && givesNothingBack(life);
}

function givesNothingBack({ levels, rise }: Life): boolean {
  let [highest, given] = [Number.NEGATIVE_INFINITY, 0];
  for (const level of levels()) {
    highest = Math.max(highest, level);
    given = Math.max(given, highest - level);
  }
  return given <= KEPT.given * rise;
}

/** After start-up. Nothing if it was seen too rarely. */
function riseOf({ process, rss: { times, values } }: Unloaded): Life[] {
  const first = firstFrom(times, process.startedMs + START_UP_MS);
  const last = times.length - 1;
  const [start, end] = [times[first] ?? 0, times[last] ?? 0];
  const middle = firstFrom(times, (start + end) / 2);
  if (last - first < 4 * SMOOTHED || middle - first < SMOOTHED || last - middle < SMOOTHED) {
    return [];
  }
  // Of whole days where there are some: the hours of their load are then the same.
  const isLong = end - start >= LONG_LIFE_MS;
  const levelAt = (at: number) => {
    const middle = Math.min(end - DAY_MS / 2, Math.max(start + DAY_MS / 2, times[at] as number));
    const ofDay = firstFrom(times, middle - DAY_MS / 2);
    return isLong
      ? medianOf(values, ofDay, Math.max(ofDay + 1, firstFrom(times, middle + DAY_MS / 2)))
      : medianOf(
          values,
          Math.max(first, at - (SMOOTHED >> 1)),
          Math.min(last + 1, at + SMOOTHED - (SMOOTHED >> 1)),
        );
  };
  const [from, half, to] = [levelAt(first), levelAt(middle), levelAt(last)];
  const levels = () =>
    Array.from({ length: LEVELS + 1 }, (_, at) =>
      levelAt(firstFrom(times, start + (at / LEVELS) * (end - start))),
    );
  return [
    {
      start: from,
      end: values[last] as number,
      levels,
      rise: to - from,
      lengthMs: end - start - (isLong ? DAY_MS : 0),
      halfway: (half - from) / (to - from),
    },
  ];
}
