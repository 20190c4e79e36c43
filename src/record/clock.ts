import type { Millis, TimeMs } from "../model/units.js";

/** CLOCK_MONOTONIC in ms, whole: the clock of segments and leases. */
export function monotonicMs(): Millis {
  return Number(process.hrtime.bigint() / 1_000_000n);
}

const anchor: TimeMs = Date.now() - monotonicMs();

/** Ms since 1970 that never go back, and that a clock set anew during the run does not bend. */
export function nowMs(): TimeMs {
  return anchor + monotonicMs();
}
