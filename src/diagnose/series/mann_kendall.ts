/** Whether a series rises: Mann-Kendall, corrected for autocorrelated readings. */
import { theilSenSlope } from "./trend.js";

export interface MannKendall {
  /** Rising pairs minus falling pairs. */
  readonly s: number;
  /** S / pairs: 1 if every later reading is higher, -1 if every one is lower. */
  readonly tau: number;
  /** S in standard deviations; 0 for fewer than four points. */
  readonly z: number;
  /** Factor by which autocorrelation multiplies the variance; at least 1. */
  readonly dependence: number;
}

/** Autocorrelations beyond this count: 5 %, two-sided (Hamed and Rao's choice). */
const Z_95 = 1.959964;

/**
 * The test of Mann (1945) and Kendall (1975) with the variance of Hamed and Rao (1998), "A modified
 * Mann-Kendall trend test for autocorrelated data", J. Hydrology 204: the autocorrelation of the detrended
 * ranks gives the effective number of independent points. Memory readings are autocorrelated, and without the
 * correction nearly every series would count as a trend.
 * `y` is evenly spaced; O(n²), meant for a few hundred points.
 */
export function mannKendall(y: readonly number[]): MannKendall {
  const n = y.length;
  if (n < 4) {
    return { s: 0, tau: 0, z: 0, dependence: 1 };
  }
  let s = 0;
  for (let i = 0; i < n; i++) {
    for (let j = i + 1; j < n; j++) {
      s += Math.sign((y[j] as number) - (y[i] as number));
    }
  }
  const tau = s / ((n * (n - 1)) / 2);
  const dependence = correction(y);
  const variance = tiedVariance(y) * dependence;
  const z = variance > 0 && s !== 0 ? (s - Math.sign(s)) / Math.sqrt(variance) : 0;
  return { s, tau, z, dependence };
}

/** Variance of S under "no trend", corrected for groups of equal readings. */
function tiedVariance(y: readonly number[]): number {
  const counts = new Map<number, number>();
  for (const value of y) {
    counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  const term = (count: number) => count * (count - 1) * (2 * count + 5);
  let sum = term(y.length);
  for (const count of counts.values()) {
    sum -= term(count);
  }
  return sum / 18;
}

/**
 * n/n*: factor by which autocorrelation increases the variance. At least 1, because negative autocorrelation
 * must not make noise look significant.
 */
function correction(y: readonly number[]): number {
  const n = y.length;
  const x = y.map((_, i) => i);
  const slope = theilSenSlope(x, y);
  const ranked = ranks(y.map((value, i) => value - slope * i));
  const mean = (n + 1) / 2;
  const deviations = ranked.map((rank) => rank - mean);
  const power = deviations.reduce((sum, value) => sum + value * value, 0);
  if (power === 0) {
    return 1;
  }
  const bound = Z_95 / Math.sqrt(n);
  let sum = 0;
  for (let lag = 1; lag < n - 2; lag++) {
    let product = 0;
    for (let i = 0; i + lag < n; i++) {
      product += (deviations[i] as number) * (deviations[i + lag] as number);
    }
    const correlation = product / power;
    if (Math.abs(correlation) >= bound) {
      sum += (n - lag) * (n - lag - 1) * (n - lag - 2) * correlation;
    }
  }
  return Math.max(1, 1 + (2 / (n * (n - 1) * (n - 2))) * sum);
}

/** 1-based; equal values share the mean of their ranks. */
function ranks(values: readonly number[]): number[] {
  const order = values
    .map((_, i) => i)
    .sort((a, b) => (values[a] as number) - (values[b] as number));
  const ranked = new Array<number>(values.length);
  for (let from = 0; from < order.length; ) {
    let to = from;
    while (to < order.length && values[order[to] as number] === values[order[from] as number]) {
      to++;
    }
    for (let i = from; i < to; i++) {
      ranked[order[i] as number] = (from + 1 + to) / 2;
    }
    from = to;
  }
  return ranked;
}
