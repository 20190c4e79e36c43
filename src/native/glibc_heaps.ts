/**
 * The memory that an arena got from the kernel.
 *
 *   main arena   [sbrk_base ............................. top ... top's end)        one region, by brk
 *   others       heap_info | malloc_state | chunks ... | fenceposts                 first heap
 *                heap_info | chunks .......................... top ...)             newest heap
 *
 *   heap_info    0 ar_ptr   8 prev   16 size   24 mprotect_size   (2.35: 32 pagesize); the heap begins at a
 *                multiple of 64 MiB, or of four huge pages if glibc is set to use them
 *
 * Source: glibc's malloc/arena.c.
 */

import type { Memory } from "../linux/memory/memory.js";
import type { ResidentWords } from "../linux/memory/resident_words.js";
import type { Address } from "../model/base/units.js";
import {
  type ArenaState,
  type GlibcState,
  isChunkAddress,
  mappedAt,
  mappingOf,
  STATE_END,
} from "./glibc_layout.js";

/** A range of adjacent chunks. */
export interface HeapRegion {
  /** The whole range, including its headers. */
  readonly start: Address;
  readonly end: Address;
  /** Address of the first chunk. */
  readonly firstChunk: Address;
  /** The arena's top chunk if it is in this region; otherwise 0. */
  readonly top: Address;
}

const HEAP_ALIGNMENTS = [64 * 2 ** 20, 8 * 2 ** 20, 4 * 2 ** 30, 128 * 2 ** 20, 2 ** 20];
const MOST_HEAPS = 65_536;

/**
 * Regions by address; empty if nothing is plausible. `torn`: some of the arena's memory was not found, because
 * it changed while it was read or because the program moved the break itself.
 */
export function regionsOf(
  memory: Memory,
  words: ResidentWords,
  arena: ArenaState,
  state: GlibcState,
): { readonly regions: HeapRegion[]; readonly torn: boolean } {
  if (arena.systemBytes === 0 || arena.top === arena.bins - 16) {
    return { regions: [], torn: false };
  }
  return arena.main ? mainRegion(memory, words, arena, state) : heapRegions(memory, words, arena);
}

function mainRegion(
  memory: Memory,
  words: ResidentWords,
  arena: ArenaState,
  { parameters }: GlibcState,
): { regions: HeapRegion[]; torn: boolean } {
  const base = parameters?.sbrkBase ?? 0;
  const systemEnd = base + arena.systemBytes;
  const wholeByBrk =
    base > 0 && systemEnd > arena.top && mappedAt(memory, systemEnd - 1) !== undefined;
  // After a lookup that may have read the mappings again: a heap that was trimmed meanwhile no longer contains this top.
  const last = mappedAt(memory, arena.top);
  if (last === undefined) {
    return { regions: [], torn: true };
  }
  const brk = base > 0 && base < arena.top && mappingOf(memory.mappings, base)?.path === last.path;
  if (brk) {
    // All memory came from brk, so its end is known without reading the top chunk, which changes all the time.
    // If the total changed while it was read, the region ends with its mapping.
    const end = wholeByBrk ? systemEnd : last.end;
    const region = { start: base, end, firstChunk: base, top: arena.top };
    return { regions: [region], torn: !wholeByBrk };
  }
  // If brk fails because something else is in its way, the heap continues in separate mappings.
  const byTop = arena.top + sizeOf(words, arena.top);
  const end = byTop > arena.top && byTop <= last.end ? byTop : last.end;
  const { start } = last;
  return {
    regions: [{ start, end, firstChunk: start, top: arena.top }],
    torn: end - start < arena.systemBytes,
  };
}

function heapRegions(
  memory: Memory,
  words: ResidentWords,
  arena: ArenaState,
): { regions: HeapRegion[]; torn: boolean } {
  const alignment = HEAP_ALIGNMENTS.find(
    (bytes) => words.word(Math.floor(arena.top / bytes) * bytes) === arena.start,
  );
  if (alignment === undefined) {
    return { regions: [], torn: true };
  }
  const header = arena.start % alignment;
  const regions: HeapRegion[] = [];
  let systemBytes = 0;
  let heap = Math.floor(arena.top / alignment) * alignment;
  for (let count = 0; heap !== 0 && count < MOST_HEAPS; count++) {
    const size = words.word(heap + 16);
    const mapped = mappingOf(memory.mappings, heap) !== undefined;
    const believable = words.word(heap) === arena.start && size > 0 && size <= alignment;
    if (!mapped || !believable || regions.some(({ start }) => start === heap)) {
      return { regions: regions.reverse(), torn: true };
    }
    const own = arena.start > heap && arena.start < heap + size;
    const behind = own ? arena.bins + STATE_END : heap + header;
    regions.push({
      start: heap,
      end: heap + size,
      firstChunk: Math.ceil(behind / 16) * 16,
      top: arena.top > heap && arena.top < heap + size ? arena.top : 0,
    });
    systemBytes += size;
    heap = words.word(heap + 8);
  }
  return { regions: regions.reverse(), torn: systemBytes < arena.systemBytes };
}

/** Size of a chunk from its header; NaN if it cannot be read or is not plausible. */
export function sizeOf(words: ResidentWords, chunk: Address): number {
  const word = isChunkAddress(chunk) ? words.word(chunk + 8) : Number.NaN;
  return word - (word % 8);
}
