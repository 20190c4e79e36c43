/** Returns a value that must exist; throws if it does not, because that is a bug. */
export function present<Value>(value: Value | null | undefined): Value {
  if (value === undefined || value === null) {
    throw new TypeError(`${value} where a value was expected`);
  }
  return value;
}
