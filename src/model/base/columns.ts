/**
 * Reads of columns at rows that exist. A row outside the column is a bug and throws: an `undefined`
 * would spread through sums as NaN.
 *
 * There is one function for each kind of array. V8 compiles such a small function into its caller, where the check
 * costs nothing; a function that reads several kinds of array would be slow in all its callers.
 */

export function uint32At(column: Uint32Array, row: number): number {
  return column[row] ?? outside(column, row);
}

export function int32At(column: Int32Array, row: number): number {
  return column[row] ?? outside(column, row);
}

export function uint16At(column: Uint16Array, row: number): number {
  return column[row] ?? outside(column, row);
}

export function uint8At(column: Uint8Array, row: number): number {
  return column[row] ?? outside(column, row);
}

export function float64At(column: Float64Array, row: number): number {
  return column[row] ?? outside(column, row);
}

export function float32At(column: Float32Array, row: number): number {
  return column[row] ?? outside(column, row);
}

export function addAt(column: Float64Array, row: number, amount: number): void {
  column[row] = float64At(column, row) + amount;
}

/** An item of a list whose items are never null or undefined. */
export function itemAt<Item extends NonNullable<unknown>>(
  list: readonly Item[],
  row: number,
): Item {
  return list[row] ?? outside(list, row);
}

function outside({ length }: ArrayLike<unknown>, row: number): never {
  throw new RangeError(`row ${row} is outside a column of ${length}`);
}

/** Whole numbers whose sum is the rounded sum of the column; each differs from its value by less than 1. Rounded one by one,
 * many estimates below 0.5 would vanish from their sum. */
export function wholeNumbers(column: Float64Array): Float64Array {
  let [sum, given] = [0, 0];
  return column.map((value) => {
    sum += value;
    const whole = Math.round(sum) - given;
    given += whole;
    return whole;
  });
}
