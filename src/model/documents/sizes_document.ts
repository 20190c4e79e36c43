import type { Bytes, Millis, TimeMs } from "../base/units.js";

/** How the limit of a service compares with what it needs. */
export type SizeState =
  /** A lower limit is enough. */
  | "lower"
  /** It needs a higher limit. */
  | "higher"
  /** Within a tenth. */
  | "fits"
  /** There is no limit. */
  | "unlimited"
  /** It leaks: no limit is enough for long. */
  | "leaks"
  /** Too little is known. */
  | "unknown";

/** What one instance of a service needs. */
export interface ServiceSizeJson {
  service: string;
  state: SizeState;
  /** One sentence. */
  summary: string;
  /** Instances that run. */
  instances: number;
  /** The versions that run, whose peaks were used; `earlierVersions`: also those of versions before. */
  versions: string[];
  earlierVersions: boolean;
  /** Hours in which one of these processes ran. */
  observedMs: Millis;
  /** Days of single instances: one peak each. */
  instanceDays: number;
  /** The limit of most of the running instances; 0: none is known. */
  limitBytes: Bytes;
  /** The 99th percentile of daily peaks of an instance, and the highest. */
  peakBytes: Bytes;
  highestBytes: Bytes;
  /** Absent with the states `leaks` and `unknown`. */
  needs?: {
    /** Covers 95 % of the hours of an instance. */
    requestBytes: Bytes;
    /** `peakBytes` and a margin. */
    limitBytes: Bytes;
  };
  /** Of all running instances, if the limit changes; negative: so much more is needed. 0 unless `lower` or `higher`. */
  savedBytes: Bytes;
  /** Times that the kernel killed one of its processes for memory, but not because the machine was short of it. */
  kills: number;
  /** What would break, or may be wrong with these figures: one sentence each. */
  cautions: string[];
}

/** `tidemark.fleetSizes/1`: the memory that services need, from the two weeks before the end of a window. */
export interface FleetSizesJson {
  schema: "tidemark.fleetSizes/1";
  window: { startMs: TimeMs; endMs: TimeMs };
  /** Added to the peak. */
  marginShare: number;
  /** What a GiB costs a month, as configured. */
  price?: { perGibMonth: number; currency: string };
  /** Of all services with the state `lower`. */
  savedBytes: Bytes;
  /** Those that save most first. */
  sizes: readonly ServiceSizeJson[];
}
