/**
 * Reads a program's glibc heap from outside: memory in use, and memory that is free but retained.
 *
 *   libc's data --> main_arena, mp_ (glibc_layout)
 *       arenas  --> regions of chunks (glibc_heaps)
 *           full:  each region chunk by chunk (glibc_walk), then fastbins and threads' caches
 *           cheap: the bins' lists alone, up to a bound (glibc_lists)
 *       mp_     --> blocks with mappings of their own (glibc_mmapped)
 *
 * With another C library, or if libc's data is swapped out, the result is null. Torn or damaged parts are left
 * out, counted in `unreadBytes` and named in `problems`. Every walk and list is bounded.
 */

import type { AddressRange, Memory } from "../linux/memory/memory.js";
import { ResidentWords } from "../linux/memory/resident_words.js";
import { float64At } from "../model/base/columns.js";
import type { Address, Bytes } from "../model/base/units.js";
import { type HeapRegion, regionsOf } from "./glibc_heaps.js";
import { type ArenaState, findGlibcState, GlibcPlace, type GlibcState } from "./glibc_layout.js";
import { CACHE_SIZES, readBins, readCaches, readFastbins } from "./glibc_lists.js";
import { findMmappedChunks, type MmappedChunks } from "./glibc_mmapped.js";
import { ChunkPieces, walkRegion } from "./glibc_walk.js";
import { RangeColumns } from "./range_columns.js";

/**
 * "arenas": the circular list of arenas is broken; "regions": memory of an arena was not found; "lists": a list
 * of free chunks is broken; "chunks": parts of a region could not be walked; "bins-cut", "mmapped-cut": a cheap
 * reading reached its limit; "mmapped": fewer blocks with their own mappings were found than mp_ counts.
 */
type GlibcProblem =
  | "arenas"
  | "regions"
  | "lists"
  | "chunks"
  | "bins-cut"
  | "mmapped-cut"
  | "mmapped";

interface GlibcArena {
  readonly address: Address;
  readonly main: boolean;
  readonly regions: readonly HeapRegion[];
  /** Bytes from the kernel, according to the arena. */
  readonly systemBytes: Bytes;
  /** Bytes in the bins and the top chunk: `mallinfo2().fordblks` minus the fastbins. */
  readonly freeBytes: Bytes;
  readonly topBytes: Bytes;
  readonly fastbinBytes: Bytes;
  readonly largestFreeBytes: Bytes;
  /** Chunks in use, including those in thread caches and fastbins. Only for a full reading, otherwise 0. */
  readonly usedChunks: number;
  readonly unreadBytes: Bytes;
}

export interface GlibcHeap {
  readonly depth: "cheap" | "full";
  readonly arenas: readonly GlibcArena[];
  /** Free memory by address (bins, top, fastbins, thread caches), ascending and without overlaps. */
  readonly free: RangeColumns;
  /** Free chunks of the bins and the main arena's top, which malloc_trim(0) can return. */
  readonly trimmable: RangeColumns;
  /** Bytes in thread caches, which glibc counts as used. Only for a full reading, otherwise 0. */
  readonly cacheBytes: Bytes;
  readonly mmapped: MmappedChunks;
  /** Their totals according to mp_; null if mp_ was not found. */
  readonly mmappedByAccount: { readonly chunks: number; readonly bytes: Bytes } | null;
  readonly problems: ReadonlySet<GlibcProblem>;
}

/** Limits of a cheap reading, about 50 ms at most. */
const CHEAP_CHUNKS = 20_000;
const CHEAP_PAGES = 20_000;
const CHEAP_SPACE = 2 ** 34;
/** 256 GiB of resident memory; twice that of address space. */
const FULL_PAGES = 2 ** 26;
const FULL_SPACE = 2 ** 39;
const ALL = Number.POSITIVE_INFINITY;
/**
 * A running program may be read in the middle of a change. For a program that grows and shrinks its heap at
 * every step, this happens in one of four attempts.
 */
const TRIES = 12;
/**
 * For a cheap reading: the program keeps running, and threads that free a lot change lists faster than they are
 * read.
 */
const CHEAP_LOOKS = 5;
const TORN: readonly GlibcProblem[] = ["arenas", "regions", "lists"];

/**
 * @param known ranges with other contents, ascending (Python's arenas), which are not searched for blocks
 * @param place where the process's main arena was found earlier
 * @returns null if there is no glibc heap that can be read
 */
export function readGlibcHeap(
  memory: Memory,
  depth: "cheap" | "full",
  known: readonly AddressRange[],
  place = new GlibcPlace(),
): GlibcHeap | null {
  let best = readHeapOnce(memory, depth, known, place);
  for (let reading = 1; depth === "cheap" && reading < CHEAP_LOOKS && isTorn(best); reading++) {
    memory.refresh();
    const next = readHeapOnce(memory, depth, known, place);
    // Only free memory can be missed, never memory in use.
    if (next !== null && (!isTorn(next) || freeIn(next) > freeIn(best))) {
      best = next;
    }
  }
  return best;
}

function isTorn(heap: GlibcHeap | null): heap is GlibcHeap {
  return heap !== null && TORN.some((problem) => heap.problems.has(problem));
}

function freeIn({ arenas }: GlibcHeap): Bytes {
  return arenas.reduce((sum, { freeBytes }) => sum + freeBytes, 0);
}

function readHeapOnce(
  memory: Memory,
  depth: "cheap" | "full",
  known: readonly AddressRange[],
  place: GlibcPlace,
): GlibcHeap | null {
  const words = new ResidentWords(memory);
  let state = findGlibcState(memory, words, place);
  for (let again = 1; state === null && again < TRIES; again++) {
    // The heap may have grown beyond the mappings that were last read.
    memory.refresh();
    words.forget();
    state = findGlibcState(memory, words, place);
  }
  if (state === null) {
    return null;
  }
  const problems = new Set<GlibcProblem>(state.arenasTorn ? ["arenas"] : []);
  const reading: HeapReading = {
    memory,
    words,
    state,
    depth,
    problems,
    free: new RangeColumns(),
    trimmable: new RangeColumns(),
    candidates: [],
    pieces: new ChunkPieces(memory),
  };
  const arenas = state.arenas.map((arena) => readArena(reading, arena));
  // The words read so far are older than the walk; caches change fastest.
  const caches = readCaches(new ResidentWords(memory), reading.candidates);
  append(reading.free, caches.free);
  const mmapped = readMmapped(reading, arenas, known);
  return {
    depth,
    arenas,
    free: reading.free.sorted(),
    trimmable: reading.trimmable.sorted(),
    cacheBytes: caches.bytes,
    mmapped,
    mmappedByAccount:
      state.parameters === null
        ? null
        : { chunks: state.parameters.mmappedChunks, bytes: state.parameters.mmappedBytes },
    problems,
  };
}

interface HeapReading {
  readonly memory: Memory;
  readonly words: ResidentWords;
  readonly state: GlibcState;
  readonly depth: "cheap" | "full";
  readonly problems: Set<GlibcProblem>;
  readonly free: RangeColumns;
  readonly trimmable: RangeColumns;
  readonly candidates: Address[];
  readonly pieces: ChunkPieces;
}

function readArena(reading: HeapReading, arena: ArenaState): GlibcArena {
  const { memory, words, state, problems, free, trimmable } = reading;
  const { regions, torn } = regionsOf(memory, words, arena, state);
  if (torn) {
    problems.add("regions");
  }
  const inUse = regions.length > 0;
  const fastbins = inUse
    ? readFastbins(words, arena)
    : { free: new RangeColumns(), bytes: 0, torn: false };
  const chunks =
    reading.depth === "full" ? walkRegions(reading, regions) : listBins(reading, arena);
  if (fastbins.torn) {
    problems.add("lists");
  }
  const topBytes = (regions.find(({ top }) => top === arena.top)?.end ?? arena.top) - arena.top;
  append(free, chunks.free);
  append(trimmable, chunks.free);
  append(free, fastbins.free);
  if (topBytes > 0) {
    free.push(arena.top, arena.top + topBytes);
    if (arena.main) {
      trimmable.push(arena.top, arena.top + topBytes);
    }
  }
  return {
    address: arena.start,
    main: arena.main,
    regions,
    systemBytes: arena.systemBytes,
    freeBytes: chunks.bytes + topBytes,
    topBytes,
    fastbinBytes: fastbins.bytes,
    largestFreeBytes: Math.max(chunks.largestBytes, topBytes),
    usedChunks: chunks.used,
    unreadBytes: chunks.unreadBytes,
  };
}

interface ArenaChunks {
  readonly free: RangeColumns;
  readonly bytes: Bytes;
  readonly largestBytes: Bytes;
  readonly used: number;
  readonly unreadBytes: Bytes;
}

function walkRegions(reading: HeapReading, regions: readonly HeapRegion[]): ArenaChunks {
  const free = new RangeColumns();
  let bytes = 0;
  let largestBytes = 0;
  let used = 0;
  let unreadBytes = 0;
  for (const region of regions) {
    const walk = walkRegion(reading.pieces, region, CACHE_SIZES);
    append(free, walk.free);
    bytes += walk.freeBytes;
    largestBytes = Math.max(largestBytes, walk.largestFreeBytes);
    used += walk.usedChunks;
    unreadBytes += walk.unreadBytes;
    for (const candidate of walk.candidates) {
      reading.candidates.push(candidate);
    }
  }
  if (unreadBytes > 0) {
    reading.problems.add("chunks");
  }
  return { free, bytes, largestBytes, used, unreadBytes };
}

function listBins({ words, problems }: HeapReading, arena: ArenaState): ArenaChunks {
  const listed = readBins(words, arena, CHEAP_CHUNKS);
  if (listed.torn) {
    problems.add("lists");
  }
  if (listed.cut) {
    problems.add("bins-cut");
  }
  return { ...listed, used: 0, unreadBytes: 0 };
}

function readMmapped(
  { memory, state, depth, problems }: HeapReading,
  arenas: readonly GlibcArena[],
  known: readonly AddressRange[],
): MmappedChunks {
  const heaps = arenas.flatMap(({ regions }) => regions);
  const apart = [...known, ...heaps].sort((a, b) => a.start - b.start);
  const chunks = state.parameters?.mmappedChunks ?? ALL;
  const [pages, space] = depth === "full" ? [FULL_PAGES, FULL_SPACE] : [CHEAP_PAGES, CHEAP_SPACE];
  let found = findMmappedChunks(memory, apart, chunks, pages, space);
  if (found.ranges.length < chunks && chunks !== ALL && !found.cut) {
    memory.refresh(); // some were created after the mappings were read
    found = findMmappedChunks(memory, apart, chunks, pages, space);
  }
  if (found.cut) {
    problems.add("mmapped-cut");
  } else if (chunks !== ALL && found.ranges.length < chunks) {
    problems.add("mmapped");
  }
  return found;
}

function append(to: RangeColumns, from: RangeColumns): void {
  const { starts, ends } = from;
  for (let index = 0; index < starts.length; index++) {
    to.push(float64At(starts, index), float64At(ends, index));
  }
}
