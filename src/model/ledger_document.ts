import type { TargetJson } from "./documents.js";
import type { LedgerPartName, Reclaim } from "./ledger.js";
import type { Bytes, Millis, Pid, TimeMs } from "./units.js";

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
  parts: {
    part: LedgerPartName;
    bytes: Bytes;
    /** Unchanged against their files, and changed; only of parts that are whole mappings. */
    cleanBytes?: Bytes;
    dirtyBytes?: Bytes;
    /** `by`: what gives it back; `bytes` how much, where that can be told. */
    reclaim: { by: Reclaim; bytes?: Bytes };
  }[];
  unexplainedBytes: Bytes;
  /** glibc's own account of its heap, resident or not. */
  malloc?: {
    arenas: number;
    systemBytes: Bytes;
    freeBytes: Bytes;
    largestFreeBytes: Bytes;
    cacheBytes: Bytes;
    mmappedChunks: number;
    mmappedBytes: Bytes;
  };
  /** pymalloc's arenas, resident or not. */
  pymalloc?: { arenas: number; arenaBytes: Bytes; freePoolBytes: Bytes; usedBlocks: number };
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
