/** How a collector asks a server whether it may act or to evict a pod, and reports what it did. */
import type { Millis, TimeMs } from "../base/units.js";

export const ACTIONS_PATH = "/api/v1/actions";
export const LEASES_PATH = "/api/v1/leases";
export const EVICTIONS_PATH = "/api/v1/actions/evict";
/** How long a collector waits for the answer. The API server may ask other programs before it evicts. */
export const EVICTION_PATIENCE_MS: Millis = 40_000;

/** Answer of `POST /api/v1/leases`. */
export type LeaseAnswer =
  /** Until then no other instance of the service is acted on, unless the action is reported to be over before. */
  | { readonly granted: true; readonly untilMs: TimeMs }
  | { readonly granted: false; readonly why: string };

/** Answer of `POST /api/v1/actions/evict`. */
export type EvictionAnswer =
  | { readonly evicted: true }
  /** Nothing was done. */
  | { readonly evicted: false; readonly why: string };
