/**
 * The JSON documents that Tidemark promises (docs/json/ holds a JSON Schema for each, generated from
 * these types). A document only gains optional keys within a version. Times are ms since 1970,
 * addresses hex strings; there is no NaN.
 */
import type { Interval } from "../base/interval.js";
import type { Bytes, Objects, Pid, TimeMs } from "../base/units.js";

export interface TargetJson {
  pid: Pid;
  command: string[];
  /** "3.11.7"; empty if no interpreter was found. */
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
  /** The allocator. */
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
  /** 95 % intervals; wider than two standard errors if there are few samples. */
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
  /** 95 % interval. */
  interval95Bytes: Interval;
  /** Share of the live bytes of all groups, 0 to 1. */
  share: number;
  liveBytesAtPeak: Bytes;
  allocatedBytes: Bytes;
  standardErrorAllocatedBytes: Bytes;
  /** Stacks with live bytes, separately by allocator. */
  sites: number;
  /**
   * Growth of the live bytes after the first third of the recording, with its 95 % interval; absent if there
   * are too few snapshots to measure it.
   */
  growthBytesPerHour?: number;
  growthLowBytesPerHour?: number;
  growthHighBytesPerHour?: number;
}

/** Host memory by the steps that the program marks, for each name and process. */
export interface StepsJson {
  /** In the order of the steps. */
  ranges: StepRangeJson[];
  /**
   * Bytes that each step leaves behind: the median after the first third of the ranges, without the last; only
   * for loops that are long enough.
   */
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
  /** Stacks with live bytes, separately by allocator. */
  sites: number;
}

/** `tidemark.completion/1`: the script that makes a shell complete command lines. */
export interface CompletionJson {
  schema: "tidemark.completion/1";
  shell: "bash" | "zsh" | "fish";
  script: string;
}

/** The source of a recording that was imported from another tool's file. */
export interface ImportedJson {
  /** "memray (format 13)" */
  tool: string;
  /** Name of the imported file. */
  file: string;
  /** Figures that the file does not contain: they are 0 in this document. */
  unknown: ("live" | "peak" | "allocated" | "objects" | "rss" | "time" | "python")[];
  /** Whether the tool counted each allocation, or took samples, whose errors are then unknown: 0 in this document. */
  precision: "exact" | "sampled" | "unknown";
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
    /** 0 if not readable; likewise for ussBytes. */
    pssBytes: Bytes;
    ussBytes: Bytes;
    /** Growth of RSS since the last `tidemark ps`; 0 if that did not list the process. */
    growthBytes: Bytes;
    /**
     * Growth of RSS per hour, from the recording in progress or the readings of `top`, after the first third of
     * that time, with its 95 % interval; in `ps` without a recording, between two readings, without an
     * interval. Absent if it cannot be measured.
     */
    growthBytesPerHour?: number;
    growthLowBytesPerHour?: number;
    growthHighBytesPerHour?: number;
    /** The lowest RSS in that time; absent after a first reading. */
    minRssBytes?: Bytes;
    /** RSS after the first third of that time. */
    baselineRssBytes?: Bytes;
    threads: number;
    /** Its child processes, Python or not. */
    children: number;
    /** Its child processes that have ended and that it did not wait for (zombies); absent if there are none. */
    endedChildren?: number;
    /** Device memory from nvidia-smi; absent if no driver answers. */
    gpuBytes?: Bytes;
    attach: { ok: boolean; reason: string; remedy: string };
  }[];
}

/** `tidemark.diff/1`: what grew from A to B. */
export interface DiffJson {
  schema: "tidemark.diff/1";
  a: { file: string; atMs: TimeMs; target: TargetJson; imported?: ImportedJson };
  b: { file: string; atMs: TimeMs; target: TargetJson; imported?: ImportedJson };
  /**
   * The figure that the bytes of the totals and sites hold if an imported side does not know live bytes: the first
   * of these that both sides know. `copied` is by source line: a stack has one frame. `unknown`: both sides know none
   * of them; there are no sites, and the totals are 0. Absent: live bytes.
   */
  figure?: "peak" | "allocated" | "copied" | "unknown";
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
  /** The selected rows of both sides (`--where`); absent if all count. */
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
  /** Growth beyond its error first, then by size, largest first. */
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
  /** Absent if Tidemark recorded the program itself. */
  imported?: ImportedJson;
  atMs: TimeMs;
  /** The selected rows (`--where`); absent if all count. */
  where?: string;
  /** With `--by`: the grouping key. */
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
    /** Share of liveBytes (or of liveBytesAtPeak if that is 0) that Python's allocators allocated. */
    pythonShare: number;
    /** Of liveBytes, with the 95 % interval, which is wider than two standard errors if there are few samples. */
    standardErrorBytes: Bytes;
    /** Absent for an imported file. */
    interval95Bytes?: Interval;
    /**
     * Highest live bytes of this line alone, in any snapshot or at the program's peak; an imported file's own
     * figure. Absent with `--by`, and if an imported file does not measure it.
     */
    peakBytes?: Bytes;
    /** Bytes that memcpy and memmove copied for this line; absent if they were not counted (`--copies`). */
    copiedBytes?: Bytes;
  }[];
  limits: string[];
}

/** `tidemark.written/1`: what `report` and `export` wrote. */
export interface WrittenJson {
  schema: "tidemark.written/1";
  format: string;
  files: { file: string; bytes: Bytes }[];
}
