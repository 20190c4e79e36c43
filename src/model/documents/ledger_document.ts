import type { Bytes, Millis, Pid, TimeMs } from "../base/units.js";
import type { LedgerPartName, Reclaim } from "../profile/ledger.js";
import type { TargetJson } from "./documents.js";

export interface LedgerPartJson {
  part: LedgerPartName;
  bytes: Bytes;
  /** Pages unchanged compared with their files, and changed pages; only for parts that are whole mappings. */
  cleanBytes?: Bytes;
  dirtyBytes?: Bytes;
  /** `by`: how to release it; `bytes`: how much, if known. */
  reclaim: { by: Reclaim; bytes?: Bytes };
}

export interface MallocJson {
  arenas: number;
  systemBytes: Bytes;
  freeBytes: Bytes;
  largestFreeBytes: Bytes;
  cacheBytes: Bytes;
  mmappedChunks: number;
  mmappedBytes: Bytes;
}

export interface PymallocJson {
  arenas: number;
  arenaBytes: Bytes;
  freePoolBytes: Bytes;
  usedBlocks: number;
}

/** `tidemark.ledger/1`: the resident memory of a process, by part. */
export interface LedgerJson {
  schema: "tidemark.ledger/1";
  target: TargetJson;
  atMs: TimeMs;
  depth: "cheap" | "full";
  /** Duration of the reading, during which the process runs. */
  paused: boolean;
  tookMs: Millis;
  rssBytes: Bytes;
  pssBytes: Bytes;
  ussBytes: Bytes;
  swapBytes: Bytes;
  vmsBytes: Bytes;
  /** Transparent huge pages, included in RSS; hugetlb pages, not included. */
  anonymousHugeBytes: Bytes;
  hugetlbBytes: Bytes;
  /** In a fixed order; the sum of `bytes` is `rssBytes` exactly. */
  parts: LedgerPartJson[];
  unexplainedBytes: Bytes;
  /** glibc's own account of its heap, resident or not. */
  malloc?: MallocJson;
  /** pymalloc's arenas, resident or not. */
  pymalloc?: PymallocJson;
  /** The limiting control group; absent if none is readable. */
  cgroup?: {
    limitBytes: Bytes | null;
    /** `memory.high`, above which the kernel throttles the group's processes; version 2 only. */
    highBytes?: Bytes | null;
    usageBytes: Bytes;
    pageCacheBytes: Bytes | null;
  };
  /** All descendants, with --children. */
  children: {
    pid: Pid;
    parentPid: Pid;
    command: string[];
    rssBytes: Bytes;
    pssBytes: Bytes;
    privateDirtyBytes: Bytes;
    sharedBytes: Bytes;
  }[];
  /** What could not be observed, and why. */
  limits: string[];
}

/** `tidemark.coreledger/1`: the memory in a core file, by part. It has no RSS, no PSS, no USS. */
export interface CoreLedgerJson {
  schema: "tidemark.coreledger/1";
  /** Its pid is 0 and its command the file's name if the core does not contain them. */
  target: TargetJson;
  file: string;
  /** When the file was written. */
  atMs: TimeMs;
  tookMs: Millis;
  /** Bytes in the file without pages of zeroes; the sum of `parts`. */
  bytes: Bytes;
  /** Bytes in the file; pages of zeroes in it. */
  heldBytes: Bytes;
  zeroBytes: Bytes;
  /** All mapped bytes. */
  vmsBytes: Bytes;
  /** Bytes beyond the end of the file; never written. */
  truncatedBytes: Bytes;
  leftOutBytes: Bytes;
  parts: LedgerPartJson[];
  unexplainedBytes: Bytes;
  malloc?: MallocJson;
  pymalloc?: PymallocJson;
  limits: string[];
}
