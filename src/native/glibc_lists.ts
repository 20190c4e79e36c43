/**
 * Reads free chunks from the lists that contain them.
 *
 *   bins        circular, doubly linked: fd at chunk+16, bk at chunk+24
 *   fastbins    singly linked through chunk+16; since 2.32 the link is stored as link ^ (its address >> 12)
 *   tcache      one per thread, a chunk of the thread's arena; links point to chunk+16, stored in the same way
 *
 *   tcache_perthread_struct   2.26-2.29    u8  counts[64]      entries[64]
 *                             2.30-2.41    u16 counts[64]      entries[64]
 *                             since 2.42   u16 num_slots[76]   entries[76]     room that is left
 *
 * Every list is limited by the size of the arena, so a torn list also ends. Source: glibc's malloc/malloc.c.
 */

import type { ResidentWords } from "../linux/memory/resident_words.js";
import type { Address, Bytes } from "../model/base/units.js";
import { sizeOf } from "./glibc_heaps.js";
import {
  type ArenaState,
  BIN_COUNT,
  FASTBIN_COUNT,
  FASTBINS,
  isChunkAddress,
} from "./glibc_layout.js";
import { RangeColumns } from "./range_columns.js";

interface ListedChunks {
  readonly free: RangeColumns;
  readonly bytes: Bytes;
  readonly largestBytes: Bytes;
  /** A list did not end where it should, or contained something other than a chunk: it changed while it was read. */
  readonly torn: boolean;
  /** The limit on chunks was reached: there are more. */
  readonly cut: boolean;
}

interface CacheLayout {
  readonly chunkBytes: Bytes;
  readonly countBytes: 1 | 2;
  readonly bins: number;
}

const CACHE_LAYOUTS: readonly CacheLayout[] = [
  { chunkBytes: 0x250, countBytes: 1, bins: 64 },
  { chunkBytes: 0x290, countBytes: 2, bins: 64 },
  { chunkBytes: 0x300, countBytes: 2, bins: 76 },
];
/** Chunk sizes that a thread cache contains in any version. */
export const CACHE_SIZES: ReadonlySet<number> = new Set(
  CACHE_LAYOUTS.map(({ chunkBytes }) => chunkBytes),
);
/**
 * Bins that hold one size each. The larger ones hold ranges of sizes, and are used only if a tunable enables
 * them.
 */
const SMALL_CACHE_BINS = 64;
const LEAST_CHUNK = 32;
/** Longest list of a thread cache that its count can represent. */
const MOST_CACHED = 65_535;
const TRIES = 4;

/** All chunks in an arena's bins, up to `most`. A broken list is read again, because the program runs. */
export function readBins(words: ResidentWords, arena: ArenaState, most: number): ListedChunks {
  const free = new RangeColumns();
  let bytes = 0;
  let largestBytes = 0;
  let torn = false;
  let cut = false;
  for (let index = 0; index < BIN_COUNT && !cut; index++) {
    let list = readBin(words, arena, index, most - free.length);
    for (let again = 1; list.torn && again < TRIES; again++) {
      words.forget();
      const next = readBin(words, arena, index, most - free.length);
      list = next.torn && next.chunks.length < list.chunks.length ? list : next;
    }
    torn ||= list.torn;
    cut ||= list.cut;
    for (const [chunk, size] of list.chunks) {
      free.push(chunk, chunk + size);
      bytes += size;
      largestBytes = Math.max(largestBytes, size);
    }
    // Lists that lead into each other would count chunks twice: no arena has more memory than it received.
    if (bytes > arena.systemBytes) {
      return { free: new RangeColumns(), bytes: 0, largestBytes: 0, torn: true, cut };
    }
  }
  return { free, bytes, largestBytes, torn, cut };
}

interface BinList {
  readonly chunks: [chunk: Address, size: Bytes][];
  readonly torn: boolean;
  readonly cut: boolean;
}

function readBin(words: ResidentWords, arena: ArenaState, index: number, most: number): BinList {
  const bin = arena.bins + index * 16 - 16;
  const chunks: [Address, Bytes][] = [];
  let chunk = words.word(bin + 16);
  let before = bin;
  while (chunk !== bin) {
    const size = sizeOf(words, chunk);
    if (!(size >= LEAST_CHUNK && size <= arena.systemBytes) || words.word(chunk + 24) !== before) {
      return { chunks, torn: true, cut: false };
    }
    if (chunks.length >= most) {
      return { chunks, torn: false, cut: true };
    }
    chunks.push([chunk, size]);
    before = chunk;
    chunk = words.word(chunk + 16);
  }
  return { chunks, torn: false, cut: false };
}

/** Fastbins; empty in versions that have none. */
export function readFastbins(words: ResidentWords, arena: ArenaState): ListedChunks {
  const free = new RangeColumns();
  let bytes = 0;
  let torn = false;
  const head = arena.bins - arena.start;
  if (head >= -FASTBINS + 16) {
    for (let index = 0; index < FASTBIN_COUNT; index++) {
      const size = LEAST_CHUNK + index * 16;
      const first = words.word(arena.bins + FASTBINS + index * 8);
      const room = arena.systemBytes / size;
      const list = followList(
        words,
        first,
        FASTBIN_LIST,
        room,
        (chunk) => sizeOf(words, chunk) === size,
      );
      torn ||= list === null;
      for (const chunk of list ?? []) {
        free.push(chunk, chunk + size);
        bytes += size;
      }
    }
  }
  return { free, bytes, largestBytes: 0, torn, cut: false };
}

/** What the thread caches hold; candidates that are not caches are skipped. */
export function readCaches(words: ResidentWords, candidates: readonly Address[]): ListedChunks {
  const free = new RangeColumns();
  let bytes = 0;
  const seen = new Set<Address>();
  for (const candidate of candidates) {
    const layout = CACHE_LAYOUTS.find(({ chunkBytes }) => chunkBytes === sizeOf(words, candidate));
    const chunks = layout === undefined ? null : readCache(words, candidate + 16, layout);
    for (const { chunk, size } of chunks ?? []) {
      if (!seen.has(chunk)) {
        seen.add(chunk);
        free.push(chunk, chunk + size);
        bytes += size;
      }
    }
  }
  return { free, bytes, largestBytes: 0, torn: false, cut: false };
}

/** null if the counts and the lists contradict each other, so these 640 bytes are something else. */
function readCache(
  words: ResidentWords,
  cache: Address,
  { countBytes, bins }: CacheLayout,
): { chunk: Address; size: Bytes }[] | null {
  const entries = cache + bins * countBytes;
  const found: { chunk: Address; size: Bytes }[] = [];
  // Since 2.42 a bin stores its free slots, so length and free slots add up to the same number in every bin.
  const room = bins === SMALL_CACHE_BINS ? null : largestCount(words, cache, bins);
  for (let index = 0; index < bins; index++) {
    const entry = words.word(entries + index * 8);
    const count = countAt(words, cache, index, countBytes);
    const length = room === null ? count : room - count;
    if (entry === 0 ? length > 0 && index < SMALL_CACHE_BINS : !(length > 0)) {
      return null;
    }
    if (entry === 0) {
      continue;
    }
    const small = index < SMALL_CACHE_BINS ? LEAST_CHUNK + index * 16 : 0;
    const list = followList(words, entry, CACHE_LIST, MOST_CACHED, (chunk) => {
      const size = sizeOf(words, chunk);
      return small === 0 ? size > LEAST_CHUNK + SMALL_CACHE_BINS * 16 : size === small;
    });
    // One more or less is possible while the thread runs.
    if (list === null || Math.abs(list.length - length) > 1) {
      return null;
    }
    for (const chunk of list) {
      found.push({ chunk, size: sizeOf(words, chunk) });
    }
  }
  return found;
}

function largestCount(words: ResidentWords, cache: Address, bins: number): number {
  let largest = 0;
  for (let index = 0; index < bins; index++) {
    largest = Math.max(largest, countAt(words, cache, index, 2));
  }
  return largest;
}

function countAt(words: ResidentWords, cache: Address, index: number, size: 1 | 2): number {
  const byte = index * size;
  const word = words.word32(cache + byte - (byte % 4));
  return (word >>> ((byte % 4) * 8)) & (size === 1 ? 0xff : 0xffff);
}

interface ListShape {
  /** Where a node keeps its link: a fastbin's node is the chunk, a cache's node is the chunk's data. */
  readonly link: Bytes;
  readonly chunk: Bytes;
}

const FASTBIN_LIST: ListShape = { link: 16, chunk: 0 };
const CACHE_LIST: ListShape = { link: 0, chunk: -16 };

/**
 * Chunks of a singly linked list whose links are stored plainly or mangled; null if it contains something that
 * is not such a chunk, or does not end.
 */
function followList(
  words: ResidentWords,
  first: number,
  { link, chunk }: ListShape,
  most: number,
  belongs: (chunk: Address) => boolean,
): Address[] | null {
  for (const mixed of [true, false]) {
    const chunks: Address[] = [];
    let node = first;
    while (isChunkAddress(node) && chunks.length <= most && belongs(node + chunk)) {
      chunks.push(node + chunk);
      const stored = words.word(node + link);
      node = mixed ? unmangle(stored, node + link) : stored;
    }
    if (node === 0 && chunks.length <= most) {
      return chunks;
    }
  }
  return null;
}

const HIGH = 2 ** 32;

/** link ^ (place >> 12), without 64-bit integers; NaN stays NaN. */
function unmangle(stored: number, place: Address): number {
  const shifted = Math.floor(place / 4096);
  const low = ((stored % HIGH) ^ (shifted % HIGH)) >>> 0;
  const high = (Math.floor(stored / HIGH) ^ Math.floor(shifted / HIGH)) >>> 0;
  return Number.isNaN(stored) ? stored : low + high * HIGH;
}
