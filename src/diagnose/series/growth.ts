/**
 * Decides whether a metric grows, from its readings alone. Header, verdict, evidence and JSON all use this
 * answer. The first third of the window is start-up and is left out. Growth is what passes every gate on the
 * rest: Hamed-Rao Mann-Kendall, rising minima (so that memory which is freed again does not count), a Theil-Sen
 * interval above zero, a last third that still rises, and a rise that is more than one or two steps. Each gate
 * alone would accept much that is not growth: Mann-Kendall flags every warm-up and every single step.
 *
 * A program that works in bursts (notebook cells, batches, scheduled jobs) rises in many steps and is flat
 * between them:
 *
 *     bytes          ____
 *               ____|         four or more steps of similar size at similar distances,
 *          ____|              none given back: growing
 *     ____|
 */
import type { Millis } from "../../model/base/units.js";
import { withoutDailyCycle } from "./daily_cycle.js";
import { mannKendall } from "./mann_kendall.js";
import type { Readings } from "./readings.js";
import { median, theilSen } from "./trend.js";

/** `growing`: throughout. `flattened`: rose, then stopped. `stepped`: rose in one or two steps.
 * `flat`: does not rise. `short`: too few readings to decide. */
export type GrowthShape = "growing" | "flattened" | "stepped" | "flat" | "short";

/** A slope with its 95 % interval, per ms. */
export interface Slope {
  readonly slope: number;
  readonly low: number;
  readonly high: number;
}

export interface Growth extends Slope {
  readonly shape: GrowthShape;
  /** Slope times the duration of the judged part, the last two thirds of the window. */
  readonly rise: number;
  /** Duration of the judged part. */
  readonly spanMs: number;
  /** The slope of only the last third of the window. */
  readonly late: Slope;
  /** Last level minus first level of the whole window, start-up included. */
  readonly wholeRise: number;
  /** Slope of the last third of the judged part divided by that of the whole judged part; 0 if that does not rise. */
  readonly lastThird: number;
  /** The line's level at the start of the judged part. */
  readonly baseline: number;
  /** Median of the last tenth. */
  readonly level: number;
  readonly z: number;
}

const FEWEST_READINGS = 8;
/** For a count, which has no noise: fewest readings if each is above the previous one. */
const FEWEST_RISING = 6;
/** Fewest readings for a line through the last third; a busy recorder polls less often. */
const FEWEST_OF_SLOPE = 3;
/** Mann-Kendall, Theil-Sen and the slices use at most this many readings. */
const MOST_READINGS = 240;
const SLICES = 12;
const STEP_SLICES = 24;
/** One-sided 1 %. */
const SIGNIFICANT_Z = 2.326;
const LEAST_LAST_THIRD = 0.25;
/** Share of slices whose minimum is above the previous one. */
const RISING_SHARE = 0.6;
/** Share of all rising that the two highest steps may have. */
const MOST_OF_TWO_STEPS = 0.6;
/** If a third step has at least this share of the second, the rise is a staircase, not two jumps. */
const LEAST_THIRD_STEP = 0.5;
/** Smallest step of a staircase as a share of the whole rise, and the largest total decrease. */
const LEAST_STEP = 0.08;
const MOST_GIVEN_BACK = 0.1;
const FEWEST_STEPS = 4;
/** Largest step, and longest distance between two steps, as multiples of the median. */
const SIMILAR = 2.5;

/** Smallest significant growth, in a short and in a long window: bytes, and share of the level. */
const SHORT_WINDOW_MS = 120_000;
const LONG_WINDOW_MS = 600_000;
const SMALLEST_SHORT = { bytes: 2_000_000, share: 0.005 };
const SMALLEST_LONG = { bytes: 5_000_000, share: 0.02 };
/**
 * Growth that is slower than these is significant if it is measured precisely: what it adds in a day, and its
 * rise in a judged part of 40 s and of 100 s or more.
 */
const SMALLEST_DAILY = { bytes: 100_000_000, share: 0.05 };
const SMALLEST_SURE = {
  shortMs: 40_000,
  shortBytes: 1_000_000,
  longMs: 90_000,
  longBytes: 300_000,
};
const DAY_MS: Millis = 86_400_000;
/** Least and largest limit of the interval as a share of the slope, and least slope of the last third. */
const SURE_LOW = 0.7;
const SURE_HIGH = 1.3;
const SURE_LATE = 0.7;
/** In less time an even rise may be start-up. */
const SHORTEST_SURE_MS: Millis = 30_000;

/** `counts`: the metric is a count. */
export function assessGrowth(all: Readings, counts = false): Growth {
  const whole = thinned(withoutDailyCycle(all));
  const { times, values } = afterFirstThird(whole);
  const tenth = Math.max(1, Math.round(whole.values.length / 10));
  const level = median(whole.values.slice(-tenth));
  const wholeRise = level - median(whole.values.slice(0, tenth));
  const enough = counts && alwaysRises(values) ? FEWEST_RISING : FEWEST_READINGS;
  if (values.length < enough) {
    return { ...UNKNOWN, wholeRise, level, baseline: values[0] ?? 0 };
  }
  const { z, dependence } = mannKendall(evenly(times, values));
  const { slope, low, high, start } = theilSen(times, values, dependence);
  const spanMs = (times.at(-1) as number) - (times[0] as number);
  const lastSlope = slopeFrom({ times, values }, 2 / 3, 1).slope;
  const figures = {
    ...{ slope, low, high, spanMs, wholeRise, level, z },
    rise: slope * spanMs,
    // The line may begin outside the range of the readings, which limits it.
    baseline: Math.min(Math.max(start, Math.min(...values)), Math.max(...values)),
    late: slopeFrom({ times, values }, 1 / 2, dependence),
    lastThird: slope > 0 ? lastSlope / slope : 0,
  };
  const levels = slices(times, values, STEP_SLICES).map(median);
  if (isStepped(levels)) {
    return { shape: "stepped", ...figures };
  }
  if (climbsInSteps(levels)) {
    return { shape: "growing", ...figures };
  }
  const rises = z > SIGNIFICANT_Z && low > 0 && minimaRise(times, values);
  if (rises && figures.lastThird >= LEAST_LAST_THIRD) {
    return { shape: "growing", ...figures };
  }
  const rose = rises || wholeRise > 2 * Math.abs(figures.rise);
  return { shape: rose ? "flattened" : "flat", ...figures };
}

const NO_SLOPE: Slope = { slope: 0, low: 0, high: 0 };
const UNKNOWN = {
  shape: "short",
  ...NO_SLOPE,
  late: NO_SLOPE,
  rise: 0,
  spanMs: 0,
  lastThird: 0,
  z: 0,
} as const;

/** In a shorter window growth cannot be distinguished from start-up, however many readings it has. */
export const SHORTEST_WINDOW_MS: Millis = 8000;
/** The first and the last reading may each be this far from the window's ends. */
const POLL_MS: Millis = 500;

export function isWindowShort({ times }: Readings): boolean {
  return (times.at(-1) ?? 0) - (times[0] ?? 0) < SHORTEST_WINDOW_MS - 2 * POLL_MS;
}

/** Only the levels of a growth whose rate is not known. */
export function withoutRate({ wholeRise, level, baseline }: Growth): Growth {
  return { ...UNKNOWN, wholeRise, level, baseline };
}

/**
 * Whether memory grows with certainty and significantly: the interval of the slope excludes zero by more than
 * the threshold, over the last two thirds of the window and over the last third. While this is true, no verdict
 * may call the program steady.
 */
export function isFirm(growth: Growth): boolean {
  const { shape, low, late, spanMs, level } = growth;
  if (shape === "short" || spanMs <= 0) {
    return false;
  }
  const least = smallestRise(spanMs, level) / spanMs;
  return (low > least && late.low > least) || isSlowAndSure(growth);
}

/**
 * Why an interval above zero is not growth with certainty. `small`: the rise may be less than what counts in a window of
 * this length. `past`: the last third may not rise. null: it is certain, or the interval includes zero.
 */
export function doubtAbout(growth: Growth): "small" | "past" | null {
  const { shape, low, spanMs, level } = growth;
  if (shape === "short" || low <= 0 || isFirm(growth)) {
    return null;
  }
  return low * spanMs > smallestRise(spanMs, level) ? "past" : "small";
}

/**
 * Growth that is too slow to reach the threshold of the window, but even, precisely measured, and significant if
 * it continues for a day. The last third grows at about the same rate, so it is not the end of a start-up.
 */
function isSlowAndSure(growth: Growth): boolean {
  const { shortMs, shortBytes, longMs, longBytes } = SMALLEST_SURE;
  const position = Math.max(0, Math.min(1, (growth.spanMs - shortMs) / (longMs - shortMs)));
  return (
    growth.shape === "growing" &&
    isEven(growth) &&
    growth.rise >= shortBytes + position * (longBytes - shortBytes)
  );
}

/** Whether it is even, precisely measured, and significant if it continues for a day, however little it is so far. */
export function isEven({ slope, low, high, late, spanMs, level }: Growth): boolean {
  const daily = Math.max(SMALLEST_DAILY.bytes, SMALLEST_DAILY.share * level);
  return (
    spanMs >= SHORTEST_SURE_MS &&
    low * DAY_MS > daily &&
    low >= SURE_LOW * slope &&
    high <= SURE_HIGH * slope &&
    late.low > 0 &&
    late.slope >= SURE_LATE * slope
  );
}

/**
 * Whether it rises with certainty in the last third of the window, whatever happened before; late growth has
 * not ended.
 */
export function risesLate({ shape, late, spanMs, level }: Growth): boolean {
  return shape !== "short" && (late.low * spanMs) / 2 > smallestRise(spanMs, level);
}

/** Bytes over the judged part. */
export function smallestRise(spanMs: number, level: number): number {
  const position = (spanMs - SHORT_WINDOW_MS) / (LONG_WINDOW_MS - SHORT_WINDOW_MS);
  const mixed = (key: "bytes" | "share") =>
    SMALLEST_SHORT[key] +
    Math.max(0, Math.min(1, position)) * (SMALLEST_LONG[key] - SMALLEST_SHORT[key]);
  return Math.max(mixed("bytes"), mixed("share") * level);
}

/** The line through the readings after a share of their time. */
function slopeFrom({ times, values }: Readings, share: number, dependence: number): Slope {
  const from = times[0] ?? 0;
  const span = (times.at(-1) ?? 0) - from;
  const first = times.findIndex((time) => time >= from + span * share);
  const late = Math.max(0, Math.min(first, times.length - FEWEST_OF_SLOPE));
  return theilSen(times.slice(late), values.slice(late), dependence);
}

function alwaysRises(values: readonly number[]): boolean {
  return values.every((value, i) => i === 0 || value > (values[i - 1] as number));
}

/** The readings without the first third of the window. */
export function afterFirstThird({ times, values }: Readings): Readings {
  const first = times[0] ?? 0;
  const settled = first + ((times.at(-1) ?? 0) - first) / 3;
  const from = Math.max(
    0,
    times.findIndex((time) => time >= settled),
  );
  return { times: times.slice(from), values: values.slice(from) };
}

/** Medians of groups of equal size, which removes single outliers. */
function thinned({ times, values }: Readings): Readings {
  const size = Math.ceil(times.length / MOST_READINGS);
  if (size <= 1) {
    return { times, values };
  }
  const groups = Array.from({ length: Math.ceil(times.length / size) }, (_, i) => i * size);
  return {
    times: groups.map((at) => median(times.slice(at, at + size))),
    values: groups.map((at) => median(values.slice(at, at + size))),
  };
}

/** Readings at evenly spaced times, which Mann-Kendall's correction by lag needs. */
function evenly(times: readonly number[], values: readonly number[]): number[] {
  const first = times[0] as number;
  const width = ((times.at(-1) as number) - first) / (times.length - 1);
  const even: number[] = [];
  for (let i = 0, at = 0; i < times.length; i++) {
    while (at + 1 < times.length && (times[at + 1] as number) <= first + i * width) {
      at++;
    }
    even.push(values[at] as number);
  }
  return even;
}

/** Minima of the slices rise, and the last ones are above the first. */
function minimaRise(times: readonly number[], values: readonly number[]): boolean {
  const minima = slices(times, values, SLICES).map((slice) => Math.min(...slice));
  let rising = 0;
  for (let i = 1; i < minima.length; i++) {
    rising += (minima[i] as number) > (minima[i - 1] as number) ? 1 : 0;
  }
  return (
    rising >= RISING_SHARE * (minima.length - 1) &&
    Math.min(...minima.slice(-2)) > Math.min(...minima.slice(0, 2))
  );
}

/** Two jumps between neighbouring slices make up most of the rise, and no third one is similar. */
function isStepped(levels: readonly number[]): boolean {
  const jumps = levels.slice(1).map((level, i) => Math.max(0, level - (levels[i] as number)));
  const total = jumps.reduce((sum, jump) => sum + jump, 0);
  const [highest = 0, second = 0, third = 0] = [...jumps].sort((a, b) => b - a);
  return (
    jumps.length >= 8 &&
    total > 0 &&
    highest + second >= MOST_OF_TWO_STEPS * total &&
    (second < LEAST_STEP * total || third < LEAST_THIRD_STEP * second)
  );
}

/**
 * A staircase: at least four steps of similar size at similar distances, little decrease, and the time since
 * the last step not longer than between any two. A heap that grows with the largest request so far also rises
 * in steps, but more and more rarely.
 */
function climbsInSteps(levels: readonly number[]): boolean {
  const changes = levels.slice(1).map((level, i) => level - (levels[i] as number));
  const rise = (levels.at(-1) ?? 0) - (levels[0] ?? 0);
  const fallen = changes.reduce((sum, change) => sum - Math.min(0, change), 0);
  const steps = changes.flatMap((size, at) => (size >= LEAST_STEP * rise ? [{ size, at }] : []));
  const sizes = steps.map(({ size }) => size);
  const ends = [...steps.map(({ at }) => at), changes.length];
  const distances = ends.slice(1).map((at, i) => at - (ends[i] as number));
  return (
    changes.length >= 8 &&
    rise > 0 &&
    fallen <= MOST_GIVEN_BACK * rise &&
    steps.length >= FEWEST_STEPS &&
    Math.max(...sizes) <= SIMILAR * median(sizes) &&
    Math.max(...distances) <= SIMILAR * median(distances)
  );
}

/** Values by equal slices of time; slices without readings are left out. */
function slices(times: readonly number[], values: readonly number[], count: number): number[][] {
  const first = times[0] as number;
  const span = (times.at(-1) as number) - first || 1;
  const cut = Array.from({ length: count }, () => [] as number[]);
  values.forEach((value, i) => {
    const slice = Math.min(count - 1, Math.floor((((times[i] as number) - first) / span) * count));
    cut[slice]?.push(value);
  });
  return cut.filter((slice) => slice.length > 0);
}
