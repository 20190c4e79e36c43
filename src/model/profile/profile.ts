import type { Bytes, Millis, Pid, ProcessIndex, TimeMs } from "../base/units.js";

/** What ran a frame's code. `mark` represents omitted frames or sites; its function states how many. */
export const FrameKind = { python: 0, native: 1, mark: 2 } as const;
export type FrameKind = (typeof FrameKind)[keyof typeof FrameKind];

/** The allocator: Python's (PyMem_, PyObject_), malloc and operator new, or mmap. */
export const Domain = { python: 0, native: 1, mapped: 2 } as const;
export type Domain = (typeof Domain)[keyof typeof Domain];
/**
 * Follows those of {@link Domain} if sites of both kinds are in one table: a mapping of a file, of shared
 * memory or of a device. It is address space, not allocated memory.
 */
export const FILES_DOMAIN = 3;
/** Follows: memcpy and memmove. The allocated figures are the bytes copied and the number of calls; the others are 0. */
export const COPIES_DOMAIN = 4;

/** Columns of equal length; row = {@link FrameId}. */
export interface FrameTable {
  readonly length: number;
  /** Qualified name; for a native frame the demangled symbol, or "" if not symbolized. */
  readonly function: Uint32Array;
  /** Source file; for a native frame the object file. */
  readonly file: Uint32Array;
  /** 1-based, 0 unknown. */
  readonly line: Uint32Array;
  /** First line of the function, 0 unknown. */
  readonly firstLine: Uint32Array;
  /** {@link FrameKind} */
  readonly kind: Uint8Array;
  /** Native: virtual address within the object file; else 0. */
  readonly address: Float64Array;
}

/** Prefix tree of stacks, root first; row = {@link StackId}; row 0 is the empty stack (its own parent).
 * `parent[i] < i`, so one descending pass folds children into parents. */
export interface StackTable {
  readonly length: number;
  readonly parent: Uint32Array;
  readonly frame: Uint32Array;
}

export interface ProfileProcess {
  readonly pid: Pid;
  readonly parentPid: Pid;
  /** argv, possibly cut. */
  readonly command: readonly string[];
  /** "3.11.7"; "" if no interpreter was found. */
  readonly python: string;
  readonly startedMs: TimeMs;
  /** Mean bytes between samples, at the snapshot. */
  readonly periodBytes: Bytes;
  /** Rank in a distributed job, from its launcher's environment. */
  readonly rank?: number;
}

export interface ProfileThread {
  readonly process: ProcessIndex;
  /** 0: all threads beyond the agent's limit. */
  readonly tid: number;
  readonly name: string;
  readonly isMain: boolean;
}

/** Row = {@link LabelId}; a label extends its parent by one key and value; row 0 is "no label". */
export interface LabelTable {
  readonly length: number;
  readonly parent: Uint32Array;
  readonly key: Uint32Array;
  readonly value: Uint32Array;
}

/** Columns of equal length: one row per (stack, process, thread, label, domain). All figures are
 * unbiased estimates from samples, with the variance of the byte figures beside them. */
export interface SiteTable {
  readonly length: number;
  readonly stack: Uint32Array;
  readonly process: Uint16Array;
  readonly thread: Uint32Array;
  readonly label: Uint32Array;
  /** {@link Domain} */
  readonly domain: Uint8Array;
  readonly liveBytes: Float64Array;
  readonly liveObjects: Float64Array;
  readonly liveVariance: Float64Array;
  /** Number of samples behind the live figures; with fewer than ten they are only a hint. */
  readonly liveSamples: Uint32Array;
  readonly allocatedBytes: Float64Array;
  readonly allocatedObjects: Float64Array;
  readonly allocatedVariance: Float64Array;
  readonly peakBytes: Float64Array;
  readonly peakObjects: Float64Array;
  readonly peakVariance: Float64Array;
  /** Freed objects, by lifetime; row-major `length` x {@link LIFETIME_BUCKETS}. Bucket 0: under
   * 1 ms; i: 2^(i-1) to 2^i ms; the last is open. */
  readonly lifetimes: Float32Array;
  /** Live bytes by allocation time; row-major `length` x `cohorts.length`. */
  readonly cohortBytes: Float64Array;
}

export const LIFETIME_BUCKETS = 24;

/** The dictionaries that snapshots share; they only grow during a recording. */
export interface ProfileTables {
  readonly strings: readonly string[];
  readonly frames: FrameTable;
  readonly stacks: StackTable;
  readonly processes: readonly ProfileProcess[];
  readonly threads: readonly ProfileThread[];
  readonly labels: LabelTable;
}

/** One snapshot of the memory of one or more processes: the figures, without the dictionaries. */
export interface ProfileSnapshot {
  readonly timeMs: TimeMs;
  /** Time the allocated figures cover, from the start of the oldest process's segment. */
  readonly durationMs: Millis;
  readonly sites: SiteTable;
  /**
   * Mappings of files, of shared memory and of devices that the program made, by their whole length; the domain
   * is {@link FILES_DOMAIN}.
   */
  readonly files: SiteTable;
  /** Bytes that memcpy and memmove copied, if they were counted; the domain is {@link COPIES_DOMAIN}. */
  readonly copies: SiteTable;
  /** Upper bounds (exclusive) of the allocation-time cohorts, ascending; the last is `timeMs` or later. */
  readonly cohorts: readonly TimeMs[];
  /** Time of the peak figures, by process; 0 if there was none. */
  readonly peakMs: readonly TimeMs[];
}

export interface Profile extends ProfileTables, ProfileSnapshot {}

/** Names of the figures that a call tree, a flame graph or a table of sites can show. */
export type SiteValue =
  | "liveBytes"
  | "liveObjects"
  | "peakBytes"
  | "peakObjects"
  | "allocatedBytes"
  | "allocatedObjects";
