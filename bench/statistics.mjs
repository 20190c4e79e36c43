/** Ratios of interleaved pairs, with intervals. All computations use logarithms, so that ratios of 1/2
 * and 2 cancel out. */

/** Two-sided 95 % quantiles of Student's t for 1, 2, ... degrees of freedom (NIST/SEMATECH e-Handbook, 1.3.6.7.2). */
const studentT = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145,
  2.131, 2.12, 2.11, 2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048,
  2.045, 2.042,
];

/** @param {number[]} values */
export function mean(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** @param {number[]} values */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** @param {number[]} values @param {number} q in [0, 1] */
export function quantile(values, q) {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (sorted.length - 1) * q;
  const low = Math.floor(at);
  const high = Math.ceil(at);
  return sorted[low] + (sorted[high] - sorted[low]) * (at - low);
}

/**
 * Geometric mean of paired ratios with its 95 % interval (Student's t on the logarithms).
 * @param {number[]} ratios one per pair
 * @returns {{ratio: number, low: number, high: number, pairs: number, logVariance: number}}
 *   logVariance: of the mean of the logarithms
 */
export function ratioWithInterval(ratios) {
  const logs = ratios.map(Math.log);
  const centre = mean(logs);
  const pairs = logs.length;
  if (pairs < 2) {
    return {
      ratio: Math.exp(centre),
      low: Number.NaN,
      high: Number.NaN,
      pairs,
      logVariance: Number.NaN,
    };
  }
  const logVariance = logs.reduce((sum, x) => sum + (x - centre) ** 2, 0) / (pairs - 1) / pairs;
  const half = (studentT[pairs - 2] ?? 1.96) * Math.sqrt(logVariance);
  return {
    ratio: Math.exp(centre),
    low: Math.exp(centre - half),
    high: Math.exp(centre + half),
    pairs,
    logVariance,
  };
}

/**
 * Mean of paired differences with its 95 % interval (Student's t).
 * @param {number[]} differences one per pair
 */
export function differenceWithInterval(differences) {
  const centre = mean(differences);
  const pairs = differences.length;
  const variance = differences.reduce((sum, x) => sum + (x - centre) ** 2, 0) / (pairs - 1) / pairs;
  const half = (studentT[pairs - 2] ?? 1.96) * Math.sqrt(variance);
  return { mean: centre, low: centre - half, high: centre + half };
}

/**
 * Geometric mean over workloads, each with its own paired ratios.
 * @param {ReturnType<typeof ratioWithInterval>[]} workloads
 */
export function overall(workloads) {
  const centre = mean(workloads.map((w) => Math.log(w.ratio)));
  const variance = workloads.reduce((sum, w) => sum + w.logVariance, 0) / workloads.length ** 2;
  const half = 1.96 * Math.sqrt(variance);
  return { ratio: Math.exp(centre), low: Math.exp(centre - half), high: Math.exp(centre + half) };
}

/** @param {{ratio: number, low: number, high: number}} r */
export function formatRatio({ ratio, low, high }) {
  if (!Number.isFinite(low)) {
    return ratio.toFixed(3);
  }
  return `${ratio.toFixed(3)} (${low.toFixed(3)}-${high.toFixed(3)})`;
}
