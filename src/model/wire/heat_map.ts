/** The server's answer about the memory of all instances of a service over time. */
import type { Bytes, Millis, TimeMs } from "../base/units.js";

export const HEAT_MAP_PATH = "/api/v1/heatmap";

/** Live bytes are for the profiles of other profilers, which send no RSS. */
export const HEAT_MAP_NAMES = ["rssBytes", "liveBytes"] as const;
export type HeatMapName = (typeof HEAT_MAP_NAMES)[number];

/** Answer of `GET /api/v1/heatmap`: a row for each instance, the largest peak first. */
export interface HeatMapAnswer {
  readonly service: string;
  readonly name: HeatMapName;
  readonly startMs: TimeMs;
  readonly stepMs: Millis;
  readonly instances: readonly HeatMapRow[];
  /** Instances that were left out; they have smaller peaks. */
  readonly otherInstances: number;
}

export interface HeatMapRow {
  /** The name of its stream. */
  readonly stream: string;
  readonly version: string;
  readonly host: string;
  readonly pod: string;
  readonly startedMs: TimeMs;
  /** Absent: it runs, or its end was not seen. */
  readonly endedMs?: TimeMs;
  /** 0: it has none, or it is unknown. */
  readonly limitBytes: Bytes;
  /** By step, the mean over the time in which it reported; null: it did not report. */
  readonly values: readonly (Bytes | null)[];
  /** Set if its memory is unlike that of the other instances of its version. */
  readonly odd?: OddMemory;
}

/** How far an instance is from the median of its siblings, over the window or over its last quarter, whichever is more. */
export interface OddMemory {
  readonly differenceBytes: Bytes;
  /** Other instances of its version that reported at the same time. */
  readonly siblings: number;
}
