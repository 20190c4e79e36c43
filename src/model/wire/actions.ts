/** How a collector asks a server whether it may act, and reports what it did. */
import type { TimeMs } from "../base/units.js";

export const ACTIONS_PATH = "/api/v1/actions";
export const LEASES_PATH = "/api/v1/leases";

/** Answer of `POST /api/v1/leases`. */
export type LeaseAnswer =
  /** Until then no other instance of the service is acted on, unless the action is reported to be over before. */
  | { readonly granted: true; readonly untilMs: TimeMs }
  | { readonly granted: false; readonly why: string };
