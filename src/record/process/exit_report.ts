import type { Bytes, Millis } from "../../model/base/units.js";

/** How a program ended. */
export type ProgramExit = Pick<ExitReport, "exitCode" | "signal">;

/** How the program ended, from the guard's wait4. */
export interface ExitReport {
  /** Exit code; null if a signal ended it. */
  readonly exitCode: number | null;
  readonly signal: number | null;
  readonly maxRssBytes: Bytes;
  readonly userMs: Millis;
  readonly systemMs: Millis;
}
