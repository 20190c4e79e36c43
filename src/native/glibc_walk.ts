/**
 * Reads the chunks of a region from first to last, in large pieces.
 *
 *   chunk  0 prev_size   size of the previous chunk if that one is free (otherwise its data)
 *          8 size | 1 PREV_INUSE | 2 IS_MMAPPED | 4 NON_MAIN_ARENA
 *         16 data; of a free chunk: fd, bk
 *
 * PREV_INUSE of a header is clear if the chunk before it is free. Chunks in a thread cache or a fastbin look
 * used here. The program may run meanwhile: where headers are no longer valid, the walk searches for the next
 * place from which several chunks are adjacent, and counts the bytes that it could not read as chunks.
 */

import type { Memory } from "../linux/memory/memory.js";
import { itemAt } from "../model/base/columns.js";
import type { Address, Bytes } from "../model/base/units.js";
import type { HeapRegion } from "./glibc_heaps.js";
import { RangeColumns } from "./range_columns.js";

interface RegionWalk {
  /** Free chunks, ascending, without the top. */
  readonly free: RangeColumns;
  /** Number of used chunks, and their size including headers. */
  readonly usedChunks: number;
  readonly usedBytes: Bytes;
  readonly freeBytes: Bytes;
  readonly largestFreeBytes: Bytes;
  /** Possible thread caches: used chunks of exactly the requested sizes. */
  readonly candidates: Address[];
  /** Bytes not readable as chunks: swapped out, or changed while they were read. */
  readonly unreadBytes: Bytes;
}

const PIECE = 2 ** 20;
const LEAST_CHUNK = 32;
const FENCEPOST = 16;
const MOST_CANDIDATES = 100_000;
/** Number of adjacent chunks that count as a real sequence. */
const CERTAIN = 8;
/** How far after a break to search for the next sequence, and how many breaks to accept. */
const SEARCH = 4 * 2 ** 20;
const MOST_BREAKS = 64;
const HIGH = 2 ** 32;
const PREVIOUS_IN_USE = 1;
const MMAPPED = 2;

/**
 * One buffer for all walks of this thread, which run one after the other: a new one for each walk would cause
 * page faults.
 */
let piece: Uint8Array | null = null;

/** Its contents are valid from {@link ChunkPieces.enter} to the end of one walk. */
export class ChunkPieces {
  readonly #memory: Memory;
  readonly #bytes: Uint8Array;
  readonly #words: Uint32Array;
  #start = 0;
  #end = 0;
  /** Resident ranges of the region, ascending. */
  #resident: readonly { readonly start: Address; readonly end: Address }[] = [];
  #next = 0;

  constructor(memory: Memory) {
    this.#memory = memory;
    piece ??= new Uint8Array(PIECE);
    this.#bytes = piece;
    this.#words = new Uint32Array(piece.buffer);
  }

  enter(start: Address, end: Address): void {
    this.#resident = this.#memory.resident(start - (start % 4096), Math.ceil(end / 4096) * 4096);
    this.#next = 0;
    this.#start = 0;
    this.#end = 0;
  }

  /** Index of the two 64-bit words at a 16-aligned address in {@link words}, or -1. Fast if addresses ascend. */
  at(address: Address): number {
    if (address < this.#start || address + 16 > this.#end) {
      if (!this.#load(address)) {
        return -1;
      }
    }
    return (address - this.#start) / 4;
  }

  /** Whether {@link at} can answer for the address without reading. */
  holds(address: Address): boolean {
    return address >= this.#start && address + 16 <= this.#end;
  }

  get words(): Uint32Array {
    return this.#words;
  }

  #load(address: Address): boolean {
    if (this.#next > 0 && (this.#resident[this.#next - 1]?.end ?? 0) > address) {
      this.#next = 0; // a step back after a search
    }
    while (
      this.#next < this.#resident.length &&
      itemAt(this.#resident, this.#next).end <= address
    ) {
      this.#next += 1;
    }
    const range = this.#resident[this.#next];
    if (range === undefined || range.start > address) {
      return false;
    }
    const length = Math.min(PIECE, range.end - address);
    const read = this.#memory.readInto(address, this.#bytes.subarray(0, length));
    this.#start = address;
    this.#end = address + read;
    return read >= 16;
  }
}

/** @param cacheSizes chunk sizes of tcache_perthread_struct in the known versions */
export function walkRegion(
  pieces: ChunkPieces,
  region: HeapRegion,
  cacheSizes: ReadonlySet<number>,
): RegionWalk {
  const { words } = pieces;
  const end = region.top === 0 ? region.end : region.top;
  pieces.enter(region.start, region.end);
  const free = new RangeColumns();
  const candidates: Address[] = [];
  let usedChunks = 0;
  let usedBytes = 0;
  let freeBytes = 0;
  let largestFreeBytes = 0;
  let unreadBytes = 0;
  let breaks = 0;
  let before = 0; // address of the previous chunk; 0 if there is none
  let at = region.firstChunk;
  while (at < end || (at === end && before !== 0 && region.top !== 0)) {
    const index = pieces.at(at);
    const low = index < 0 ? 0 : (words[index + 2] ?? 0);
    const size = index < 0 ? 0 : low - (low & 7) + (words[index + 3] ?? 0) * HIGH;
    if (before !== 0 && index >= 0) {
      const bytes = at - before;
      if ((low & PREVIOUS_IN_USE) === 0) {
        free.push(before, at);
        freeBytes += bytes;
        largestFreeBytes = Math.max(largestFreeBytes, bytes);
      } else {
        usedChunks += 1;
        usedBytes += bytes;
        if (cacheSizes.has(bytes) && candidates.length < MOST_CANDIDATES) {
          candidates.push(before);
        }
      }
    }
    if (at === end) {
      break;
    }
    if (isHeader(low, size, end - at)) {
      before = at;
      at += size;
      continue;
    }
    before = 0;
    const rest = end - at;
    const atHeapsEnd = region.top === 0 && rest <= 64 && (size === FENCEPOST || size === 0);
    if (atHeapsEnd) {
      usedBytes += rest;
      break;
    }
    breaks += 1;
    const found = breaks > MOST_BREAKS ? end : findSequence(pieces, at + 16, end);
    unreadBytes += found - at;
    at = found;
  }
  return {
    free,
    usedChunks,
    usedBytes,
    freeBytes,
    largestFreeBytes,
    candidates,
    unreadBytes,
  };
}

function isHeader(low: number, size: number, room: Bytes): boolean {
  return size >= LEAST_CHUNK && size <= room && size % 16 === 0 && (low & MMAPPED) === 0;
}

/** The next address from which chunks are adjacent; `end` if there is none nearby. */
function findSequence(pieces: ChunkPieces, from: Address, end: Address): Address {
  const last = Math.min(end, from + SEARCH);
  for (let start = from; start < last; start += 16) {
    let at = start;
    let count = 0;
    // A sequence is followed only within the current piece, so the search reads nothing twice.
    while (at < end && count < CERTAIN && (at === start || pieces.holds(at))) {
      const index = pieces.at(at);
      const low = index < 0 ? 0 : (pieces.words[index + 2] ?? 0);
      const size = index < 0 ? 0 : low - (low & 7) + (pieces.words[index + 3] ?? 0) * HIGH;
      if (index < 0 || !isHeader(low, size, end - at)) {
        at = -1;
        break;
      }
      at += size;
      count += 1;
    }
    if (count === CERTAIN || at === end || (at > 0 && count >= CERTAIN / 2)) {
      return start;
    }
  }
  return end;
}
