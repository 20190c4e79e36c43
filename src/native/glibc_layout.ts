/**
 * Finds glibc's heap without symbols, by its invariants in the writable data of libc.
 *
 *   malloc_state (main_arena; every other arena in its first heap, after heap_info)
 *     -96   fastbins[10]                singly linked, sizes 32, 48, ... 176; until glibc 2.42
 *     -16   top                         the chunk at the heap's end
 *     - 8   last_remainder
 *       0   bins[127] {fd, bk}          circular lists; an empty one points at itself less 16
 *    2032   binmap[4]                   u32
 *    2048   next                        every arena is in one circle
 *    2056   next_free
 *    2064   attached_threads
 *    2072   system_mem                  bytes from the kernel
 *    2080   max_system_mem
 *
 *   malloc_par (mp_), glibc 2.28-2.34 / since 2.35 (thp_pagesize, hp_pagesize, hp_flags came in)
 *     -32/-36  n_mmaps, n_mmaps_max, max_n_mmaps, no_dyn_threshold   ints
 *     -16      mmapped_mem
 *     - 8      max_mmapped_mem
 *       0      sbrk_base                where the main heap begins
 *       8      tcache_bins (or tcache_small_bins)
 *
 * All offsets are relative to what is recognized (bins, sbrk_base), not to the beginning of the structure,
 * which moves with the version. Source: glibc's malloc/malloc.c and malloc/arena.c, 2.28 to 2.43.
 */
import { findMapping } from "../linux/memory/maps.js";
import type { Mapping, Memory } from "../linux/memory/memory.js";
import type { ResidentWords } from "../linux/memory/resident_words.js";
import type { Address, Bytes } from "../model/base/units.js";

export const BIN_COUNT = 127;
const TOP = -16;
const NEXT = 2048;
const SYSTEM_MEMORY = 2072;
const MAX_SYSTEM_MEMORY = 2080;
export const STATE_END = 2088;
export const FASTBINS = -96;
export const FASTBIN_COUNT = 10;
/**
 * Distance from the beginning of an arena to its bins: 112 while there were fastbins; less if less precedes the
 * bins.
 */
const LEAST_HEAD = 24;
const MOST_HEAD = 160;
/** Limits of plausible structures; beyond them, the structure is damaged or something else. */
const MOST_ARENAS = 65_536;
/** Number of bins that may be changing while they are read; the circular list of arenas confirms the match. */
const MOST_CHANGING = 6;
const LARGEST_DATA = 16 * 2 ** 20;

/** An arena, identified by the address of its first bin. */
export interface ArenaState {
  readonly bins: Address;
  /** Address of its malloc_state. */
  readonly start: Address;
  readonly main: boolean;
  readonly top: Address;
  readonly systemBytes: Bytes;
}

/** The values in `mp_`. */
interface MallocParameters {
  readonly sbrkBase: Address;
  /** Current number of blocks with their own mappings. */
  readonly mmappedChunks: number;
  /** Their size in bytes; glibc 2.43 counts 16 bytes too many for each freed one. */
  readonly mmappedBytes: Bytes;
}

export interface GlibcState {
  readonly arenas: readonly ArenaState[];
  /** The circular list of arenas could not be followed to its end. */
  readonly arenasTorn: boolean;
  /** null if it was not recognized (no brk heap, swapped out). */
  readonly parameters: MallocParameters | null;
}

/** Where a process's main arena was found. It never moves, so the next reading starts there. */
export class GlibcPlace {
  /** Address of the first bin; 0 if unknown. */
  bins: Address = 0;
}

/** null if no glibc heap is in use: the program has another C library, or the heap is swapped out. */
export function findGlibcState(
  memory: Memory,
  words: ResidentWords,
  place: GlibcPlace,
): GlibcState | null {
  for (const mapping of dataOfLibc(memory.mappings)) {
    const known = place.bins > mapping.start && place.bins + STATE_END <= mapping.end;
    const state =
      (known ? stateAt(memory, words, mapping, place.bins) : null) ??
      findIn(memory, words, mapping, place);
    if (state !== null) {
      return state;
    }
  }
  return null;
}

/** Writable data of libc, or of the program itself if libc is linked statically. */
function dataOfLibc(mappings: readonly Mapping[]): Mapping[] {
  const data = mappings.filter(
    (mapping) =>
      mapping.writable &&
      !mapping.shared &&
      mapping.inode !== 0 &&
      mapping.end - mapping.start <= LARGEST_DATA,
  );
  const named = data.filter(({ path }) => /\/libc[.-][^/]*so[^/]*$/.test(path));
  const program = mappings.find(({ executable, inode }) => executable && inode !== 0)?.path;
  return named.length > 0 ? named : data.filter(({ path }) => path === program);
}

function findIn(
  memory: Memory,
  words: ResidentWords,
  mapping: Mapping,
  place: GlibcPlace,
): GlibcState | null {
  for (let bins = mapping.start + MOST_HEAD; bins + STATE_END <= mapping.end; bins += 8) {
    const state = stateAt(memory, words, mapping, bins);
    if (state !== null) {
      place.bins = bins;
      return state;
    }
  }
  return null;
}

/** null if the main arena's bins do not begin at `bins`. */
function stateAt(
  memory: Memory,
  words: ResidentWords,
  mapping: Mapping,
  bins: Address,
): GlibcState | null {
  const circle = looksLikeBins(words, bins) ? followCircle(memory, words, bins) : null;
  if (circle === null) {
    return null;
  }
  const heap =
    memory.mappings.find(({ path }) => path === "[heap]") ??
    // A core contains only the names of files.
    (memory.pid === null ? mappingOf(memory.mappings, words.word(bins + TOP)) : undefined);
  return { ...circle, parameters: findParameters(words, mapping, heap) };
}

/** The first words of almost all bins must be valid; a few may be changing, because the program runs. */
function looksLikeBins(words: ResidentWords, bins: Address): boolean {
  let doubtful = 0;
  for (let index = BIN_COUNT - 1; index >= 0; index--) {
    const at = bins + index * 16;
    if (isBin(words, at)) {
      continue;
    }
    doubtful += 1;
    const possible = isChunkAddress(words.word(at)) && isChunkAddress(words.word(at + 8));
    if (!possible || doubtful > MOST_CHANGING) {
      return false;
    }
  }
  return true;
}

export function isChunkAddress(address: number): boolean {
  return address % 16 === 0 && address >= 4096 && address < 2 ** 47;
}

/** Follows `next` from main_arena until it returns to a place shortly before these bins. */
function followCircle(
  memory: Memory,
  words: ResidentWords,
  mainBins: Address,
): Pick<GlibcState, "arenas" | "arenasTorn"> | null {
  const seen = new Set<Address>();
  let next = words.word(mainBins + NEXT);
  let head = 0;
  // main_arena's own address closes the circle and shows how far before its bins it begins.
  while (head === 0) {
    const distance = mainBins - next;
    if (distance >= LEAST_HEAD && distance <= MOST_HEAD && distance % 8 === 0) {
      head = distance;
      break;
    }
    if (!isChunkAddress(next) || seen.size >= MOST_ARENAS || seen.has(next)) {
      break;
    }
    seen.add(next);
    // As long as the length of the header is unknown, the one with which this arena is plausible is used.
    const bins = [112, 96, 32, 24, 40, 104, 120, 128].find((candidate) =>
      isArena(memory, words, next + candidate),
    );
    if (bins === undefined) {
      break;
    }
    next = words.word(next + bins + NEXT);
  }
  if (head === 0 || !isArena(memory, words, mainBins)) {
    return null;
  }
  const arenas = [readArena(words, mainBins, head, true)];
  for (const start of seen) {
    if (isArena(memory, words, start + head)) {
      arenas.push(readArena(words, start + head, head, false));
    }
  }
  return { arenas, arenasTorn: arenas.length !== seen.size + 1 };
}

function isArena(memory: Memory, words: ResidentWords, bins: Address): boolean {
  const top = words.word(bins + TOP);
  const system = words.word(bins + SYSTEM_MEMORY);
  const most = words.word(bins + MAX_SYSTEM_MEMORY);
  // Before an arena is used for the first time, its top is its own first bin.
  const unused = system === 0 && (top === 0 || top === bins - 16);
  return (
    system >= 0 &&
    system <= most &&
    system % 16 === 0 &&
    (unused || (system > 0 && isChunkAddress(top))) &&
    looksLikeBins(words, bins) &&
    (unused || mappedAt(memory, top) !== undefined)
  );
}

/**
 * A growing heap is often larger than the mapping that was last read. Then the mappings are read again, after
 * the words that contain the address.
 */
export function mappedAt(memory: Memory, address: Address): Mapping | undefined {
  const known = mappingOf(memory.mappings, address);
  return known === undefined && memory.refresh() ? mappingOf(memory.mappings, address) : known;
}

/** The list is empty, or at least one of its ends leads back here (the other may be changing). */
function isBin(words: ResidentWords, at: Address): boolean {
  const forward = words.word(at);
  const backward = words.word(at + 8);
  return (
    (forward === at - 16 && backward === at - 16) ||
    (isChunkAddress(forward) &&
      isChunkAddress(backward) &&
      (words.word(forward + 24) === at - 16 || words.word(backward + 16) === at - 16))
  );
}

function readArena(words: ResidentWords, bins: Address, head: Bytes, main: boolean): ArenaState {
  return {
    bins,
    start: bins - head,
    main,
    top: words.word(bins + TOP),
    systemBytes: words.word(bins + SYSTEM_MEMORY),
  };
}

/** The mapping that contains the address. */
export function mappingOf(mappings: readonly Mapping[], address: Address): Mapping | undefined {
  const found = mappings[findMapping(mappings, address)];
  return found !== undefined && found.start <= address ? found : undefined;
}

/** sbrk_base is the only word in libc's data that is the start of [heap] and is next to plausible counts. */
function findParameters(
  words: ResidentWords,
  mapping: Mapping,
  heap: Mapping | undefined,
): MallocParameters | null {
  for (let at = mapping.start + 64; at + 16 <= mapping.end; at += 8) {
    const base = words.word(at);
    const inHeap = heap !== undefined && base >= heap.start && base < heap.end;
    if (!(inHeap || (base === 0 && heap === undefined)) || base % 16 !== 0) {
      continue;
    }
    const bytes = words.word(at - 16);
    const mostBytes = words.word(at - 8);
    const tcacheBins = words.word(at + 8);
    // hp_flags, an int, moved the four counts by one place.
    const counts = [-36, -32].find((offset) => words.word32(at + offset + 4) === 65_536);
    const chunks = words.word32(at + (counts ?? -32));
    const mostChunks = words.word32(at + (counts ?? -32) + 8);
    const plausible =
      bytes <= mostBytes && bytes % 16 === 0 && chunks <= mostChunks && tcacheBins <= 4096;
    if (plausible && (counts !== undefined || inHeap)) {
      return { sbrkBase: base, mmappedChunks: chunks, mmappedBytes: bytes };
    }
  }
  return null;
}
