import type { TimeMs } from "../../model/base/units.js";

/** A range of time that a query covers. */
export interface Window {
  readonly startMs: TimeMs;
  readonly endMs: TimeMs;
}
