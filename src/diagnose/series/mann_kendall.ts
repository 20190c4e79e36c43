/** Whether a series rises: Mann-Kendall, corrected for readings that depend on the ones before. */
import { theilSen } from "./trend.js";

export interface MannKendall {
  /** Rising pairs less falling pairs. */
  readonly s: number;
  /** S / pairs: 1 where every later reading is higher, -1 where every one is lower. */
  readonly tau: number;
  /** S in standard deviations; 0 for fewer than four points. */
  readonly z: number;
  /** By how much the dependence of the readings on the ones before multiplies the variance; 1 or more. */
  readonly dependence: number;
}

/** Beyond it an autocorrelation counts: 5 %, both sides (Hamed and Rao's choice). */
const Z_95 = 1.959964;

/**
 * The test of Mann (1945) and Kendall (1975) with the variance of Hamed and Rao (1998), "A modified
 * Mann-Kendall trend test for autocorrelated data", J. Hydrology 204: the ranks of the detrended series
 * tell by their autocorrelation how many of the points are worth one. Readings of memory depend on the
 * ones before them, and without the correction nearly every series would count as a trend.
 * `y` is evenly spaced; O(n²), meant for some hundred points.
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

/** Of S under "no trend", each group of equal readings taken off. */
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

/** n/n*: how many times the variance grows by the dependence of the readings. At least as much as for
 * independent ones: a negative dependence must not make noise look significant. */
function correction(y: readonly number[]): number {
  const n = y.length;
  const x = y.map((_, i) => i);
  const { slope } = theilSen(x, y);
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
