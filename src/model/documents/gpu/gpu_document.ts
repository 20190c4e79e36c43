/** The documents of `tidemark gpu`. Bytes are exact unless a field says otherwise. */

import type { Bytes, TimeMs } from "../../base/units.js";
import type { DiagnosisJson } from "../diagnosis_document.js";
import type { FrameJson } from "../documents.js";

/** The purpose of an allocation. `sure` if a frame names it; otherwise it is inferred from its phase and lifetime. */
export type GpuCategory =
  | "parameters"
  | "gradients"
  | "optimizer state"
  | "activations"
  | "kv cache"
  | "temporaries"
  | "workspace"
  | "communication"
  | "unknown";

export interface GpuSiteJson {
  /** Leaf first; without the allocator's own frames and those of the interpreter. */
  stack: FrameJson[];
  bytes: Bytes;
  allocations: number;
  category: GpuCategory;
  sure: boolean;
}

export interface GpuTotalsJson {
  reservedBytes: Bytes;
  /** Bytes in blocks that the program holds, including rounding. */
  allocatedBytes: Bytes;
  /** The same, plus blocks that wait for other streams. */
  activeBytes: Bytes;
  /** Requested bytes of the active blocks. */
  requestedBytes: Bytes;
}

export interface GpuFragmentationJson {
  /** "0,0" is the common pool, others are private (CUDA graphs); "" if the version does not record it. */
  pool: string;
  stream: number;
  /** "large" or "small", the allocator's two kinds. */
  type: string;
  expandable: boolean;
  segments: number;
  reservedBytes: Bytes;
  freeBytes: Bytes;
  /** Free inside segments in use; cannot be returned to the driver. */
  splitBytes: Bytes;
  /** The largest request that could be served without new memory. */
  largestFreeBytes: Bytes;
  /** 1 - largestFreeBytes / freeBytes; 0 if nothing is free. */
  ratio: number;
}

export interface GpuOutOfMemoryJson {
  eventIndex: number;
  /** Microseconds since 1970; 0 if the version does not record it. */
  timeUs: number;
  /** Rounded to the size that the allocator requested from the driver. */
  requestedBytes: Bytes;
  deviceFreeBytes: Bytes;
  stack: FrameJson[];
  reservedBytes: Bytes;
  liveBytes: Bytes;
  /** Upper bound of the free memory in segments just before, on the same stream in the common pool. */
  freeInSegmentsBytes: Bytes;
  largestFreeBytes: Bytes;
  kind: "genuine" | "fragmentation" | "unknown";
}

export interface GpuGrowthJson extends GpuSiteJson {
  bytesPerStep: Bytes;
  steps: number;
  startBytes: Bytes;
}

export interface GpuAdviceJson {
  /** "TM-A101". */
  id: string;
  text: string;
}

export interface GpuDeviceJson {
  /** -1: not a device, but the host memory that PyTorch pins for copies. */
  device: number;
  segments: number;
  events: number;
  /** Whether the trace begins with an empty allocator, so that nothing is missing. */
  complete: boolean;
  end: GpuTotalsJson;
  peak: {
    requestedBytes: Bytes;
    reservedBytes: Bytes;
    /** Events before the peak; `events` is the end. */
    eventIndex: number;
    timeUs: number;
    sites: GpuSiteJson[];
  };
  /** The trace in at most 120 parts, with the maxima of each part. */
  timeline: { eventIndex: number; requestedBytes: Bytes; reservedBytes: Bytes }[];
  /** The highest `reservedBytes` of the trace. */
  highestReservedBytes: Bytes;
  /** requestedBytes + roundingBytes + splitBytes + cachedBytes = reservedBytes, at the end. */
  waste: { roundingBytes: Bytes; splitBytes: Bytes; cachedBytes: Bytes };
  largestFreeBytes: Bytes;
  fragmentation: GpuFragmentationJson[];
  outOfMemory: GpuOutOfMemoryJson[];
  /**
   * Number of times that cached segments were returned to the driver; before a new segment or an error it was a
   * retry.
   */
  cacheReleases: { count: number; beforeRequest: number };
  /** Live allocations at the end. */
  sites: GpuSiteJson[];
  /** How steps were detected: "annotations", "optimizer", "pattern", or "" if they were not. */
  stepsFrom: string;
  growth: GpuGrowthJson[];
  disagreements: {
    count: number;
    first: { eventIndex: number; address: string; detail: string }[];
  };
}

/** `tidemark.gpu/1` */
export interface GpuJson {
  schema: "tidemark.gpu/1";
  file: string;
  devices: GpuDeviceJson[];
  /** The verdict of `tidemark diagnose`. */
  verdict?: DiagnosisJson["verdict"];
  advice: GpuAdviceJson[];
  limits: string[];
}

export interface GpuDiffSiteJson {
  stack: FrameJson[];
  category: GpuCategory;
  bytesA: Bytes;
  bytesB: Bytes;
  growthBytes: Bytes;
  change: "appeared" | "grew" | "shrank" | "went" | "same";
}

/** `tidemark.gpu_diff/1`: live allocations at the end of two snapshots, all devices together. */
export interface GpuDiffJson {
  schema: "tidemark.gpu_diff/1";
  a: { file: string; end: GpuTotalsJson; peakRequestedBytes: Bytes };
  b: { file: string; end: GpuTotalsJson; peakRequestedBytes: Bytes };
  sites: GpuDiffSiteJson[];
  limits: string[];
}

/** `tidemark.gpu_ranks/1`: one row per device of each file. */
export interface GpuRanksJson {
  schema: "tidemark.gpu_ranks/1";
  ranks: {
    file: string;
    device: number;
    end: GpuTotalsJson;
    peakRequestedBytes: Bytes;
    highestReservedBytes: Bytes;
    outOfMemory: number;
    odd: boolean;
    /** One sentence; "" if it is like the others. */
    why: string;
  }[];
  limits: string[];
}

export interface OomEventJson {
  /** Line of the log at which the message begins, from 1. */
  line: number;
  /** "other": `library` names the source, if the text shows it. */
  framework: "pytorch" | "jax" | "tensorflow" | "other";
  /** The library that wrote the message, if not the framework itself: "NCCL", "vLLM", "llama.cpp"; otherwise "". */
  library: string;
  /**
   * The memory that ran out, which `totalBytes` and `freeBytes` refer to: the device, the framework's pool on
   * it, host memory, or a kernel's scratch memory (TPU).
   */
  memory: "device" | "pool" | "host" | "scratch";
  rank: number | null;
  /** The prefix of the writer's lines in the log ("pod/trainer-worker-3/pytorch"); "" if there are only times. */
  writer: string;
  device: number | null;
  /**
   * genuine: more is needed than exists. fragmentation: enough is free, but in pieces. contention: other
   * processes hold the missing memory. context: this process holds it outside the framework's allocator.
   */
  kind: "genuine" | "fragmentation" | "contention" | "context" | "unknown";
  /** The arithmetic, in one sentence. */
  because: string;
  /** null: not in the message. Figures have the precision of the message. */
  requestedBytes: Bytes | null;
  totalBytes: Bytes | null;
  freeBytes: Bytes | null;
  allocatedBytes: Bytes | null;
  reservedUnallocatedBytes: Bytes | null;
  /** Everything that this process holds on the device. */
  processBytes: Bytes | null;
  otherProcesses: { pid: number; bytes: Bytes }[];
  privatePoolBytes: Bytes | null;
  /** The limit that the program set for itself. */
  allowedBytes: Bytes | null;
  /** The versions that write such a message, such as "2.2 to 2.4"; "" for other frameworks. */
  torch: string;
  /** The traceback before it, leaf first. */
  stack: FrameJson[];
  /** How often the log repeats the same message. */
  repeats: number;
  advice: GpuAdviceJson[];
  /** With --snapshot: the comparison with the snapshot; "" if it has no such event. */
  snapshot?: string;
}

/** `tidemark.oom/1` */
export interface OomJson {
  schema: "tidemark.oom/1";
  file: string;
  lines: number;
  events: OomEventJson[];
  limits: string[];
}

export interface GpuTopProcessJson {
  pid: number;
  command: string[];
  /** null: not reported by the driver. */
  deviceBytes: Bytes | null;
  /** 0: a process in another container. */
  rssBytes: Bytes;
  /** Index of its device in `instances`. */
  instance?: number;
  /** Figures of its own allocator, from the recording in progress. */
  allocator?: { reservedBytes: Bytes; allocatedBytes: Bytes; atMs: TimeMs; recording: string };
  /** `deviceBytes` minus the memory reserved by its allocator: CUDA context, NCCL and other libraries. */
  outsideBytes?: Bytes;
}

/** `tidemark.gpu_top/1`: one reading of the devices of this host. */
export interface GpuTopJson {
  schema: "tidemark.gpu_top/1";
  atMs: number;
  devices: {
    index: number;
    name: string;
    totalBytes: Bytes;
    usedBytes: Bytes;
    /** 0 to 1; null if the driver does not report it. */
    utilisation: number | null;
    mig: boolean;
    /** The MIG instances of a device. */
    instances?: {
      index: number;
      gpuInstance: number;
      computeInstance: number;
      totalBytes: Bytes;
      usedBytes: Bytes;
    }[];
    processes: GpuTopProcessJson[];
    /** Used by no listed process: the driver's own share, and processes in other containers. */
    unlistedBytes: Bytes;
  }[];
  limits: string[];
}
