/** A straight line through points that hold outliers. */
export interface Trend {
  /** Change of y by one of x. */
  readonly slope: number;
  /** The line's y at the first x. */
  readonly start: number;
}

/** More points than this are thinned evenly: the pairs grow with their square. */
const MOST_POINTS = 400;

/**
 * Theil-Sen estimator: the median of the slopes of all pairs of points, and the median of what each
 * point then says of the start. Up to 29 % of the points may be anything without moving it (Sen 1968,
 * "Estimates of the regression coefficient based on Kendall's tau").
 * Slope 0 through the median where there are fewer than three points or no width.
 */
export function theilSen(x: readonly number[], y: readonly number[]): Trend {
  const step = Math.max(1, x.length / MOST_POINTS);
  const rows = Array.from({ length: Math.ceil(x.length / step) }, (_, i) => Math.floor(i * step));
  const slopes: number[] = [];
  if (rows.length >= 3) {
    for (let i = 0; i < rows.length; i++) {
      for (let j = i + 1; j < rows.length; j++) {
        const [a, b] = [rows[i] as number, rows[j] as number];
        const width = (x[b] as number) - (x[a] as number);
        if (width > 0) {
          slopes.push(((y[b] as number) - (y[a] as number)) / width);
        }
      }
    }
  }
  const slope = slopes.length > 0 ? median(slopes) : 0;
  const first = x[0] ?? 0;
  return {
    slope,
    start: median(rows.map((row) => (y[row] as number) - slope * ((x[row] as number) - first))),
  };
}

/** 0 for no values. */
export function median(values: readonly number[]): number {
  const sorted = Float64Array.from(values).sort();
  const middle = sorted.length >> 1;
  if (sorted.length === 0) {
    return 0;
  }
  return sorted.length % 2 === 1
    ? (sorted[middle] as number)
    : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2;
}
