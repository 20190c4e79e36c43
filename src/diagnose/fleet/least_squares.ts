/** Linear least squares with a few unknowns. */

export interface Fit {
  readonly factors: readonly number[];
  /** Standard errors of the factors for residuals of variance 1. */
  readonly errors: readonly number[];
  /** Sum of the weighted squares of the residuals. */
  readonly squares: number;
  readonly residuals: readonly number[];
}

/** `rows`: the value of each column. By the normal equations; null if the columns depend on each other. */
export function leastSquares(
  rows: readonly (readonly number[])[],
  values: readonly number[],
  weights?: readonly number[],
): Fit | null {
  const size = rows[0]?.length ?? 0;
  const matrix = Array.from({ length: size }, () => new Array<number>(2 * size + 1).fill(0));
  rows.forEach((row, at) => {
    const weight = weights?.[at] ?? 1;
    for (let i = 0; i < size; i++) {
      const line = matrix[i] as number[];
      for (let j = 0; j < size; j++) {
        line[j] = (line[j] as number) + weight * (row[i] as number) * (row[j] as number);
      }
      line[2 * size] =
        (line[2 * size] as number) + weight * (row[i] as number) * (values[at] as number);
    }
  });
  for (let i = 0; i < size; i++) {
    (matrix[i] as number[])[size + i] = 1;
  }
  if (!solve(matrix, size)) {
    return null;
  }
  const factors = matrix.map((line) => line[2 * size] as number);
  const residuals = rows.map(
    (row, at) =>
      (values[at] as number) - row.reduce((sum, x, i) => sum + x * (factors[i] as number), 0),
  );
  return {
    factors,
    errors: matrix.map((line, i) => Math.sqrt(Math.max(0, line[size + i] as number))),
    squares: residuals.reduce((sum, each, at) => sum + (weights?.[at] ?? 1) * each * each, 0),
    residuals,
  };
}

/** Gauss-Jordan with pivots. */
function solve(matrix: number[][], size: number): boolean {
  for (let i = 0; i < size; i++) {
    let pivot = i;
    for (let k = i + 1; k < size; k++) {
      if (Math.abs(matrix[k]?.[i] as number) > Math.abs(matrix[pivot]?.[i] as number)) {
        pivot = k;
      }
    }
    const line = matrix[pivot] as number[];
    const scale = Math.abs(line[i] as number);
    if (!(scale > 1e-12)) {
      return false;
    }
    [matrix[i], matrix[pivot]] = [line, matrix[i] as number[]];
    const by = line[i] as number;
    for (let j = 0; j < line.length; j++) {
      line[j] = (line[j] as number) / by;
    }
    matrix.forEach((other, k) => {
      const factor = other[i] as number;
      if (k !== i && factor !== 0) {
        for (let j = 0; j < line.length; j++) {
          other[j] = (other[j] as number) - factor * (line[j] as number);
        }
      }
    });
  }
  return true;
}
