/**
 * The ledger: the resident memory of one process (RSS) divided into named parts that add up to it exactly.
 * Filled in by src/ledger from /proc/PID/smaps and the structures of Python's and glibc's allocators.
 */
import type { Bytes, Millis, Pid, TimeMs } from "../base/units.js";

/** The parts in display order:
 * python.used   pymalloc's blocks in use, with the headers of their pools
 * python.free   free blocks and pools in pymalloc's arenas
 * malloc.used   glibc's chunks in use, including chunks with their own mappings (NumPy, PyTorch)
 * malloc.free   freed but retained: bins, fastbins, thread caches, the top of each arena
 * anon.other    other anonymous memory: custom allocators, JIT compilers, mmap
 * file.mapped   mapped data files
 * libraries     the program and its shared objects, code and data
 * stacks        of all threads
 * shm           shared memory: /dev/shm, memfd, System V, MAP_SHARED without a file
 * gpu.driver    mappings of GPU drivers
 * tidemark      our own agent and its segment
 * unexplained   none of these */
export const LEDGER_PARTS = [
  "python.used",
  "python.free",
  "malloc.used",
  "malloc.free",
  "anon.other",
  "file.mapped",
  "libraries",
  "stacks",
  "shm",
  "gpu.driver",
  "tidemark",
  "unexplained",
] as const;
export type LedgerPartName = (typeof LEDGER_PARTS)[number];

/** How a part's memory can be released:
 * malloc-trim    malloc_trim(0) returns the whole free pages
 * gc-collect     only by the program dropping objects; gc.collect() frees unreachable cycles
 * program        only by the program that allocated it
 * close-file     closing the files and their mappings; the kernel also drops clean pages when it needs memory
 * end-threads    when threads end
 * unlink         unlinking the shared memory in every process that has it
 * detach         when Tidemark detaches; its inactive library stays mapped
 * nothing        only at process exit */
export type Reclaim =
  | "malloc-trim"
  | "gc-collect"
  | "program"
  | "close-file"
  | "end-threads"
  | "unlink"
  | "detach"
  | "nothing";

export interface LedgerPart {
  readonly part: LedgerPartName;
  /** Resident. */
  readonly bytes: Bytes;
  /**
   * Pages unchanged compared with their file, and pages changed or without a file; they add up to `bytes` only
   * if the part consists of whole mappings, and are 0 otherwise.
   */
  readonly cleanBytes: Bytes;
  readonly dirtyBytes: Bytes;
  readonly reclaim: Reclaim;
  /** Releasable bytes, if known; otherwise null. */
  readonly reclaimBytes: Bytes | null;
}

/** What the ledger does not cover, or only in part.
 * python-not-found      an interpreter runs, but no pymalloc arenas were found
 * glibc-not-found       no glibc heap was found: another C library or allocator
 * glibc-torn            parts of glibc's heap were not readable as a heap (`bytes` of them)
 * glibc-cut             a cheap reading stopped at its limit
 * mmapped-short         fewer blocks with their own mappings were found than glibc counts (`bytes` are missing)
 * pools-unread          `count` pools of Python were not readable and count as used
 * allocator             another allocator is loaded (`name`); its memory is in anon.other */
export interface LedgerLimit {
  readonly kind:
    | "python-not-found"
    | "glibc-not-found"
    | "glibc-torn"
    | "glibc-cut"
    | "mmapped-short"
    | "pools-unread"
    | "allocator";
  readonly name: string;
  readonly count: number;
  readonly bytes: Bytes;
}

/** glibc's own figures of its heap, including non-resident addresses. */
export interface MallocFigures {
  readonly arenas: number;
  /** From the kernel for arenas; free of it; largest free chunk; in threads' caches (0 in a cheap reading). */
  readonly systemBytes: Bytes;
  readonly freeBytes: Bytes;
  readonly largestFreeBytes: Bytes;
  readonly cacheBytes: Bytes;
  readonly mmappedChunks: number;
  readonly mmappedBytes: Bytes;
}

export interface PythonFigures {
  readonly arenas: number;
  readonly arenaBytes: Bytes;
  /** Bytes of completely free pools. */
  readonly freePoolBytes: Bytes;
  /** Blocks in use; 0 in a cheap reading, which samples the pools. */
  readonly usedBlocks: number;
}

export interface Ledger {
  readonly pid: Pid;
  readonly atMs: TimeMs;
  /** cheap: a sample of the pools, and bins' figures; full: every pool and chunk. */
  readonly depth: "cheap" | "full";
  /** Duration of the reading, during which the process ran. */
  readonly tookMs: Millis;
  readonly rssBytes: Bytes;
  readonly pssBytes: Bytes;
  /** Private pages, which would be released if it ended. */
  readonly ussBytes: Bytes;
  readonly swapBytes: Bytes;
  readonly vmsBytes: Bytes;
  /** Transparent huge pages, a part of RSS; hugetlb pages, which are not included. */
  readonly anonymousHugeBytes: Bytes;
  readonly hugetlbBytes: Bytes;
  /** All of {@link LEDGER_PARTS} in their order; the sum of `bytes` is `rssBytes`. */
  readonly parts: readonly LedgerPart[];
  readonly malloc: MallocFigures | null;
  readonly python: PythonFigures | null;
  readonly limits: readonly LedgerLimit[];
}

/** The same parts for the contents of a core file: see src/ledger/core_ledger.ts. */
export interface CoreLedger {
  /** Pid of the process; 0 if the core does not contain it. */
  readonly pid: Pid;
  /** "" if there is none, or its data is missing. */
  readonly python: string;
  /** When the file was written. */
  readonly atMs: TimeMs;
  readonly tookMs: Millis;
  /**
   * Memory in the file; pages of zeroes in it, which usually were never touched; `bytes` is the rest, the sum
   * of `parts`.
   */
  readonly heldBytes: Bytes;
  readonly zeroBytes: Bytes;
  readonly bytes: Bytes;
  /** All that was mapped. */
  readonly vmsBytes: Bytes;
  /** Behind the file's end; never written to it. */
  readonly truncatedBytes: Bytes;
  readonly leftOutBytes: Bytes;
  readonly parts: readonly LedgerPart[];
  readonly malloc: MallocFigures | null;
  readonly pymalloc: PythonFigures | null;
  readonly limits: readonly LedgerLimit[];
}
