/**
 * Whether a curve keeps growing or approaches a level. Both are fitted, the level by many durations of filling T:
 *
 *   curve = start + rate x age + fill x (1 - exp(-age / T))          rate and fill are not negative
 *
 *   leak     ▁▂▃▄▅▆▇█   rate above 0 for every T that explains the curve as well as the best one
 *   cache    ▁▄▆▇▇███   some T explains it with a rate of 0
 *   undecided: a curve that is still nearly straight fits both; only a longer window decides
 *
 * Noise of neighbouring readings is dependent, which the interval allows for (AR(1): n (1 - r) / (1 + r) independent ones).
 */
import type { Millis } from "../../model/base/units.js";
import { median } from "../series/trend.js";
import type { AgeCurve } from "./age_curve.js";
import { type Fit, leastSquares } from "./least_squares.js";

/** Bytes per ms, with the union of the intervals of all fits that are nearly as good as the best one. */
export interface LastingGrowth {
  readonly rate: number;
  readonly low: number;
  readonly high: number;
  /** What the filling part adds over the curve, and its duration, in the best fit. */
  readonly fillBytes: number;
  readonly fillMs: Millis;
  /** Standard deviation of the curve's noise. */
  readonly noise: number;
}

/** Durations of filling, as shares of the curve's length. A cache that needs longer looks like a line. */
const DURATIONS = [0.015, 0.03, 0.06, 0.1, 0.16, 0.25, 0.4, 0.6, 0.9, 1.3, 2];
const FEWEST_POINTS = 8;
const MOST_DEPENDENCE = 0.95;

/** `z`: half the width of the interval in standard errors. null: too few points. */
export function lastingGrowth(curve: AgeCurve, z: number): LastingGrowth | null {
  const { times, values, weights } = curve;
  const first = times[0] ?? 0;
  const lengthMs = (times.at(-1) ?? 0) - first;
  if (times.length < FEWEST_POINTS || lengthMs <= 0) {
    return null;
  }
  const ages = times.map((time) => (time - first) / lengthMs);
  const straight = leastSquares(
    ages.map((age) => [1, age]),
    values,
    weights,
  );
  const fits: { fit: Fit; share: number; rate: number; error: number }[] = [];
  const add = (fit: Fit | null, share: number, rate: number, error: number) => {
    if (fit !== null) {
      fits.push({ fit, share, rate, error });
    }
  };
  add(straight, 0, straight?.factors[1] ?? 0, straight?.errors[1] ?? 0);
  for (const share of DURATIONS) {
    const filled = ages.map((age) => 1 - Math.exp(-age / share));
    const both = leastSquares(
      ages.map((age, at) => [1, age, filled[at] as number]),
      values,
      weights,
    );
    if (both !== null && (both.factors[2] as number) > 0) {
      if ((both.factors[1] as number) >= 0) {
        add(both, share, both.factors[1] as number, both.errors[1] as number);
      } else {
        const fill = leastSquares(
          filled.map((each) => [1, each]),
          values,
          weights,
        );
        add(fill, share, 0, both.errors[1] as number);
      }
    }
  }
  const best = fits.reduce((a, b) => (b.fit.squares < a.fit.squares ? b : a), fits[0] as (typeof fits)[0]);
  if (best === undefined) {
    return null;
  }
  const { residuals } = best.fit;
  const independent = effective(residuals);
  const dependence = residuals.length / independent;
  const variance = best.fit.squares / Math.max(1, residuals.length - 3);
  // As good as the best one: within z² times the variance, for that many independent readings.
  const good = fits.filter(({ fit }) => fit.squares <= best.fit.squares + z * z * variance * dependence);
  const width = (error: number) => z * error * Math.sqrt(variance * dependence);
  return {
    rate: best.rate / lengthMs,
    low: Math.min(...good.map(({ rate, error }) => rate - width(error))) / lengthMs,
    high: Math.max(...good.map(({ rate, error }) => rate + width(error))) / lengthMs,
    fillBytes: best.share === 0 ? 0 : (best.fit.factors.at(-1) as number) * (1 - Math.exp(-1 / best.share)),
    fillMs: best.share * lengthMs,
    noise: 1.4826 * median(residuals.map(Math.abs)),
  };
}

/** The number of independent readings, by the correlation of neighbours. */
function effective(residuals: readonly number[]): number {
  let [products, squares] = [0, 0];
  residuals.forEach((value, at) => {
    squares += value * value;
    products += at === 0 ? 0 : value * (residuals[at - 1] as number);
  });
  const correlation = squares > 0 ? Math.min(MOST_DEPENDENCE, Math.max(0, products / squares)) : 0;
  return Math.max(2, (residuals.length * (1 - correlation)) / (1 + correlation));
}
