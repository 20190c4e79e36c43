/**
 * Whether a figure grows, from its readings alone. The first third is start-up and left out; of the rest,
 * growth is what passes every gate: Hamed-Rao Mann-Kendall, rising minima of its slices (what is freed
 * again does not count), a Theil-Sen interval above zero, a last third that still rises, and a rise that
 * is not the work of one or two steps. Any gate alone lets much through that is no growth: Mann-Kendall
 * flags every warm-up and every single step.
 */
import { withoutDailyCycle } from "./daily_cycle.js";
import { mannKendall } from "./mann_kendall.js";
import type { Readings } from "./readings.js";
import { median, theilSen } from "./trend.js";

/** `growing`: all along. `flattened`: rose, and rises no more. `stepped`: rose in one or two steps.
 * `flat`: does not rise. `short`: too few readings to say. */
type GrowthShape = "growing" | "flattened" | "stepped" | "flat" | "short";

export interface Growth {
  readonly shape: GrowthShape;
  /** By ms, after the first third: Theil-Sen with its 95 % interval. */
  readonly slope: number;
  readonly low: number;
  readonly high: number;
  /** What the slope comes to over the part that counts. */
  readonly rise: number;
  /** Last level less first level of the whole window, start-up included. */
  readonly wholeRise: number;
  /** Slope of the last third over that of the part that counts; 0 where that does not rise. */
  readonly lastThird: number;
  /** Mean level of the last tenth. */
  readonly level: number;
  readonly z: number;
}

const FEWEST_READINGS = 8;
/** Of a count, which has no noise, where each is above the one before. */
const FEWEST_RISING = 6;
/** For a line through the last third: a busy recorder reads at growing distances. */
const FEWEST_OF_SLOPE = 3;
/** Mann-Kendall, Theil-Sen and the slices work on this many readings at most. */
const MOST_READINGS = 240;
const SLICES = 12;
const STEP_SLICES = 24;
/** One-sided 1 %. */
const SIGNIFICANT_Z = 2.326;
const LEAST_LAST_THIRD = 0.25;
/** Share of slices whose minimum is above the one before. */
const RISING_SHARE = 0.6;
/** Share of all rising that the two highest steps may have. */
const MOST_OF_TWO_STEPS = 0.6;

/** `counts`: the figure is a number of things. */
export function assessGrowth(all: Readings, counts = false): Growth {
  const whole = withoutDailyCycle(thinned(all));
  const { times, values } = afterFirstThird(whole);
  const level = levelOf(whole.values.slice(-Math.max(1, Math.round(whole.values.length / 10))));
  const wholeRise =
    level - levelOf(whole.values.slice(0, Math.max(1, Math.round(whole.values.length / 10))));
  const enough = counts && alwaysRises(values) ? FEWEST_RISING : FEWEST_READINGS;
  if (values.length < enough) {
    return {
      shape: "short",
      slope: 0,
      low: 0,
      high: 0,
      rise: 0,
      wholeRise,
      lastThird: 0,
      level,
      z: 0,
    };
  }
  const { slope, low, high } = theilSen(times, values);
  const from = times[0] as number;
  const span = (times.at(-1) as number) - from;
  const third = times.findIndex((time) => time >= from + (span * 2) / 3);
  const late = Math.min(third, times.length - FEWEST_OF_SLOPE);
  const lastSlope = theilSen(times.slice(late), values.slice(late)).slope;
  const lastThird = slope > 0 ? lastSlope / slope : 0;
  const { z } = mannKendall(evenly(times, values));
  const rise = slope * span;
  const figures = { slope, low, high, rise, wholeRise, lastThird, level, z };
  if (isStepped(times, values)) {
    return { shape: "stepped", ...figures };
  }
  const rises = z > SIGNIFICANT_Z && low > 0 && minimaRise(times, values);
  if (rises && lastThird >= LEAST_LAST_THIRD) {
    return { shape: "growing", ...figures };
  }
  return { shape: rises || wholeRise > 2 * Math.abs(rise) ? "flattened" : "flat", ...figures };
}

function alwaysRises(values: readonly number[]): boolean {
  return values.every((value, i) => i === 0 || value > (values[i - 1] as number));
}

/** The readings of which a window's first third is left out. */
export function afterFirstThird({ times, values }: Readings): Readings {
  const first = times[0] ?? 0;
  const settled = first + ((times.at(-1) ?? 0) - first) / 3;
  const from = Math.max(
    0,
    times.findIndex((time) => time >= settled),
  );
  return { times: times.slice(from), values: values.slice(from) };
}

/** Medians of equal numbers of readings: single outliers go with it. */
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

function levelOf(values: readonly number[]): number {
  return median(values);
}

/** Readings as of evenly spaced times: what Mann-Kendall's dependence by lag means. */
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

/** Minima of the slices rise, and the last ones stand above the first. */
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

/** Two jumps between neighbouring slices carry most of what rises. */
function isStepped(times: readonly number[], values: readonly number[]): boolean {
  const levels = slices(times, values, STEP_SLICES).map(median);
  const jumps: number[] = [];
  for (let i = 1; i < levels.length; i++) {
    jumps.push(Math.max(0, (levels[i] as number) - (levels[i - 1] as number)));
  }
  const total = jumps.reduce((sum, jump) => sum + jump, 0);
  const [highest = 0, second = 0] = jumps.sort((a, b) => b - a);
  return jumps.length >= 8 && total > 0 && highest + second >= MOST_OF_TWO_STEPS * total;
}

/** Values by equal slices of time; slices without any are left out. */
function slices(times: readonly number[], values: readonly number[], count: number): number[][] {
  const first = times[0] as number;
  const span = (times.at(-1) as number) - first || 1;
  const cut = Array.from({ length: count }, () => [] as number[]);
  values.forEach((value, i) => {
    const slice = Math.min(count - 1, Math.floor((((times[i] as number) - first) / span) * count));
    (cut[slice] as number[]).push(value);
  });
  return cut.filter((slice) => slice.length > 0);
}
