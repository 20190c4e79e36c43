import type { Bytes, Millis } from "../../model/base/units.js";

/** How the program ended, as the guard's wait4 told. */
export interface ExitReport {
  /** Exit code; null where a signal ended it. */
  readonly exitCode: number | null;
  readonly signal: number | null;
  readonly maxRssBytes: Bytes;
  readonly userMs: Millis;
  readonly systemMs: Millis;
}
