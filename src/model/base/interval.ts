/**
 * The 95 % interval of an estimate from samples. An estimate from few samples is not normally distributed: it
 * is a weighted sum of Poisson counts, skewed to the right, and its stated error is estimated from the same few
 * samples, so it is too small exactly when the estimate is too small. "1.96 standard errors" therefore contains
 * the true value for only 85 to 92 % of sites with ten samples instead of 95 %.
 *
 * The interval here is that of a weighted sum y of Poisson counts with estimated variance v, by the gamma
 * distribution of the same two moments: Fay and Feuer, "Confidence intervals for directly standardized
 * rates", Statistics in Medicine 16 (1997) 791-801, with the mean weight w = v / y in place of the largest
 * as Tiwari, Clegg and Zou, Statistical Methods in Medical Research 15 (2006) 547-569, have it. With n = y^2 / v, the
 * number of equal samples that would have such a standard error, the bounds are
 *
 *     low  = w * chi2(0.025, 2 n) / 2        high = w * chi2(0.975, 2 (n + 1)) / 2
 *
 * which for equal weights is Garwood's exact interval of a Poisson count. The quantiles of chi-square are
 * Wilson and Hilferty's, "The distribution of chi-square", PNAS 17 (1931) 684-688 (for Poisson counts known
 * as Byar's approximation, within 1 % from one sample on).
 */
import type { Bytes } from "./units.js";

export interface Interval {
  readonly low: Bytes;
  readonly high: Bytes;
}

/** Quantile of the standard normal at 0.975. */
const Z = 1.959963984540054;

/**
 * @param bytes the estimate; 0: see {@link unseenUpToBytes}
 * @param standardErrorBytes as stated with the estimate; for a sum: the root of the summed squares
 */
export function interval95(bytes: Bytes, standardErrorBytes: Bytes): Interval {
  if (!(bytes > 0 && standardErrorBytes > 0)) {
    return { low: bytes, high: bytes };
  }
  const samples = (bytes / standardErrorBytes) ** 2;
  const weight = bytes / samples;
  return {
    low: weight * halfChiSquare(samples, -Z),
    high: weight * halfChiSquare(samples + 1, Z),
  };
}

/** Half the quantile at `z` normal deviates of a chi-square of `2 halfFreedom` degrees. */
function halfChiSquare(halfFreedom: number, z: number): number {
  const root = 1 - 1 / (9 * halfFreedom) + z / (3 * Math.sqrt(halfFreedom));
  return halfFreedom * Math.max(root, 0) ** 3;
}

/**
 * Upper bound for a site without a live sample: with more bytes than this, fewer than one in forty sites remain
 * unseen. (Poisson: exp(-bytes / period) = 0.025.)
 * @param periodBytes the coarsest period in force
 */
export function unseenUpToBytes(periodBytes: Bytes): Bytes {
  return periodBytes * -Math.log(0.025);
}
