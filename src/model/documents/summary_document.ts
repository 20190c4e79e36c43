import type { Bytes, Millis, Pid, TimeMs } from "../base/units.js";
import type { LedgerPartName } from "../profile/ledger.js";
import type { AlsoFoundJson, SuspectJson, VerdictJson } from "./diagnosis_document.js";
import type {
  ImportedJson,
  RowGroupJson,
  StepsJson,
  SummarySiteJson,
  TargetJson,
  WindowJson,
} from "./documents.js";

/** `tidemark.summary/1` */
export interface SummaryJson {
  schema: "tidemark.summary/1";
  target: TargetJson;
  /** Absent if Tidemark recorded the program itself. */
  imported?: ImportedJson;
  window: WindowJson;
  /** The time of the figures: the end, or the moment given with --at. */
  atMs: TimeMs;
  /** When the most memory was live: the time of the figures at the peak; absent if nothing was sampled. */
  livePeakMs?: TimeMs;
  /**
   * For a process tree: the sum of all RSS, which counts shared memory several times. With `peakAfterMs`, the peak is
   * the kernel's high-water mark, which no reading saw: it was reached after `peakAfterMs`, at `peakMs` at the latest.
   * `endMs`: the time of the last reading, if it was well before the end; processes may have ended in between.
   */
  rss: { peakBytes: Bytes; peakMs: TimeMs; peakAfterMs?: TimeMs; endBytes: Bytes; endMs?: TimeMs };
  /** For a tree of several processes, if PSS is readable: the memory of the tree, at the polls of PSS. */
  pss?: { peakBytes: Bytes; peakMs: TimeMs; endBytes: Bytes; endMs?: TimeMs };
  processes: {
    pid: Pid;
    parentPid: Pid;
    command: string[];
    python: string;
    /** Peak of its readings; null if it started and ended between two. */
    peakRssBytes: Bytes | null;
    endRssBytes: Bytes | null;
    /** False if the process ran without an agent, so that only metrics from /proc are known. */
    profiled: boolean;
    /** In a distributed job, from its launcher's environment (RANK); absent if not set. */
    rank?: number;
  }[];
  /**
   * The rows that `sites` and `groups` count (`--where`): "thread=worker and label=ingest"; absent if all
   * count. Figures that do not come from samples cover the whole program.
   */
  where?: string;
  /** With `--by`: the grouping key and the groups, most live bytes first. */
  by?: string;
  groups?: RowGroupJson[];
  /** Replaces `groups` with `--by step`. */
  steps?: StepsJson;
  /** By liveBytes at `atMs`, largest first. */
  sites: SummarySiteJson[];
  /**
   * Growth after the first third of the window: of the process's RSS, or of the tree's PSS if it has several
   * processes (its RSS if PSS is not readable). The diagnosis uses the same figures.
   */
  series: {
    startBytes: Bytes;
    minBytes: Bytes;
    baselineBytes: Bytes;
    growthBytesPerHour: number;
    /** 95 % interval of the growth; absent if the window is too short to measure it. */
    growthLowBytesPerHour?: number;
    growthHighBytesPerHour?: number;
    /** Present if the other figures are PSS, but the rate is that of the sum of RSS: PSS was read too rarely. */
    growthOfRss?: true;
    /**
     * Present if the interval excludes zero, but no verdict relies on the growth. `small`: it may be less than what counts in
     * a window of this length. `past`: the last third of the window may not grow.
     */
    growthDoubt?: "small" | "past";
    points: number;
    /** Last reading; 0 if PSS is not readable. */
    treePssBytes: Bytes;
  };
  agent: {
    /** Sampling period at that time, for the sizes with the fewest samples; large allocations keep the configured one. */
    periodBytes: Bytes;
    /** The longest period until then, for any size. */
    coarsestPeriodBytes?: Bytes;
    samples: number;
    lost: number;
    /** A site without a live sample holds less than this with 95 % probability. */
    unseenUpToBytes?: Bytes;
    /** CPU time that the agents spent on their slow path. */
    cpuMs: Millis;
    allocatedBytesPerSecond: number;
  };
  /** What memcpy and memmove copied until then; absent if it was not counted (`--copies`), or nothing was. */
  copied?: { bytes: Bytes; calls: number; standardErrorBytes: Bytes };
  /** The parts of RSS at the last recorded ledger, for `processes` together; absent if there is none. */
  ledger?: {
    atMs: TimeMs;
    processes: number;
    parts: { part: LedgerPartName; bytes: Bytes }[];
  };
  /** Processes that were killed for memory or ran out of it, in the order of their ends; absent if there are none. */
  memoryEnds?: MemoryEndJson[];
  /**
   * Of `run`, `attach` and `summary`; null if it is left to `tidemark diagnose`: at another moment than the end (`--at`), and
   * for an imported recording without RSS.
   */
  verdict?: SummaryVerdictJson | null;
  /** What could not be observed, and why. */
  limits: string[];
}

/** The verdict of `tidemark.diagnosis/1`, its leading suspect, and the other causes. */
export interface SummaryVerdictJson extends VerdictJson {
  /** Absent if the verdict names none. */
  suspect?: SuspectJson;
  /** Other causes, as in `tidemark.diagnosis/1`; absent if there are none. */
  alsoFound?: AlsoFoundJson[];
}

/** How a process ran out of memory. */
export interface MemoryEndJson {
  pid: Pid;
  timeMs: TimeMs;
  /** The limit of its control group, the machine's memory, or a limit of its own (ulimit -v, -d). */
  cause: "cgroup" | "machine" | "rlimit";
  /** 0: unknown. */
  limitBytes: Bytes;
  /** Usage of everything that counts against the limit; 0: unknown. */
  usedBytes: Bytes;
  /** RSS of the process; 0: unknown. */
  rssBytes: Bytes;
  /** The control group, "RLIMIT_AS" or "RLIMIT_DATA"; "" for the machine. */
  limit: string;
  /** The allocation that failed right before its end; absent if the agent saw none. */
  failedBytes?: Bytes;
  /** The evidence. */
  evidence: string[];
  /** Live bytes at its end; absent if no agent ran. */
  pythonBytes?: Bytes;
  nativeBytes?: Bytes;
  /** Everything in one line. */
  sentence: string;
}
