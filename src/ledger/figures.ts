/** The allocators' own figures, and what could not be read. */
import type { PoolCounts, PythonArenas } from "../cpython/interpreter/arenas.js";
import type { Mapping } from "../linux/memory/memory.js";
import type {
  LedgerLimit,
  LedgerPart,
  MallocFigures,
  PythonFigures,
} from "../model/profile/ledger.js";
import type { BundledAllocator } from "../native/bundled_allocators.js";
import { foreignAllocators } from "../native/foreign_allocators.js";
import type { GlibcHeap } from "../native/glibc_heap.js";

/** With less, the program's libraries are not searched. */
const MUCH_UNKNOWN_BYTES = 16 << 20;

/** Whether so much memory is unattributed that an allocator inside a library may own it. */
export function hasMuchUnknown(parts: readonly LedgerPart[]): boolean {
  return parts.some(({ part, bytes }) => part === "anon.other" && bytes >= MUCH_UNKNOWN_BYTES);
}

export function mallocFigures(heap: GlibcHeap): MallocFigures {
  const sum = (of: (arena: GlibcHeap["arenas"][number]) => number) =>
    heap.arenas.reduce((total, arena) => total + of(arena), 0);
  return {
    arenas: heap.arenas.length,
    systemBytes: sum(({ systemBytes }) => systemBytes),
    freeBytes: sum(({ freeBytes, fastbinBytes }) => freeBytes + fastbinBytes),
    largestFreeBytes: Math.max(0, ...heap.arenas.map((arena) => arena.largestFreeBytes)),
    cacheBytes: heap.cacheBytes,
    mmappedChunks: heap.mmapped.ranges.length,
    mmappedBytes: heap.mmapped.bytes,
  };
}

export function pythonFigures(arenas: PythonArenas, pools: PoolCounts | null): PythonFigures {
  return {
    arenas: arenas.addresses.length,
    arenaBytes: arenas.addresses.length * arenas.arenaBytes,
    freePoolBytes: arenas.freePools.reduce((sum, count) => sum + count, 0) * arenas.poolBytes,
    usedBlocks: pools?.usedBlocks.reduce((sum, blocks) => sum + blocks, 0) ?? 0,
  };
}

export function limitsOf(
  mappings: readonly Mapping[],
  interpreter: { readonly freeThreaded: boolean } | null,
  arenas: PythonArenas | null,
  pools: PoolCounts | null,
  heap: GlibcHeap | null,
  bundled: readonly BundledAllocator[],
): LedgerLimit[] {
  const limits: LedgerLimit[] = [];
  const add = (kind: LedgerLimit["kind"], figures: Partial<LedgerLimit> = {}) =>
    limits.push({ kind, name: "", count: 0, bytes: 0, ...figures });
  if (interpreter !== null && arenas === null) {
    add("python-not-found", { name: interpreter.freeThreaded ? "free-threaded" : "" });
  }
  if (pools !== null && pools.unread > 0) {
    add("pools-unread", { count: pools.unread });
  }
  const others = foreignAllocators(mappings);
  for (const name of others) {
    add("allocator", { name });
  }
  for (const { allocator, library } of bundled) {
    add("allocator", { name: `${allocator} in ${library}` });
  }
  if (heap === null) {
    if (others.length === 0) {
      add("glibc-not-found");
    }
    return limits;
  }
  const { problems, mmapped, mmappedByAccount } = heap;
  if (["arenas", "regions", "lists", "chunks"].some((problem) => problems.has(problem as never))) {
    add("glibc-torn", { bytes: heap.arenas.reduce((sum, arena) => sum + arena.unreadBytes, 0) });
  }
  if (problems.has("bins-cut") || problems.has("mmapped-cut")) {
    add("glibc-cut");
  }
  if (problems.has("mmapped") && mmappedByAccount !== null) {
    add("mmapped-short", {
      count: mmappedByAccount.chunks - mmapped.ranges.length,
      bytes: Math.max(0, mmappedByAccount.bytes - mmapped.bytes),
    });
  }
  return limits;
}
