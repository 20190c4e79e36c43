/**
 * The contents of a recording's frames: one type per kind. Columns of a table have equal length. Ids are dense numbers
 * within the recording; a store computes its 64-bit hashes from the rows' contents, so that none need to be kept here.
 * docs/recording.md lists every column.
 */

import type { Bytes, Millis, Pid, TimeMs } from "../model/base/units.js";
import type { FrameTable, LabelTable, SiteTable, StackTable } from "../model/profile/profile.js";
import type { RecordingMeta } from "./types.js";

export type MetaBatch = Omit<RecordingMeta, "formatVersion">;

/** The `series` table: one row per process, keyed by `series`; a later row replaces an earlier one. */
export interface ProcessBatch {
  readonly series: Uint32Array;
  readonly pid: Uint32Array;
  readonly parentPid: Uint32Array;
  readonly command: readonly (readonly string[])[];
  readonly python: readonly string[];
  /** 1: an agent ran in it. */
  readonly profiled: Uint8Array;
  readonly startedMs: Float64Array;
  /** NaN while it runs. */
  readonly endedMs: Float64Array;
  /** NaN: no launcher set one. Recordings of older versions lack this column. */
  readonly rank?: Float64Array;
}

/** The `metrics` table. `name` counts in `names` of the same batch. */
export interface MetricBatch {
  readonly names: readonly string[];
  readonly timeMs: Float64Array;
  readonly series: Uint32Array;
  readonly name: Uint8Array;
  readonly value: Float64Array;
}

/** The columns of a table of model/profile/profile.ts; each has its own length. */
type Columns<Table> = Omit<Table, "length">;
type Added<Table> = Columns<Table> & { readonly from: number };

/** Rows added to the dictionaries that profiles share. `...From`: the number of the first row,
 * the length of that table so far. Threads and processes carry their row number: a later row replaces the earlier one.
 * */
export interface DictionaryBatch {
  readonly strings: { readonly from: number; readonly values: readonly string[] };
  readonly frames: Added<FrameTable>;
  readonly stacks: Added<StackTable>;
  readonly labels: Added<LabelTable>;
  readonly threads: {
    readonly row: Uint32Array;
    readonly process: Uint32Array;
    readonly tid: Uint32Array;
    readonly name: readonly string[];
    readonly isMain: Uint8Array;
  };
  readonly processes: {
    readonly row: Uint32Array;
    readonly pid: Uint32Array;
    readonly parentPid: Uint32Array;
    readonly command: readonly (readonly string[])[];
    readonly python: readonly string[];
    readonly startedMs: Float64Array;
  };
}

/** The `profiles` table: one row. The next frame of kind samples holds its rows. */
export interface ProfileBatch {
  readonly profile: number;
  readonly kind: "poll" | "peak" | "end";
  readonly timeMs: TimeMs;
  readonly durationMs: Millis;
  readonly liveBytes: Bytes;
  readonly agent: {
    readonly samples: number;
    readonly lost: number;
    readonly cpuMs: Millis;
    readonly periodBytes: Bytes;
  };
  /** Of a profile that another profiler sent: the same if it is sent again. */
  readonly receivedId?: string;
}

/** The `samples` table of one profile, with its lifetimes and cohorts. */
export interface SampleBatch extends Columns<SiteTable> {
  readonly profile: number;
  /** By row of the dictionaries' processes. */
  readonly periodBytes: Float64Array;
  readonly peakMs: Float64Array;
  readonly cohorts: Float64Array;
}

export interface EventBatch {
  readonly timeMs: Float64Array;
  readonly pid: Uint32Array;
  readonly kind: readonly string[];
  readonly detail: readonly string[];
  /** NaN: the kind has none. */
  readonly value: Float64Array;
}

/** Sentences about data that could not be recorded. The recorder's add up; the agents' replace their earlier ones. */
export interface LimitBatch {
  readonly from: "recorder" | "agent";
  readonly sentences: readonly string[];
}

export interface EndBatch {
  readonly timeMs: TimeMs;
  readonly exitCode: number | null;
  readonly signal: number | null;
  readonly maxRssBytes: Bytes;
  readonly userMs: Millis;
  readonly systemMs: Millis;
}

export type SeriesRow = {
  readonly series: number;
  readonly pid: Pid;
  readonly parentPid: Pid;
  readonly command: readonly string[];
  readonly python: string;
  readonly profiled: boolean;
  readonly startedMs: TimeMs;
  readonly endedMs: TimeMs | null;
  /** null or left out: none. */
  readonly rank?: number | null;
};
