import type { Bytes, Millis, Pid, StackId, TimeMs } from "../model/base/units.js";
import type { TypeCounts } from "../model/heap/heap_graph.js";
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
  /** Hex; the pool's random name. "" where no pool could be made. */
  readonly runId: string;
  /** Sampling period that every process started with; 0 without an agent. */
  readonly periodBytes: Bytes;
  /** `/proc/<pid>/fd/<fd>` opens the pool while its keeper lives; null where there is no pool. */
  readonly keeper: { readonly pid: Pid; readonly startTicks: number; readonly fd: number } | null;
  /** The recorder itself, to distinguish a recording in progress from an abandoned one. */
  readonly recorder: { readonly pid: Pid; readonly startTicks: number };
  /** Who the program is within a fleet, by its environment; older recordings have none. */
  readonly identity?: ServiceIdentity;
  /** Set where another profiler made the profiles, and a server wrote them down. Their allocated figures are those of
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
  /** "3.11.7"; "" where no interpreter was seen. */
  readonly python: string;
  /** False where the process ran without an agent: only its /proc figures are known. */
  readonly profiled: boolean;
  readonly startedMs: TimeMs;
  /** null while it lives (or where its end was not seen). */
  readonly endedMs: TimeMs | null;
  /** In a distributed job, as its launcher set it in the environment (RANK); left out where none did. */
  readonly rank?: number | null;
}

/** Figures that the agents kept, summed over all processes at a look. */
export interface AgentFigures {
  readonly samples: number;
  readonly lost: number;
  /** CPU time of the slow path. */
  readonly cpuMs: Millis;
  /** Sampling period in force, of the process with the most live bytes. */
  readonly periodBytes: Bytes;
}

export interface LookMoment {
  readonly timeMs: TimeMs;
  /** `poll`: by the clock; `peak`: the tree's memory was at a new high; `end`: the last moment. */
  readonly kind: "poll" | "peak" | "end";
  /** Estimated live bytes of all processes at this look. */
  readonly liveBytes: Bytes;
  readonly agent: AgentFigures;
}

/** How the program ended. */
export interface RecordingEnd {
  readonly timeMs: TimeMs;
  /** Exit code; null where a signal ended it or the end was not seen. */
  readonly exitCode: number | null;
  /** Number of the signal that ended it, else null. */
  readonly signal: number | null;
  /** Highest RSS of a single process of the tree as the kernel kept it (wait4's ru_maxrss); 0 unknown. */
  readonly maxRssBytes: Bytes;
}

/** A moment of a recording: its end, its peak of live bytes, or ms since 1970 (the nearest look before or at it). */
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
  /** Of a notebook kernel, which names the file of a cell by a hash; recordings before it lack it. */
  readonly cells?: readonly NotebookCell[];
}

/** The name under which a kernel compiled a cell, and the number that IPython shows for it. */
export interface NotebookCell {
  readonly file: string;
  readonly number: number;
}

/** Of a recording's lookups what is newest, each row with the time of the one that found it. */
export interface HolderLookup extends Omit<HolderBatch, "rows"> {
  readonly rows: readonly FoundHolder[];
}

interface FoundHolder extends HolderRow {
  readonly foundMs: TimeMs;
}

export interface HolderRow {
  readonly site: string;
  /** Of handles: the stack that makes them, of the dictionary; null where it is not known. */
  readonly madeAt: StackId | null;
  readonly looked: number;
  readonly held: number;
  readonly garbage: number;
  readonly graph: number;
  /** Empty: nothing common was found. */
  readonly path: readonly string[];
  readonly type: string;
  readonly retainedBytes: Bytes;
  readonly entries: number;
  /** 0: the holder carries none. */
  readonly bound: number;
  /** Functions of the program's own code that add items to it, by first line; empty if none is known. */
  readonly putters: readonly Putter[];
}

export interface Putter {
  readonly function: string;
  readonly file: string;
  /** Its first. */
  readonly line: number;
  /** Functions of the program's own code with a line that calls it. */
  readonly callers: readonly string[];
}

/** Objects of one process by type; a row is a type of some size. */
export interface CensusBatch extends TypeCounts {
  readonly pid: Pid;
}

export interface RecordedCensus extends CensusBatch {
  readonly timeMs: TimeMs;
}

/** A recording opened for reading. Dictionaries and series are in memory; looks are decoded when asked for. */
export interface Recording {
  readonly path: string;
  readonly meta: RecordingMeta;
  readonly processes: readonly RecordedProcess[];
  /** One per process (pid), in order of start; the root's first. Tree figures are on the root's. */
  readonly series: readonly MemorySeries[];
  /** Ascending by time. */
  readonly events: readonly TimelineEvent[];
  /** Ascending by time; empty where no agent ran. */
  readonly looks: readonly LookMoment[];
  /** Times of {@link looks}. */
  readonly lookTimes: readonly TimeMs[];
  /** What was found to hold the memory of sites that grew: of each process the newest lookup. */
  readonly holderLookups: readonly HolderLookup[];
  /** Ascending by time; empty where nothing ever grew. */
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
  /** What could not be seen, and why: sentences. Includes {@link missing}. */
  readonly limits: readonly string[];
  /** First and last moment that the recording covers. */
  readonly startMs: TimeMs;
  readonly endMs: TimeMs;
  /** The profile at a moment. Throws TidemarkError where the recording holds no profile at all. */
  profileAt(moment: Moment): Profile;
  /** The profile of `looks[index]`. */
  profileOf(index: number): Profile;
}
