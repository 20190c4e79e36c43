import { medianOf, reorderedMedian } from "./medians.js";

/** Straight lines through points with outliers. */
interface Trend {
  /** Change of y per unit of x. */
  readonly slope: number;
  /** The line's y at the first x. */
  readonly start: number;
  /** The 95 % interval of the slope; both are `slope` for fewer than three points. */
  readonly low: number;
  readonly high: number;
}

const Z_95 = 1.959964;
/** More points than this are thinned evenly, because the number of pairs is quadratic. */
const MOST_POINTS = 400;

/**
 * Theil-Sen estimator: the median of the slopes of all pairs of points, and the median of the resulting
 * intercepts. Up to 29 % of the points may be outliers (Sen 1968,
 * "Estimates of the regression coefficient based on Kendall's tau").
 * Slope 0 through the median if there are fewer than three points or no width.
 * `dependence`: factor by which the variance is larger than for independent points
 * ({@link MannKendall.dependence}); it widens the interval.
 */
export function theilSen(x: readonly number[], y: readonly number[], dependence = 1): Trend {
  const { rows, slopes } = slopesOf(x, y);
  const sorted = slopes.sort();
  const slope = middleOf(sorted);
  const first = x[0] ?? 0;
  return {
    slope,
    start: median(rows.map((row) => (y[row] as number) - slope * ((x[row] as number) - first))),
    ...interval(sorted, rows.length, slope, dependence),
  };
}

/** The slope alone, which needs no sorting. */
export function theilSenSlope(x: readonly number[], y: readonly number[]): number {
  const { slopes } = slopesOf(x, y);
  return slopes.length === 0 ? 0 : reorderedMedian(slopes, 0, slopes.length);
}

/** Of all pairs, and the indices of the points. */
function slopesOf(x: readonly number[], y: readonly number[]) {
  const step = Math.max(1, x.length / MOST_POINTS);
  const rows = Array.from({ length: Math.ceil(x.length / step) }, (_, i) => Math.floor(i * step));
  const slopes = new Float64Array((rows.length * (rows.length - 1)) / 2);
  let pairs = 0;
  if (rows.length >= 3) {
    for (let i = 0; i < rows.length; i++) {
      const a = rows[i] as number;
      const [startX, startY] = [x[a] as number, y[a] as number];
      for (let j = i + 1; j < rows.length; j++) {
        const b = rows[j] as number;
        const width = (x[b] as number) - startX;
        if (width > 0) {
          slopes[pairs++] = ((y[b] as number) - startY) / width;
        }
      }
    }
  }
  return { rows, slopes: slopes.subarray(0, pairs) };
}

/** Ranks of the slopes that bound the median's 95 % interval (Gilbert 1987, "Statistical Methods for
 * Environmental Pollution Monitoring", 16.4.2), for series without ties. */
function interval(
  sorted: Float64Array,
  points: number,
  slope: number,
  dependence: number,
): { readonly low: number; readonly high: number } {
  const spread = Z_95 * Math.sqrt((dependence * points * (points - 1) * (2 * points + 5)) / 18);
  const low = Math.max(0, Math.round((sorted.length - spread) / 2) - 1);
  const high = Math.min(sorted.length - 1, Math.round((sorted.length + spread) / 2));
  return { low: sorted[low] ?? slope, high: sorted[high] ?? slope };
}

/** 0 for no values. */
export function median(values: ArrayLike<number>): number {
  return values.length === 0 ? 0 : medianOf(values, 0, values.length);
}

function middleOf(sorted: Float64Array): number {
  const middle = sorted.length >> 1;
  if (sorted.length === 0) {
    return 0;
  }
  return sorted.length % 2 === 1
    ? (sorted[middle] as number)
    : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2;
}
