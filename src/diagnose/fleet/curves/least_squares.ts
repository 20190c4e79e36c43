/** Linear least squares with a few unknowns. */

/** A column of the equations: a value for each reading. */
export type Values = Float64Array;

export interface Fit {
  /** By column. */
  readonly factors: readonly number[];
  /** Standard errors of the factors for residuals of variance 1. */
  readonly errors: readonly number[];
  /** Sum of the weighted squares of the residuals. */
  readonly squares: number;
}

/** Columns with the products of all pairs of them, and of each with the values. */
export interface Equations {
  readonly columns: readonly Values[];
  readonly values: Values;
  readonly weights: Values | null;
  /** By column: with itself and each later one, and last with the values. */
  readonly products: readonly (readonly number[])[];
}

/** By the normal equations; null if the columns depend on each other. */
export function leastSquares(
  columns: readonly Values[],
  values: Values,
  weights: Values | null = null,
): Fit | null {
  return fitOf(equationsOf(columns, values, weights));
}

export function equationsOf(
  columns: readonly Values[],
  values: Values,
  weights: Values | null,
): Equations {
  const products = columns.map((column, i) =>
    [...columns.slice(i), values].map((other) => product(column, other, weights)),
  );
  return { columns, values, weights, products };
}

/** With one more column; the products of the others are kept. */
export function withColumn(
  { columns, values, weights, products }: Equations,
  column: Values,
): Equations {
  const more = products.map((line, i) => [
    ...line.slice(0, -1),
    product(columns[i] as Values, column, weights),
    line.at(-1) as number,
  ]);
  const last = [product(column, column, weights), product(column, values, weights)];
  return { columns: [...columns, column], values, weights, products: [...more, last] };
}

/** Without one column. */
export function withoutColumn(
  { columns, values, weights, products }: Equations,
  without: number,
): Equations {
  const others = <T>(all: readonly T[]) => all.filter((_, at) => at !== without);
  const fewer = products.map((line, i) =>
    without < i ? line : line.filter((_, at) => at !== without - i),
  );
  return { columns: others(columns), values, weights, products: others(fewer) };
}

/** null if the columns depend on each other. */
export function fitOf({ columns, values, weights, products }: Equations): Fit | null {
  const size = columns.length;
  const matrix = columns.map(() => new Array<number>(2 * size + 1).fill(0));
  matrix.forEach((line, i) => {
    const row = products[i] as readonly number[];
    // The matrix is symmetric.
    for (let j = i; j < size; j++) {
      line[j] = row[j - i] as number;
      (matrix[j] as number[])[i] = line[j] as number;
    }
    line[size + i] = 1;
    line[2 * size] = row[size - i] as number;
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
