/** A value that is known to be there: without it, the program is wrong and throws. */
export function present<Value>(value: Value | null | undefined): Value {
  if (value === undefined || value === null) {
    throw new TypeError(`${value} where a value was expected`);
  }
  return value;
}
