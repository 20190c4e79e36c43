/**
 * Whether what a function holds beyond its usual level is in proportion to the age of its processes, or to their requests:
 *
 *   log(excess) = a + k log(age)        k = 1 of a leak; less of what fills; 0 of load that came with a deploy
 */
import type { Bytes, Millis } from "../../../model/base/units.js";
import { median } from "../../series/trend.js";
import { LOAD_BENDS_MS } from "../curves/age_curve.js";
import type { HeldByFunction, SeenLife } from "./seen_lines.js";

const MINUTE_MS: Millis = 60_000;
const HOUR_MS: Millis = 60 * MINUTE_MS;
/** The youngest process that shows the course of a line: where a process found the container that holds it, without a bound, and
 * otherwise. At the later age, what fills in up to 20 h bends by more than the sampler's noise; where requests are known, earlier if
 * readings are exact enough. */
export const LEAST_AGE_MS = { open: 75 * MINUTE_MS, exact: 2 * HOUR_MS, unknown: 6 * HOUR_MS };
/** Ages at which a line without a bound may have been in proportion to its age, and what it gains from the middle to the last sixth of
 * its life, and gives back at most, as shares of its excess: it still leaks, though requests became fewer. */
const EARLIER_AGES_MS: readonly Millis[] = [2, 4, 6, 9, 15, 24].map((hours) => hours * HOUR_MS);
const GOES_ON = { gained: 0.05, given: 0.1 };
/** In a younger version, or in shorter lives, load can straighten over time what bends over requests. If no process found the container,
 * both have to be straight; in a younger version whose requests are unknown, nothing is decided ({@link LOAD_BENDS_MS}). */
const WHOLE_DAY_MS: Millis = 22 * HOUR_MS;
/** The time in which what is compared with a leak fills, and how far its k is below 1 at that age. Nearly in proportion before. */
const FILL = { ms: 20 * HOUR_MS, bend: 0.27 };
/** The agent came before this share of a life. */
export const SEEN_FROM = 0.25;
/** Otherwise, the first reading's share of what is in proportion to its age. */
const LEAST_OF_FIRST = 0.6;
/** Ages that are compared: the rest is too near to the start. */
const COMPARED_FROM = 0.25;
export const FEWEST_READINGS = 4;
/** Whose median is a level. */
const FEWEST_OF_PART = 3;
/** Of k: it may be 1 within its standard error, and is not far below, by as many errors. */
const STRAIGHT = { likely: 0.95, least: 0.85 };
const ERRORS = { open: 1, unknown: 2 };
const EXACT_ERRORS = 2;
/** The least error of the logarithms of readings: that of a sampler. */
const LEAST_ERROR = 0.03;

interface Course {
  readonly held: HeldByFunction;
  readonly points: readonly Point[];
}

/** The excess of each life up to an age, without its start. Nothing if the function held no more than usual somewhere. */
export function coursesOf(
  name: string,
  lives: readonly SeenLife[],
  level: Bytes,
  untilMs: Millis = Number.POSITIVE_INFINITY,
): Course[] {
  const courses = lives.flatMap(({ ages, work, byFunction }) => {
    const held = byFunction.get(name) as HeldByFunction;
    const seen = ages.filter((age) => age <= untilMs);
    const from = COMPARED_FROM * (seen.at(-1) ?? 0);
    const points = seen.flatMap((age, at) =>
      age >= from
        ? [{ age, work: work?.[at] ?? 0, excess: (held.values[at] as number) - level }]
        : [],
    );
    return points.length >= FEWEST_READINGS && isWhole(points, ages) ? [{ held, points }] : [];
  });
  return courses.every(({ points }) => points.every(({ excess }) => excess > 0)) ? courses : [];
}

export function oldestOf(points: readonly (readonly Point[])[]): Millis {
  return Math.max(...points.map((each) => each.at(-1)?.age ?? 0));
}

/**
 * The axis over which the excess was a straight line at an earlier age, if most lives gained more since and gave nothing back. A
 * leak that follows requests slows down at night and on a weekend.
 */
export function straightEarlier(
  name: string,
  lives: readonly SeenLife[],
  level: Bytes,
): Exponent | null {
  const whole = coursesOf(name, lives, level).map(({ points }) => points);
  const onward = whole.filter(goesOn);
  if (2 * onward.length <= whole.length) {
    return null;
  }
  for (const untilMs of EARLIER_AGES_MS.filter((age) => 2 * age <= oldestOf(whole))) {
    const points = coursesOf(name, lives, level, untilMs).map((each) => each.points);
    const straight = points.length === 0 ? null : straightAxis(points, untilMs, "open");
    if (straight !== null) {
      return straight;
    }
  }
  return null;
}

function goesOn(points: readonly Point[]): boolean {
  const excess = points.map((each) => each.excess);
  const part = Math.max(FEWEST_OF_PART, Math.floor(excess.length / 6));
  const middle = (excess.length - part) >> 1;
  const [then, end] = [median(excess.slice(middle, middle + part)), median(excess.slice(-part))];
  const most = Math.max(
    ...excess.slice(0, -part).map((_, at) => median(excess.slice(at, at + part))),
  );
  return end - then > GOES_ON.gained * end && most - end < GOES_ON.given * end;
}

/** The axis over which the excess is a straight line, age or requests, if it is surely one; otherwise null. */
export function straightAxis(
  points: readonly (readonly Point[])[],
  ranMs: Millis,
  container: "open" | "unknown" | "first",
): Exponent | null {
  const oldest = oldestOf(points);
  const isWorkKnown = points.flat().every(({ work }) => work > 0);
  const axes = (["age", ...(isWorkKnown ? (["work"] as const) : [])] as const).map((axis) =>
    exponent(points, axis),
  );
  // Without a bound it may follow either; a cache may by chance look straight over the wrong one.
  const distance = ({ slope, spread }: Exponent) =>
    container === "open" ? Math.abs(slope - 1) : spread;
  const best = axes.reduce((a, b) => (distance(b) < distance(a) ? b : a));
  if (container !== "first" && oldest >= LEAST_AGE_MS[container]) {
    const isStraight = ({ slope, error }: Exponent) =>
      slope >= Math.max(STRAIGHT.likely - error, STRAIGHT.least + ERRORS[container] * error);
    const isOld = container === "open" || ranMs >= LOAD_BENDS_MS;
    const isEither = container === "open" || (isOld && oldest >= WHOLE_DAY_MS);
    return (isOld || isWorkKnown) && (isEither ? isStraight(best) : axes.every(isStraight))
      ? best
      : null;
  }
  const ofFilling = 1 - (FILL.bend * oldest) / FILL.ms;
  const isExact =
    container !== "open" &&
    isWorkKnown &&
    oldest >= LEAST_AGE_MS.exact &&
    axes.every((each) => each.slope - EXACT_ERRORS * each.error > ofFilling);
  return isExact ? best : null;
}

/** Whether the agent was there from the start, or the first excess that it read shows that it was: nothing older is missing. */
function isWhole(points: readonly Point[], ages: readonly Millis[]): boolean {
  const [first, last] = [points[0] as Point, points.at(-1) as Point];
  const isEarly = (ages[0] as number) <= SEEN_FROM * last.age;
  return isEarly || first.excess / first.age >= LEAST_OF_FIRST * (last.excess / last.age);
}

interface Point {
  readonly age: Millis;
  readonly work: number;
  readonly excess: Bytes;
}

export interface Exponent {
  readonly slope: number;
  readonly error: number;
  readonly spread: number;
  readonly readings: number;
}

/** k of log(excess) = a + k log(age), with an own a for each life; or of the requests in place of the age. */
function exponent(courses: readonly (readonly Point[])[], axis: "age" | "work"): Exponent {
  let [xx, xy, yy, readings] = [0, 0, 0, 0];
  for (const points of courses) {
    const rows = points.map((each) => [Math.log(each[axis]), Math.log(each.excess)] as const);
    const [meanX, meanY] = [0, 1].map(
      (column) => rows.reduce((sum, row) => sum + (row[column] as number), 0) / rows.length,
    ) as [number, number];
    for (const [x, y] of rows) {
      xx += (x - meanX) ** 2;
      xy += (x - meanX) * (y - meanY);
      yy += (y - meanY) ** 2;
    }
    readings += points.length;
  }
  const slope = xy / xx;
  const free = Math.max(1, readings - courses.length - 1);
  const spread = Math.max(LEAST_ERROR, Math.sqrt(Math.max(0, yy - slope * xy) / free));
  return { slope, error: spread / Math.sqrt(xx), spread, readings };
}
