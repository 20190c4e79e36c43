/**
 * The ledger: the resident memory of one process (RSS) divided into named parts that add up to it exactly.
 * Filled in by src/ledger from /proc/PID/smaps and the structures of Python's and glibc's allocators.
 */
import type { Bytes, Millis, Pid, TimeMs } from "../base/units.js";

/** The parts in the order in which they are shown:
 * python.used   pymalloc's blocks in use, with the headers of their pools
 * python.free   its free blocks and pools, in arenas that it keeps
 * malloc.used   glibc's chunks in use, the ones with mappings of their own (NumPy, PyTorch) among them
 * malloc.free   freed and kept: bins, fastbins, threads' caches, the top of each arena
 * anon.other    anonymous memory of others: allocators of their own, JIT compilers, mmap
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

/** What gives a part's memory back:
 * malloc-trim    malloc_trim(0) returns the whole free pages
 * gc-collect     only the program's letting go of objects; gc.collect() frees unreachable cycles
 * program        only the program that took it
 * close-file     closing the files and their mappings; clean pages also go when the kernel needs them
 * end-threads    threads that end
 * unlink         unlinking the shared memory in every process that has it
 * detach         tidemark detach
 * nothing        the process's end */
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
  /** Of these, unchanged against their file, and changed or without one; they add up to `bytes` only where
   * the part holds whole mappings, and are 0 elsewhere. */
  readonly cleanBytes: Bytes;
  readonly dirtyBytes: Bytes;
  readonly reclaim: Reclaim;
  /** What it would give back, as far as that can be told; else null. */
  readonly reclaimBytes: Bytes | null;
}

/** What the ledger could not see, or saw only in part.
 * python-not-found      an interpreter runs and no arenas of pymalloc were found
 * glibc-not-found       no heap of glibc was found: another C library or another allocator
 * glibc-torn            parts of glibc's heap could not be read as such (`bytes` of them)
 * glibc-cut             a cheap look stopped at its bound
 * mmapped-short         fewer blocks with own mappings were found than glibc counts (`bytes` are missing)
 * pools-unread          `count` pools of Python were not readable and count as used
 * allocator             another allocator is loaded (`name`); what it holds is in anon.other */
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

/** glibc's heap as it counts itself; addresses that are not resident are among them. */
export interface MallocFigures {
  readonly arenas: number;
  /** From the kernel for arenas; free of it; largest free chunk; in threads' caches (0 in a cheap look). */
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
  /** Of pools that are wholly free. */
  readonly freePoolBytes: Bytes;
  /** Blocks in use; 0 in a cheap look, which does not read the pools. */
  readonly usedBlocks: number;
}

export interface Ledger {
  readonly pid: Pid;
  readonly atMs: TimeMs;
  /** cheap: arenas' and bins' figures; full: every pool and chunk. */
  readonly depth: "cheap" | "full";
  /** How long the reading took; the process ran meanwhile. */
  readonly tookMs: Millis;
  readonly rssBytes: Bytes;
  readonly pssBytes: Bytes;
  /** Private pages: what would come back if it ended. */
  readonly ussBytes: Bytes;
  readonly swapBytes: Bytes;
  readonly vmsBytes: Bytes;
  /** Transparent huge pages, a part of RSS; hugetlb pages, which stand beside it. */
  readonly anonymousHugeBytes: Bytes;
  readonly hugetlbBytes: Bytes;
  /** All of {@link LEDGER_PARTS} in their order; the sum of `bytes` is `rssBytes`. */
  readonly parts: readonly LedgerPart[];
  readonly malloc: MallocFigures | null;
  readonly python: PythonFigures | null;
  readonly limits: readonly LedgerLimit[];
}

/** The same parts of a core file, of what it holds: see src/ledger/core_ledger.ts. */
export interface CoreLedger {
  /** Of the process that left it; 0 where the core does not say. */
  readonly pid: Pid;
  /** "" where there is none, or its data are missing. */
  readonly python: string;
  /** When the file was written. */
  readonly atMs: TimeMs;
  readonly tookMs: Millis;
  /** Memory in the file; pages of zeroes in it, which were never touched as a rule; `bytes` is the rest,
   * which `parts` add up to. */
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
