/** A figure over time. */
export interface Readings {
  /** Ascending. */
  readonly times: readonly number[];
  readonly values: readonly number[];
}
