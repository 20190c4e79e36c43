/** Linear least squares with a few unknowns. */

/** A column of the equations: a value for each reading. */
export type Values = readonly number[] | Float64Array;

export interface Fit {
  /** By column. */
  readonly factors: readonly number[];
  /** Standard errors of the factors for residuals of variance 1. */
  readonly errors: readonly number[];
  /** Sum of the weighted squares of the residuals. */
  readonly squares: number;
}

/** By the normal equations; null if the columns depend on each other. */
export function leastSquares(
  columns: readonly Values[],
  values: Values,
  weights: Values | null = null,
): Fit | null {
  const size = columns.length;
  const matrix = columns.map(() => new Array<number>(2 * size + 1).fill(0));
  matrix.forEach((line, i) => {
    const column = columns[i] as Values;
    // The matrix is symmetric.
    for (let j = i; j < size; j++) {
      line[j] = product(column, columns[j] as Values, weights);
      (matrix[j] as number[])[i] = line[j] as number;
    }
    line[size + i] = 1;
    line[2 * size] = product(column, values, weights);
  });
  if (!solve(matrix, size)) {
    return null;
  }
  const factors = matrix.map((line) => line[2 * size] as number);
  const residuals = residualsOf(columns, values, factors);
  return {
    factors,
    errors: matrix.map((line, i) => Math.sqrt(Math.max(0, line[size + i] as number))),
    squares: product(residuals, residuals, weights),
  };
}

/** What the fit does not explain. */
export function residualsOf(
  columns: readonly Values[],
  values: Values,
  factors: readonly number[],
): Float64Array {
  const residuals = new Float64Array(values);
  for (let i = 0; i < columns.length; i++) {
    const [column, factor] = [columns[i] as Values, factors[i] as number];
    for (let at = 0; at < residuals.length; at++) {
      residuals[at] = (residuals[at] as number) - factor * (column[at] as number);
    }
  }
  return residuals;
}

function product(a: Values, b: Values, weights: Values | null): number {
  let sum = 0;
  if (weights === null) {
    for (let at = 0; at < a.length; at++) {
      sum += (a[at] as number) * (b[at] as number);
    }
  } else {
    for (let at = 0; at < a.length; at++) {
      sum += (a[at] as number) * (b[at] as number) * (weights[at] as number);
    }
  }
  return sum;
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
