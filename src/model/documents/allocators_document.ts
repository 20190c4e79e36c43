import type { Bytes, Millis } from "../base/units.js";

/** The settings that `tidemark allocators` compares. */
export type AllocatorName =
  | "glibc"
  | "arenas"
  | "mmap"
  | "trim"
  | "pymimalloc"
  | "jemalloc"
  | "mimalloc"
  | "tcmalloc";

/**
 * A relative change to plain glibc: -0.2 is 20 % less. The 95 % interval holds for all settings of a comparison together,
 * however often rounds were added.
 */
export interface ChangeJson {
  value: number;
  low: number;
  high: number;
}

/** One run of the program under one setting. */
export interface AllocatorRunJson {
  /** 1 for the first round. */
  round: number;
  peakRssBytes: Bytes;
  steadyRssBytes: Bytes;
  /** At the peak of live bytes, estimated from samples; null: the agent sampled nothing. */
  liveBytes: Bytes | null;
  cpuMs: Millis;
  wallMs: Millis;
}

/** A setting and the medians of its runs. */
export interface AllocatorTrialJson {
  allocator: AllocatorName;
  /** "jemalloc, preloaded". */
  title: string;
  /** Whether each run proved that the setting was in force; `proof` gives the evidence. */
  loaded: boolean;
  proof: string;
  /** Of the process tree: RSS, or the sum of PSS while there are several processes. */
  peakRssBytes: Bytes;
  /** Median of the readings in the last third of a run. */
  steadyRssBytes: Bytes;
  liveBytes: Bytes | null;
  cpuMs: Millis;
  wallMs: Millis;
  runs: AllocatorRunJson[];
  /** Absent for glibc itself, and with fewer than two rounds. */
  peakChange?: ChangeJson;
  steadyChange?: ChangeJson;
  cpuChange?: ChangeJson;
  /** Arguments for `tidemark run` that start the program with this setting. */
  use: string;
  /** How to start it with this setting without Tidemark: "MALLOC_ARENA_MAX=2". "" for glibc. */
  deploy: string;
}

/** `tidemark.allocators/1` */
export interface AllocatorsJson {
  schema: "tidemark.allocators/1";
  command: string[];
  /** Of glibc; settings that were decided earlier have fewer `runs`. */
  rounds: number;
  trials: AllocatorTrialJson[];
  /** The setting that uses clearly less memory than glibc; null: glibc should be kept. */
  best: AllocatorName | null;
  /** One to three sentences. */
  recommendation: string;
  /** Settings that were not tried, or failed. */
  skipped: { allocator: AllocatorName; reason: string; install?: string }[];
  limits: string[];
}
