/** The documents of `tidemark gpu`. Bytes are exact unless a field says otherwise. */

import type { Bytes, TimeMs } from "../../base/units.js";
import type { DiagnosisJson } from "../diagnosis_document.js";
import type { FrameJson } from "../documents.js";

/** What an allocation is for. `sure` where a frame names it, else it is told from place and lifetime. */
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
  /** In blocks that the program holds, with their rounding. */
  allocatedBytes: Bytes;
  /** The same and what waits for other streams. */
  activeBytes: Bytes;
  /** What was asked for by the active blocks. */
  requestedBytes: Bytes;
}

export interface GpuFragmentationJson {
  /** "0,0" is the common pool, others are private (CUDA graphs); "" where the version does not say. */
  pool: string;
  stream: number;
  /** "large" or "small", as the allocator keeps them apart. */
  type: string;
  expandable: boolean;
  segments: number;
  reservedBytes: Bytes;
  freeBytes: Bytes;
  /** Free within segments that are in use: it cannot go back to the driver. */
  splitBytes: Bytes;
  /** The largest request that could be served without new memory. */
  largestFreeBytes: Bytes;
  /** 1 - largestFreeBytes / freeBytes; 0 where nothing is free. */
  ratio: number;
}

export interface GpuOutOfMemoryJson {
  eventIndex: number;
  /** Microseconds since 1970; 0 where the version does not say. */
  timeUs: number;
  /** Rounded as the allocator asked the driver for it. */
  requestedBytes: Bytes;
  deviceFreeBytes: Bytes;
  stack: FrameJson[];
  reservedBytes: Bytes;
  liveBytes: Bytes;
  /** Free in segments just before, on the same stream in the common pool; at most. */
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
  /** -1: no device, but the memory of the host that PyTorch pins for copies. */
  device: number;
  segments: number;
  events: number;
  /** The trace begins with an empty allocator: nothing of its past is missing. */
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
  /** The trace in at most 120 parts: of each the highest of both. */
  timeline: { eventIndex: number; requestedBytes: Bytes; reservedBytes: Bytes }[];
  /** The highest `reservedBytes` of the trace. */
  highestReservedBytes: Bytes;
  /** requestedBytes + roundingBytes + splitBytes + cachedBytes = reservedBytes, at the end. */
  waste: { roundingBytes: Bytes; splitBytes: Bytes; cachedBytes: Bytes };
  largestFreeBytes: Bytes;
  fragmentation: GpuFragmentationJson[];
  outOfMemory: GpuOutOfMemoryJson[];
  /** Times that cached segments went back to the driver; before a new one or an error it was a retry. */
  cacheReleases: { count: number; beforeRequest: number };
  /** What lives at the end. */
  sites: GpuSiteJson[];
  /** How steps were seen: "annotations", "optimizer", "pattern", or "" where they were not. */
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
  /** What `tidemark diagnose` says of it. */
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

/** `tidemark.gpu_diff/1`: what lives at the end of two snapshots, all devices together. */
export interface GpuDiffJson {
  schema: "tidemark.gpu_diff/1";
  a: { file: string; end: GpuTotalsJson; peakRequestedBytes: Bytes };
  b: { file: string; end: GpuTotalsJson; peakRequestedBytes: Bytes };
  sites: GpuDiffSiteJson[];
  limits: string[];
}

/** `tidemark.gpu_ranks/1`: one row a device of each file. */
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
    /** One sentence; "" where it is like the others. */
    why: string;
  }[];
  limits: string[];
}

export interface OomEventJson {
  /** Of the log, from 1: where the message begins. */
  line: number;
  /** "other": `library` says who, as far as the text tells. */
  framework: "pytorch" | "jax" | "tensorflow" | "other";
  /** Which library said so, where it is not the framework itself: "NCCL", "vLLM", "llama.cpp"; else "". */
  library: string;
  /**
   * What ran out, and what `totalBytes` and `freeBytes` are of: the device, the framework's pool on it, memory of
   * the host, or a kernel's scratch memory (TPU).
   */
  memory: "device" | "pool" | "host" | "scratch";
  rank: number | null;
  /** What the log puts before the lines of whoever wrote it ("pod/trainer-worker-3/pytorch"); "" nothing but times. */
  writer: string;
  device: number | null;
  /**
   * genuine: more is needed than there is. fragmentation: enough is free, in pieces. contention: other
   * processes hold what was missing. context: this process holds it outside of the framework's allocator.
   */
  kind: "genuine" | "fragmentation" | "contention" | "context" | "unknown";
  /** The arithmetic, in one sentence. */
  because: string;
  /** null: the message does not say. Figures of a text are rounded as it prints them. */
  requestedBytes: Bytes | null;
  totalBytes: Bytes | null;
  freeBytes: Bytes | null;
  allocatedBytes: Bytes | null;
  reservedUnallocatedBytes: Bytes | null;
  /** All that this process holds on the device. */
  processBytes: Bytes | null;
  otherProcesses: { pid: number; bytes: Bytes }[];
  privatePoolBytes: Bytes | null;
  /** The share that the program set for itself. */
  allowedBytes: Bytes | null;
  /** The versions that write such a message, as in "2.2 to 2.4"; "" for other frameworks. */
  torch: string;
  /** The traceback before it, leaf first. */
  stack: FrameJson[];
  /** How often the log repeats the very same message. */
  repeats: number;
  advice: GpuAdviceJson[];
  /** With --snapshot: what the snapshot says to it; "" where it has no such event. */
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
  /** null: the driver keeps it back. */
  deviceBytes: Bytes | null;
  /** 0: another container's process. */
  rssBytes: Bytes;
  /** Which of `instances` it stands on. */
  instance?: number;
  /** What its own allocator says, by the recording that grows with it. */
  allocator?: { reservedBytes: Bytes; allocatedBytes: Bytes; atMs: TimeMs; recording: string };
  /** `deviceBytes` less what its allocator reserved: CUDA context, NCCL and other libraries. */
  outsideBytes?: Bytes;
}

/** `tidemark.gpu_top/1`: one look at the devices of this host. */
export interface GpuTopJson {
  schema: "tidemark.gpu_top/1";
  atMs: number;
  devices: {
    index: number;
    name: string;
    totalBytes: Bytes;
    usedBytes: Bytes;
    /** 0 to 1; null where the driver keeps it back. */
    utilisation: number | null;
    mig: boolean;
    /** The parts of a device that was divided (MIG). */
    instances?: {
      index: number;
      gpuInstance: number;
      computeInstance: number;
      totalBytes: Bytes;
      usedBytes: Bytes;
    }[];
    processes: GpuTopProcessJson[];
    /** Used by nobody that the driver lists: its own share, and processes of other containers. */
    unlistedBytes: Bytes;
  }[];
  limits: string[];
}
