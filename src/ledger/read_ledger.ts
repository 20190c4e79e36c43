/**
 * Divides a live process's RSS into parts, in this order, while the process runs:
 *
 *   1 maps, Python's arenas (and, in full, each pool), glibc's heap (in full, each chunk)
 *   2 stack pointers of waiting threads, and stacks by their shape
 *   3 smaps: the sums that everything is scaled to
 *   4 pagemap, for the mappings that are divided
 *
 * Changes between steps 1 and 4 affect the border between used and free memory, never the sum.
 *
 * | failure | outcome |
 * |---|---|
 * | no such process, not permitted | TM-E020, TM-E021 |
 * | no smaps (the kernel's configuration, a sandbox) | TM-E040 |
 * | no Python, no glibc, another allocator | the memory is attributed by mapping names; `limits` reports it |
 * | torn or damaged heap | the readable part; the rest counts as used, `limits` states how much |
 */
import { ArenaPlaces, countPools, findArenas } from "../cpython/interpreter/arenas.js";
import {
  openProcessMemory,
  readInterpreter,
  readSmaps,
  readStackPointers,
  readStatus,
} from "../linux/index.js";
import type { AddressRange } from "../linux/memory/memory.js";
import type { ResidentMapping } from "../linux/memory/smaps.js";
import type { Address, Bytes, Pid } from "../model/base/units.js";
import { processGone } from "../model/errors/errors.js";
import { noResidentFigures } from "../model/errors/ledger_errors.js";
import type { Ledger } from "../model/profile/ledger.js";
import { bundledAllocators } from "../native/bundled_allocators.js";
import { readGlibcHeap } from "../native/glibc_heap.js";
import { GlibcPlace } from "../native/glibc_layout.js";
import { arenaRanges, claimsOf } from "./claims.js";
import { wholePages } from "./divide.js";
import { hasMuchUnknown, limitsOf, mallocFigures, pythonFigures } from "./figures.js";
import { divideAll, type PresentMapping } from "./parts.js";
import { findThreadStacks } from "./thread_stacks.js";

/** Pools whose headers a cheap reading reads: free memory in Python's arenas is then known to about 2 %. */
const SAMPLED_POOLS = 512;

/** Locations of a process's heaps, for the next ledger. */
export class LedgerPlaces {
  readonly arenas = new ArenaPlaces();
  readonly glibc = new GlibcPlace();
}

/** @param places from the process's previous ledger
 * Throws TM-E020 (gone) or TM-E021 (not permitted). */
export function readLedger(pid: Pid, depth: "cheap" | "full", places = new LedgerPlaces()): Ledger {
  const started = performance.now();
  const atMs = Date.now();
  const memory = openProcessMemory(pid);
  try {
    const breakBefore = breakOf(memory.mappings);
    const arenas = findArenas(memory, places.arenas);
    const pools =
      arenas === null
        ? null
        : countPools(memory, arenas, depth === "cheap" ? SAMPLED_POOLS : undefined);
    const heap = readGlibcHeap(
      memory,
      depth,
      arenas === null ? [] : arenaRanges(arenas),
      places.glibc,
    );
    const stacks = findThreadStacks(memory, readStackPointers(pid));
    const mappings = readSmaps(pid);
    const claims = claimsOf(
      { arenas, pools, heap, stacks },
      { before: breakBefore, now: breakOf(mappings ?? []) },
    );
    const status = readStatus(pid);
    if (status === null || !memory.refresh()) {
      throw processGone(pid);
    }
    if (mappings === null || mappings.length === 0) {
      throw noResidentFigures(pid);
    }
    const residentOf = (start: Address, end: Address) => memory.resident(start, end);
    const trimBytes =
      heap === null ? null : wholePages(heap.trimmable.starts, heap.trimmable.ends, residentOf);
    const parts = divideAll(mappings.map(presentMapping), residentOf, claims, trimBytes);
    const bundled = depth === "full" && hasMuchUnknown(parts) ? bundledAllocators(memory) : [];
    const total = (of: (mapping: ResidentMapping) => Bytes) =>
      mappings.reduce((sum, mapping) => sum + of(mapping), 0);
    return {
      pid,
      atMs,
      depth,
      tookMs: Math.round((performance.now() - started) * 10) / 10,
      rssBytes: total(({ rssBytes }) => rssBytes),
      pssBytes: total(({ pssBytes }) => pssBytes),
      ussBytes: total((mapping) => mapping.privateCleanBytes + mapping.privateDirtyBytes),
      swapBytes: total(({ swapBytes }) => swapBytes),
      vmsBytes: status.vmsBytes,
      anonymousHugeBytes: total(({ anonymousHugeBytes }) => anonymousHugeBytes),
      hugetlbBytes: total(({ hugetlbBytes }) => hugetlbBytes),
      parts,
      malloc: heap === null ? null : mallocFigures(heap),
      python: arenas === null ? null : pythonFigures(arenas, depth === "full" ? pools : null),
      // Finding the version requires reading the interpreter's whole file.
      limits: limitsOf(
        mappings,
        arenas === null ? readInterpreter(pid) : null,
        arenas,
        depth === "full" ? pools : null,
        heap,
        bundled,
      ),
    };
  } finally {
    memory.close();
  }
}

/** End of the brk heap; 0: there is none. */
function breakOf(mappings: readonly (AddressRange & { readonly path: string })[]): Address {
  return mappings.find(({ path }) => path === "[heap]")?.end ?? 0;
}

function presentMapping(mapping: ResidentMapping): PresentMapping {
  return {
    ...mapping,
    cleanBytes: mapping.sharedCleanBytes + mapping.privateCleanBytes,
    dirtyBytes: mapping.sharedDirtyBytes + mapping.privateDirtyBytes,
  };
}
