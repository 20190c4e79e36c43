/**
 * The JSON documents that Tidemark promises (docs/json/ holds a JSON Schema for each, generated from
 * these types). A document only gains optional keys within a version. Times are ms since 1970,
 * addresses hex strings; there is no NaN.
 */
import type { Interval } from "../base/interval.js";
import type { Bytes, Millis, Objects, Pid, TimeMs } from "../base/units.js";
import type { LedgerPartName } from "../profile/ledger.js";

export interface TargetJson {
  pid: Pid;
  command: string[];
  /** "3.11.7"; empty where no interpreter was seen. */
  python: string;
  startedMs: TimeMs;
}

export interface WindowJson {
  startMs: TimeMs;
  endMs: TimeMs;
  /** Polls in the window. */
  points: number;
}

export interface FrameJson {
  function: string;
  file: string;
  line: number;
  kind: "python" | "native" | "mark";
}

export interface SummarySiteJson {
  /** Leaf first. */
  stack: FrameJson[];
  /** Which allocator was asked. */
  domain: "python" | "native" | "mapped";
  liveBytes: Bytes;
  liveObjects: Objects;
  liveBytesAtPeak: Bytes;
  allocatedBytes: Bytes;
  allocatedObjects: Objects;
  /** Standard error of liveBytes; of liveBytesAtPeak and allocatedBytes with their names. */
  standardErrorBytes: Bytes;
  standardErrorAtPeakBytes: Bytes;
  standardErrorAllocatedBytes: Bytes;
  /** Hold the true figures in 95 of 100 cases: wider than two standard errors where samples are few. */
  interval95Bytes?: Interval;
  interval95AtPeakBytes?: Interval;
  interval95AllocatedBytes?: Interval;
}

/** Sampled rows that have one thing in common: a thread, a label, a process, a rank, a range of steps. */
export interface RowGroupJson {
  /** The value that they share; "" for rows without one. */
  group: string;
  /** Of a process. */
  pid?: Pid;
  liveBytes: Bytes;
  /** Standard error of liveBytes. */
  standardErrorBytes: Bytes;
  /** Holds the true figure in 95 of 100 cases. */
  interval95Bytes: Interval;
  /** Of the live bytes of all groups, 0 to 1. */
  share: number;
  liveBytesAtPeak: Bytes;
  allocatedBytes: Bytes;
  standardErrorAllocatedBytes: Bytes;
  /** Stacks, apart by allocator, of which something lives. */
  sites: number;
  /** Growth of the live bytes after the first third of the recording, with its 95 % interval; left out where there are
   * too few looks to measure it. */
  growthBytesPerHour?: number;
  growthLowBytesPerHour?: number;
  growthHighBytesPerHour?: number;
}

/** Host memory by the steps that the program marks, of each name and process. */
export interface StepsJson {
  /** In the order of the steps. */
  ranges: StepRangeJson[];
  /** What each step leaves behind: the median after the first third of the ranges, without the last; of loops that are
   * long enough to tell. */
  left: {
    name: string;
    pid: Pid;
    firstStep: number;
    lastStep: number;
    bytesPerStep: Bytes;
    /** Standard error of bytesPerStep. */
    standardErrorBytes: Bytes;
    /** Whether bytesPerStep is within two standard errors of zero. */
    isNoise: boolean;
  }[];
}

export interface StepRangeJson {
  /** As in `tidemark.step(name)`. */
  name: string;
  pid: Pid;
  firstStep: number;
  lastStep: number;
  /** Allocated in these steps and not freed. */
  liveBytes: Bytes;
  /** Standard error of liveBytes. */
  standardErrorBytes: Bytes;
  bytesPerStep: Bytes;
  /** Standard error of bytesPerStep. */
  standardErrorPerStep: Bytes;
  /** Stacks, apart by allocator, of which something lives. */
  sites: number;
}

/** `tidemark.completion/1`: the script by which a shell completes command lines. */
export interface CompletionJson {
  schema: "tidemark.completion/1";
  shell: "bash" | "zsh" | "fish";
  script: string;
}

/** `tidemark.summary/1` */
export interface SummaryJson {
  schema: "tidemark.summary/1";
  target: TargetJson;
  window: WindowJson;
  /** The time the figures are of: the end unless --at said otherwise. */
  atMs: TimeMs;
  /** When the most memory was live: the time of the figures at the peak; absent where nothing was sampled. */
  livePeakMs?: TimeMs;
  /** Of a tree of processes: the sum of each one's RSS, which counts what they share more than once. */
  rss: { peakBytes: Bytes; peakMs: TimeMs; endBytes: Bytes };
  /** Of a tree of several processes, where PSS could be read: what the tree takes, at the polls of PSS. */
  pss?: { peakBytes: Bytes; peakMs: TimeMs; endBytes: Bytes };
  processes: {
    pid: Pid;
    parentPid: Pid;
    command: string[];
    python: string;
    /** Of its readings; null where it came and ended between two. */
    peakRssBytes: Bytes | null;
    endRssBytes: Bytes | null;
    /** False where the process ran without an agent: only its /proc figures are known. */
    profiled: boolean;
    /** In a distributed job, from its launcher's environment (RANK); left out where there is none. */
    rank?: number;
  }[];
  /** The rows that `sites` and `groups` count (`--where`): "thread=worker and label=ingest"; left out where all count.
   * Figures that do not come from samples are of the whole program. */
  where?: string;
  /** With `--by`: what the rows are grouped by, and the groups, the most live bytes first. */
  by?: string;
  groups?: RowGroupJson[];
  /** In place of `groups`, with `--by step`. */
  steps?: StepsJson;
  /** By liveBytes at `atMs`, largest first. */
  sites: SummarySiteJson[];
  /** Growth after the first third of the window: of the process's RSS, or of the tree's PSS where it has several
   * processes (its RSS where PSS could not be read). The diagnosis uses the same figures. */
  series: {
    startBytes: Bytes;
    minBytes: Bytes;
    baselineBytes: Bytes;
    growthBytesPerHour: number;
    /** 95 % interval of the growth; left out where the window is too short to measure it. */
    growthLowBytesPerHour?: number;
    growthHighBytesPerHour?: number;
    points: number;
    /** Last reading; 0 where PSS could not be read. */
    treePssBytes: Bytes;
  };
  agent: {
    /** In force at that time, for the size of which samples were rarest; large allocations keep the configured one. */
    periodBytes: Bytes;
    /** The coarsest in force until then, for any size. */
    coarsestPeriodBytes?: Bytes;
    samples: number;
    lost: number;
    /** A place of which no sample lives holds less, in 95 of 100 cases. */
    unseenUpToBytes?: Bytes;
    /** CPU time the agents spent on their slow path. */
    cpuMs: Millis;
    allocatedBytesPerSecond: number;
  };
  /** What RSS was made of at the last recorded ledger, of `processes` together; absent where there is none. */
  ledger?: {
    atMs: TimeMs;
    processes: number;
    parts: { part: LedgerPartName; bytes: Bytes }[];
  };
  /** Processes that were killed for memory or ran out of it, in the order of their ends; left out where there are none. */
  memoryEnds?: MemoryEndJson[];
  /** What could not be seen, and why. */
  limits: string[];
}

/** How a process ran out of memory. */
export interface MemoryEndJson {
  pid: Pid;
  timeMs: TimeMs;
  /** The limit of its control group, the machine's memory, or a limit of its own (ulimit -v, -d). */
  cause: "cgroup" | "machine" | "rlimit";
  /** 0: not known. */
  limitBytes: Bytes;
  /** By all that count against the limit; 0: not known. */
  usedBytes: Bytes;
  /** Of the process; 0: not known. */
  rssBytes: Bytes;
  /** The control group, "RLIMIT_AS" or "RLIMIT_DATA"; "" for the machine. */
  limit: string;
  /** What it is known from. */
  evidence: string[];
  /** Live at its last moment; left out where no agent ran. */
  pythonBytes?: Bytes;
  nativeBytes?: Bytes;
  /** All of it in one line. */
  sentence: string;
}

/** `tidemark.ps/1` */
export interface PsJson {
  schema: "tidemark.ps/1";
  processes: {
    pid: Pid;
    parentPid: Pid;
    user: string;
    python: string;
    build: { linking: "shared" | "static" | ""; debug: boolean; freeThreaded: boolean };
    command: string[];
    /** Container or pod id from the cgroup; empty outside one. */
    container: string;
    rssBytes: Bytes;
    /** 0 where not ours to read; ussBytes likewise. */
    pssBytes: Bytes;
    ussBytes: Bytes;
    /** Of RSS since the last `tidemark ps`; 0 where that did not see the process. */
    growthBytes: Bytes;
    /** Growth of RSS per hour, of the recording that is in progress or of what `top` has seen, after the first third of
     * that time, with its 95 % interval; in `ps` without a recording, between two looks, without an interval. Left out
     * where it cannot be measured. */
    growthBytesPerHour?: number;
    growthLowBytesPerHour?: number;
    growthHighBytesPerHour?: number;
    /** The least RSS that was seen in that time; left out after a first look. */
    minRssBytes?: Bytes;
    /** RSS after the first third of that time. */
    baselineRssBytes?: Bytes;
    threads: number;
    /** Its child processes, Python or not. */
    children: number;
    /** Device memory by nvidia-smi; absent where no driver answers. */
    gpuBytes?: Bytes;
    attach: { ok: boolean; reason: string; remedy: string };
  }[];
}

/** `tidemark.diff/1`: what grew from A to B. */
export interface DiffJson {
  schema: "tidemark.diff/1";
  a: { file: string; atMs: TimeMs; target: TargetJson };
  b: { file: string; atMs: TimeMs; target: TargetJson };
  totals: {
    liveBytesA: Bytes;
    liveBytesB: Bytes;
    growthBytes: Bytes;
    standardErrorBytes: Bytes;
    /** Whether the growth is within two standard errors of zero. */
    isNoise?: boolean;
    /** Highest RSS of the whole tree within each recording. */
    peakRssBytesA: Bytes;
    peakRssBytesB: Bytes;
  };
  /** The rows that both sides count (`--where`); left out where all count. */
  where?: string;
  /** With `--by`: what the rows are grouped by, and the groups, in the order of the sites. */
  by?: string;
  groups?: {
    group: string;
    pid?: Pid;
    liveBytesA: Bytes;
    liveBytesB: Bytes;
    growthBytes: Bytes;
    standardErrorBytes: Bytes;
    isNoise?: boolean;
  }[];
  /** Those beyond their error first; then by growth, largest first. */
  sites: {
    stack: FrameJson[];
    domain: "python" | "native" | "mapped";
    liveBytesA: Bytes;
    liveBytesB: Bytes;
    growthBytes: Bytes;
    /** Of growthBytes. Two recordings count as independent; two moments of one share their samples. */
    standardErrorBytes: Bytes;
    /** Whether growthBytes is within two standard errors of zero. */
    isNoise?: boolean;
  }[];
  limits: string[];
}

/** `tidemark.lines/1` */
export interface LinesJson {
  schema: "tidemark.lines/1";
  target: TargetJson;
  atMs: TimeMs;
  /** The rows that count (`--where`); left out where all count. */
  where?: string;
  /** With `--by`: what the lines are grouped by. */
  by?: string;
  /** By live bytes, largest first, with `--by` then by group; of one file: by line. */
  lines: {
    /** With `--by`: "" for rows without a value. */
    group?: string;
    file: string;
    line: number;
    function: string;
    liveBytes: Bytes;
    liveBytesAtPeak: Bytes;
    allocatedBytes: Bytes;
    /** Share of liveBytes, or where that is 0 of liveBytesAtPeak, that Python's allocators were asked for. */
    pythonShare: number;
    standardErrorBytes: Bytes;
  }[];
  limits: string[];
}

/** `tidemark.written/1`: what `report` and `export` wrote. */
export interface WrittenJson {
  schema: "tidemark.written/1";
  format: string;
  files: { file: string; bytes: Bytes }[];
}
