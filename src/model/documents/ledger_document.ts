import type { Bytes, Millis, Pid, TimeMs } from "../base/units.js";
import type { LedgerPartName, Reclaim } from "../profile/ledger.js";
import type { TargetJson } from "./documents.js";

export interface LedgerPartJson {
  part: LedgerPartName;
  bytes: Bytes;
  /** Unchanged against their files, and changed; only of parts that are whole mappings. */
  cleanBytes?: Bytes;
  dirtyBytes?: Bytes;
  /** `by`: what gives it back; `bytes` how much, where that can be told. */
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
  /** The process runs while it is read. */
  paused: boolean;
  tookMs: Millis;
  rssBytes: Bytes;
  pssBytes: Bytes;
  ussBytes: Bytes;
  swapBytes: Bytes;
  vmsBytes: Bytes;
  /** Transparent huge pages, a part of RSS; hugetlb pages, beside it. */
  anonymousHugeBytes: Bytes;
  hugetlbBytes: Bytes;
  /** In a fixed order; the sum of `bytes` is `rssBytes` exactly. */
  parts: LedgerPartJson[];
  unexplainedBytes: Bytes;
  /** glibc's own account of its heap, resident or not. */
  malloc?: MallocJson;
  /** pymalloc's arenas, resident or not. */
  pymalloc?: PymallocJson;
  /** The control group that limits; absent where there is none to be read. */
  cgroup?: { limitBytes: Bytes | null; usageBytes: Bytes; pageCacheBytes: Bytes | null };
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
  /** What could not be seen, and why. */
  limits: string[];
}

/** `tidemark.coreledger/1`: the memory in a core file, by part. It has no RSS, no PSS, no USS. */
export interface CoreLedgerJson {
  schema: "tidemark.coreledger/1";
  /** Its pid is 0 and its command the file's name where the core does not tell them. */
  target: TargetJson;
  file: string;
  /** When the file was written. */
  atMs: TimeMs;
  tookMs: Millis;
  /** What the file holds without its pages of zeroes: `parts` add up to it. */
  bytes: Bytes;
  /** What it holds; pages of zeroes in it. */
  heldBytes: Bytes;
  zeroBytes: Bytes;
  /** All that was mapped. */
  vmsBytes: Bytes;
  /** Behind the file's end; never written to it. */
  truncatedBytes: Bytes;
  leftOutBytes: Bytes;
  parts: LedgerPartJson[];
  unexplainedBytes: Bytes;
  malloc?: MallocJson;
  pymalloc?: PymallocJson;
  limits: string[];
}
