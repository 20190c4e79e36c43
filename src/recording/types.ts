import type { Bytes, Millis, Pid, StackId, TimeMs } from "../model/base/units.js";
import type { TypeCounts } from "../model/heap/heap_graph.js";
import type { ImportedSource } from "../model/profile/imported.js";
import type { MemoryEnd } from "../model/profile/memory_end.js";
import type { Profile } from "../model/profile/profile.js";
import type { MemorySeries, TimelineEvent } from "../model/profile/series.js";
import type { ServiceIdentity } from "../model/wire/identity.js";

/** A recording's description. */
export interface RecordingMeta {
  /** Version of the file's format. */
  readonly formatVersion: number;
  /** Version of the Tidemark that recorded. */
  readonly tidemarkVersion: string;
  /** argv of the recorded program. */
  readonly command: readonly string[];
  readonly pid: Pid;
  readonly startedMs: TimeMs;
  /** Host name and kernel release of the machine. */
  readonly host: string;
  readonly kernel: string;
  /** Hex; the pool's random name. "" if no pool could be created. */
  readonly runId: string;
  /** Sampling period that every process started with; 0 without an agent. */
  readonly periodBytes: Bytes;
  /** `/proc/<pid>/fd/<fd>` opens the pool while its keeper runs; null: no pool, or it is a file. */
  readonly keeper: { readonly pid: Pid; readonly startTicks: number; readonly fd: number } | null;
  /** The recorder itself, to distinguish a recording in progress from an abandoned one. */
  readonly recorder: { readonly pid: Pid; readonly startTicks: number };
  /** The program's identity within a fleet, from its environment; older recordings have none. */
  readonly identity?: ServiceIdentity;
  /** Another tool's file that the recording was imported from; absent if Tidemark recorded it. */
  readonly imported?: ImportedSource;
  /** Set if another profiler made the profiles and a server stored them. Their allocated figures are those of
   * each profile's own time; in other recordings they grow from the start of the process. */
  readonly sender?: {
    /** "pyroscope", "otlp", "datadog" */
    readonly source: string;
    /** The same for all profiles of one sender. */
    readonly key: string;
  };
}

/** One process image of the recorded tree: a pid is listed again after it was reused, not after exec. */
export interface RecordedProcess {
  readonly pid: Pid;
  readonly parentPid: Pid;
  /** argv as last read. */
  readonly command: readonly string[];
  /** "3.11.7"; "" if no interpreter was found. */
  readonly python: string;
  /** False if the process ran without an agent: only its /proc figures are known. */
  readonly profiled: boolean;
  readonly startedMs: TimeMs;
  /** null while it runs (or if its end was not seen). */
  readonly endedMs: TimeMs | null;
  /** In a distributed job, the rank that its launcher set in the environment (RANK); absent otherwise. */
  readonly rank?: number | null;
}

/** The agents' own figures, summed over all processes at the time of a profile. */
export interface AgentFigures {
  readonly samples: number;
  readonly lost: number;
  /** CPU time of the slow path. */
  readonly cpuMs: Millis;
  /** Sampling period in force, of the process with the most live bytes. */
  readonly periodBytes: Bytes;
}

export interface SnapshotMoment {
  readonly timeMs: TimeMs;
  /** `poll`: scheduled; `peak`: the tree's memory reached a new maximum; `end`: the last moment. */
  readonly kind: "poll" | "peak" | "end";
  /** Estimated live bytes of all processes in this profile. */
  readonly liveBytes: Bytes;
  readonly agent: AgentFigures;
}

/** How the program ended. */
export interface RecordingEnd {
  readonly timeMs: TimeMs;
  /** Exit code; null if a signal ended it or the end was not seen. */
  readonly exitCode: number | null;
  /** Number of the signal that ended it, else null. */
  readonly signal: number | null;
  /** Highest RSS of a single process of the tree as the kernel kept it (wait4's ru_maxrss); 0 unknown. */
  readonly maxRssBytes: Bytes;
}

/** A moment of a recording: its end, its peak of live bytes, or ms since 1970 (the latest profile at or before it). */
export type Moment = "end" | "peak" | TimeMs;

/** The holders of growing sites of one process, at the frame's time. */
export interface HolderBatch {
  readonly pid: Pid;
  readonly collector: {
    readonly enabled: boolean;
    readonly youngCount: number;
    readonly youngThreshold: number;
  } | null;
  readonly rows: readonly HolderRow[];
  /** Of a notebook kernel, which names the file of a cell by a hash; absent in older recordings. */
  readonly cells?: readonly NotebookCell[];
}

/** The name under which a kernel compiled a cell, and the number that IPython shows for it. */
export interface NotebookCell {
  readonly file: string;
  readonly number: number;
}

/** The newest results of a recording's lookups; each row has the time of its lookup. */
export interface HolderLookup extends Omit<HolderBatch, "rows"> {
  readonly rows: readonly FoundHolder[];
}

export interface FoundHolder extends HolderRow {
  readonly foundMs: TimeMs;
}

export interface HolderRow {
  readonly site: string;
  /** For handles: the stack that opens them, in the dictionary; null if unknown. */
  readonly madeAt: StackId | null;
  readonly looked: number;
  readonly held: number;
  readonly garbage: number;
  readonly graph: number;
  /**
   * Of those that nothing holds: the number that certainly no Python object refers to. A block that no object leads to,
   * or an object whose address is nowhere in the program's memory. The others are referred to by an object that the
   * lookup could not follow, or by C code. Absent in older recordings.
   */
  readonly unreferenced?: number;
  /** Empty: no common path was found. */
  readonly path: readonly string[];
  readonly type: string;
  readonly retainedBytes: Bytes;
  readonly entries: number;
  /**
   * How far apart objects in the same entry were allocated, as a multiple of what chance would give: about 1 if entries grow, near
   * 0 if they are created whole. Absent if it is unknown, and in older recordings.
   */
  readonly entrySpread?: number;
  /** 0: the holder has none. */
  readonly bound: number;
  /** Functions of the program's own code that add items to it; empty if none is known. */
  readonly putters: readonly Putter[];
}

export interface Putter {
  readonly function: string;
  readonly file: string;
  /** The one that adds; in recordings of earlier versions, its first. */
  readonly line: number;
  /** Functions of the program's own code with a line that calls it. */
  readonly callers: readonly string[];
}

/** Objects of one process by type; small types are left out. */
export interface CensusBatch extends TypeCounts {
  readonly pid: Pid;
}

export interface RecordedCensus extends CensusBatch {
  readonly timeMs: TimeMs;
}

/** A recording opened for reading. Dictionaries and series are in memory; profiles are decoded on request. */
export interface Recording {
  readonly path: string;
  readonly meta: RecordingMeta;
  readonly processes: readonly RecordedProcess[];
  /** One per process (pid), in order of start; the root's first. Tree figures are on the root's. */
  readonly series: readonly MemorySeries[];
  /** Ascending by time. */
  readonly events: readonly TimelineEvent[];
  /** Ascending by time; empty if no agent ran. */
  readonly snapshots: readonly SnapshotMoment[];
  /** Times of {@link snapshots}. */
  readonly snapshotTimes: readonly TimeMs[];
  /** The holders of the memory of growing sites: for each process, its newest lookup. */
  readonly holderLookups: readonly HolderLookup[];
  /** Ascending by time; empty if nothing ever grew. */
  readonly censuses: readonly RecordedCensus[];
  /** Processes that ran out of memory, in the order of their ends. */
  readonly memoryEnds: readonly MemoryEnd[];
  /** null: still growing, or the recorder was killed. */
  readonly end: RecordingEnd | null;
  /** True once the end was written. */
  readonly complete: boolean;
  /** One line if reading stopped before the end of the file; null if every frame was complete. */
  readonly damage: string | null;
  /** A sentence if the file lacks the end of the run: it is damaged, or its recorder was killed. */
  readonly missing: string | null;
  /** Sentences about data that could not be recorded, and why. Includes {@link missing}. */
  readonly limits: readonly string[];
  /** First and last moment that the recording covers. */
  readonly startMs: TimeMs;
  readonly endMs: TimeMs;
  /** The profile at a moment. Throws TidemarkError if the recording contains no profile. */
  profileAt(moment: Moment): Profile;
  /** The profile of `snapshots[index]`. */
  profileOf(index: number): Profile;
}
