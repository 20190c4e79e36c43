/**
 * Whether a curve keeps growing or approaches a level. Both are fitted, the level by many durations of filling T:
 *
 *   curve = start + rate x age + fill x (1 - exp(-age / T))          rate and fill are not negative
 *   curve = start + rate x age + fill x log(1 + age / T)             keys that become rarer
 *
 *   leak     ▁▂▃▄▅▆▇█   rate above 0 for every T that explains the curve as well as the best one
 *   cache    ▁▄▆▇▇███   some T explains it with a rate of 0
 *   undecided: a curve that is still nearly straight fits both; only a longer window decides
 *
 * Noise of neighbouring readings is dependent, which the interval allows for (AR(1): n (1 - r) / (1 + r) independent ones).
 */
import type { Millis } from "../../../model/base/units.js";
import type { AgeCurve } from "./age_curve.js";
import {
  equationsOf,
  type Fit,
  fitOf,
  residualsOf,
  type Values,
  withColumn,
  withoutColumn,
} from "./least_squares.js";

/** Bytes per ms, with the union of the intervals of all fits that are nearly as good as the best one. */
export interface LastingGrowth {
  readonly rate: number;
  readonly low: number;
  readonly high: number;
  /** What the filling part adds over the curve, and its duration, in the best fit. */
  readonly fillBytes: number;
  readonly fillMs: Millis;
  /** The least that the fits which are nearly as good as the best one add within a week. */
  readonly toCome: number;
  /** The interval of a straight line through the curve, which assumes that nothing fills. */
  readonly straight: { readonly rate: number; readonly low: number; readonly high: number };
  /** Sum of the squares of the best fit's residuals, which compares axes. */
  readonly squares: number;
}

/** Durations of filling, as shares of the curve's length, and the longest one that is always considered. A cache that needs
 * longer looks like a line. */
const DURATIONS = [
  0.015, 0.02, 0.03, 0.04, 0.055, 0.075, 0.1, 0.125, 0.16, 0.2, 0.25, 0.33, 0.45, 0.6, 0.85, 1.2,
];
/** Keys that become rarer fill a cache by the logarithm of age over these shares of the curve's length. */
const SLOWING = [0.03, 0.1, 0.3, 1];
/** For lines, which have so little noise that only a nearly exact course explains them. */
export const SLOWING_FINE: readonly number[] = [0.03, 0.055, 0.1, 0.17, 0.3, 0.55, 1];
const DAY_MS: Millis = 24 * 3_600_000;
const LONGEST_MS = DAY_MS;
/** A shorter curve does not show the wave of a day. */
const LEAST_OF_DAY = 1.5;
const FEWEST_POINTS = 8;
/** Fewer independent readings determine no interval. */
const FEWEST_INDEPENDENT = 5;
const MOST_DEPENDENCE = 0.95;

interface Candidate {
  readonly fit: Fit;
  readonly columns: readonly Values[];
  /** Of T. */
  readonly share: number;
  readonly rate: number;
  readonly error: number;
  readonly fillBytes: number;
  readonly toCome: number;
}

/** `z`: half the width of the interval in standard errors. `followsDays`: whether what is left may follow the days. null: too
 * few points. */
export function lastingGrowth(
  curve: Pick<AgeCurve, "times" | "values" | "weights">,
  z: number,
  followsDays = true,
  slowing: readonly number[] = SLOWING,
): LastingGrowth | null {
  const { times } = curve;
  const [values, weights] = [new Float64Array(curve.values), new Float64Array(curve.weights)];
  const first = times[0] ?? 0;
  const lengthMs = (times.at(-1) ?? 0) - first;
  if (times.length < FEWEST_POINTS || lengthMs <= 0) {
    return null;
  }
  const ages = Float64Array.from(times, (time) => (time - first) / lengthMs);
  const ones = new Float64Array(ages.length).fill(1);
  const line = [ones, ages, ...(followsDays ? waves(times, lengthMs) : [])];
  const ofLine = equationsOf(line, values, weights);
  const straight = fitOf(ofLine);
  const fits: Candidate[] = [];
  const week = 1 + (7 * DAY_MS) / lengthMs;
  const add = (
    fit: Fit | null,
    filledAt: (age: number) => number,
    about: Omit<Candidate, "fit" | "fillBytes" | "toCome">,
  ) => {
    if (fit !== null) {
      const fill = fit.factors.at(-1) as number;
      const toCome = fill * (filledAt(week) - filledAt(1)) + about.rate * (week - 1);
      fits.push({ fit, ...about, fillBytes: fill * filledAt(1), toCome });
    }
  };
  add(straight, () => 0, {
    ...{ share: 0, columns: line },
    ...{ rate: straight?.factors[1] ?? 0, error: straight?.errors[1] ?? 0 },
  });
  const shares = [...DURATIONS, 2, LONGEST_MS / lengthMs].filter(
    (each) => each <= Math.max(1.3, LONGEST_MS / lengthMs),
  );
  const shapes = [
    ...shares.map((share) => ({ share, at: (age: number) => 1 - Math.exp(-age / share) })),
    ...slowing.map((share) => ({ share, at: (age: number) => Math.log(1 + age / share) })),
  ];
  for (const { share, at: filledAt } of shapes) {
    const filled = ages.map((age) => filledAt(age));
    const ofBoth = withColumn(ofLine, filled);
    const both = fitOf(ofBoth);
    if (both !== null && (both.factors.at(-1) as number) > 0) {
      const error = both.errors[1] as number;
      if ((both.factors[1] as number) >= 0) {
        const rate = both.factors[1] as number;
        add(both, filledAt, { share, columns: ofBoth.columns, rate, error });
      } else {
        const ofFill = withoutColumn(ofBoth, line.indexOf(ages));
        add(fitOf(ofFill), filledAt, { share, columns: ofFill.columns, rate: 0, error });
      }
    }
  }
  const [best] = fits.slice().sort((a, b) => a.fit.squares - b.fit.squares);
  if (best === undefined) {
    return null;
  }
  const residuals = residualsOf(best.columns, values, best.fit.factors);
  const independent = effective(residuals);
  const dependence = residuals.length / independent;
  const variance = best.fit.squares / Math.max(1, residuals.length - best.columns.length);
  // As good as the best one: within z² times the variance, for that many independent readings.
  const good = fits.filter(
    ({ fit }) => fit.squares <= best.fit.squares + z * z * variance * dependence,
  );
  const few = independent < FEWEST_INDEPENDENT ? FEWEST_INDEPENDENT : 1;
  const width = (error: number) => few * z * error * Math.sqrt(variance * dependence);
  return {
    rate: best.rate / lengthMs,
    low: Math.min(...good.map(({ rate, error }) => rate - width(error))) / lengthMs,
    high: Math.max(...good.map(({ rate, error }) => rate + width(error))) / lengthMs,
    fillBytes: best.fillBytes,
    fillMs: best.share * lengthMs,
    straight: {
      rate: (straight?.factors[1] ?? 0) / lengthMs,
      low: ((straight?.factors[1] ?? 0) - width(straight?.errors[1] ?? 0)) / lengthMs,
      high: ((straight?.factors[1] ?? 0) + width(straight?.errors[1] ?? 0)) / lengthMs,
    },
    squares: best.fit.squares,
    toCome: Math.min(...good.map(({ toCome }) => toCome)),
  };
}

/** The wave of a day, for what is left of the daily load and for growth that follows it. */
function waves(times: readonly number[], lengthMs: Millis): Float64Array[] {
  const at = (wave: (angle: number) => number) =>
    Float64Array.from(times, (time) => wave((2 * Math.PI * time) / DAY_MS));
  return lengthMs < LEAST_OF_DAY * DAY_MS ? [] : [at(Math.sin), at(Math.cos)];
}

/** The number of independent readings, by the correlation of neighbours. */
function effective(residuals: Float64Array): number {
  let [products, squares] = [0, 0];
  residuals.forEach((value, at) => {
    squares += value * value;
    products += at === 0 ? 0 : value * (residuals[at - 1] as number);
  });
  const correlation = squares > 0 ? Math.min(MOST_DEPENDENCE, Math.max(0, products / squares)) : 0;
  return Math.max(2, (residuals.length * (1 - correlation)) / (1 + correlation));
}
