/**
 * One pass over a program's anonymous memory that finds every Python object once, in address order. It reads
 * 1 MiB at a time into one buffer and decodes it in place. No list of the interpreter is walked, so a
 * program that runs meanwhile makes the result inexact at the edges, but never misleads the scan.
 *
 *   anonymous, writable, resident
 *    ├─ pages of pools (Objects/obmalloc.c), known by their header:
 *    │    0 used u32   8 first free block   32 arena u32   36 size class u32   40 next offset u32
 *    │    44 max next offset u32 = pool size - block size     48 blocks of (class + 1) * 16 bytes
 *    │    used blocks = carved ones (below the next offset) that are not on the list of free ones
 *    ├─ chunks that malloc mapped one by one (src/linux/memory/mapped_chunk.ts)      skipped after their header
 *    └─ other memory, usually malloc's: an object may begin at every 16 bytes
 *         -16 previous size   -8 size | flags    0 data ...    size: size | previous chunk in use
 *
 * A used block contains an object if there is a plausible reference count and the address of a type at the
 * place where objects of that type begin in their block:
 *
 *   plain           | refcount | type | ...
 *   collected       | GC next | GC previous | refcount | type | ...
 *   with attributes | weak list or values | dict | GC next | GC previous | refcount | type | ...
 *
 * The debug hooks (PYTHONMALLOC=debug) put 16 bytes before all that: a size and seven bytes of 0xFD. In
 * malloc's memory freed objects keep their bytes, so there the chunk's size must fit, and the next chunk must
 * mark this one as used.
 */

import {
  MAPPED_HEAD,
  mappedBlockBytes,
  mappedChunkBytes,
} from "../../../linux/memory/mapped_chunk.js";
import type { AddressRange, Memory } from "../../../linux/memory/memory.js";
import { itemAt } from "../../../model/base/columns.js";
import type { Address, Bytes } from "../../../model/base/units.js";
import type { HeapPart } from "../memory/heap_parts.js";
import { GC_HEAD_BYTES, type HeapLayout } from "../memory/layout.js";
import { wordAt } from "../memory/words.js";
import { fitsChunk } from "./object_size.js";
import { readWords } from "./small_objects.js";
import type { TypeRow, TypeTable } from "./type_table.js";

export interface HeapVisitor {
  /** Objects of one window, in address order. The columns are valid only during the call. */
  objects(found: FoundObjects): void;
}

/**
 * A batch of objects in the first `count` rows, up to a few thousand. A call for each object, and a boxed
 * number for its address, would take longer than finding it.
 */
export interface FoundObjects {
  readonly count: number;
  readonly types: Int32Array;
  /**
   * Of each its first u32 in `words`. What lies behind the window's end (large objects) is not there; the first
   * 256 bytes always are.
   */
  readonly places: Int32Array;
  /** Bytes from there to the end of its block. */
  readonly rooms: Float64Array;
  readonly words: Uint32Array;
  /** Address of `words[0]`. */
  readonly base: Address;
}

export function addressOf({ base, places }: FoundObjects, n: number): Address {
  return base + (places[n] ?? 0) * 4;
}

export interface ScanFigures {
  /** Number of bytes that were read. */
  readBytes: Bytes;
  pools: number;
  /** Used blocks of pools: sys.getallocatedblocks() without the blocks that malloc serves. */
  usedBlocks: number;
  /** Pools that changed while they were read. */
  tornPools: number;
  /** The blocks have the marks of the debug hooks. */
  debugHooks: boolean;
}

/** Half of a typical L2 cache, so data that was just read is decoded from the cache. */
const WINDOW = 2 ** 20;
/** Bytes after the window, for objects that begin at its end. */
const OVERLAP = 64 * 1024;
const PAGE = 4096;
const POOL_HEADER = 48;
const MOST_BLOCKS = 1024;
/** A batch is processed while its data is still in the processor's caches. */
const MOST_FOUND = 2 * MOST_BLOCKS;
const CHUNK_MAPPED = 2;
const HOOK_BYTES = 16;
/** Objects that are too large for pools use the raw allocator, which has separate hooks. */
const HOOKS_IN_MALLOC = [0, HOOK_BYTES, 2 * HOOK_BYTES];
const MARK = 0xfdfdfdfd;
/** Weak list or values, dict, GC head: the possible contents between a block's start and its object. */
const MOST_PRE_HEADER = 32;
const UNKNOWN = -1;

// The window and the columns belong to the module, one set for each thread. The compiler can then optimize
// their use, and a scan takes a quarter less time. Scans must not be nested.
const windowBytes = new Uint8Array(WINDOW + OVERLAP);
const words = new Uint32Array(windowBytes.buffer);
const isFree = new Uint8Array(MOST_BLOCKS);
const foundTypes = new Int32Array(MOST_FOUND);
const foundPlaces = new Int32Array(MOST_FOUND);
const foundRooms = new Float64Array(MOST_FOUND);
const found = {
  count: 0,
  types: foundTypes,
  places: foundPlaces,
  rooms: foundRooms,
  words,
  base: 0,
};
let isScanning = false;

export class HeapScan {
  readonly figures: ScanFigures = {
    readBytes: 0,
    pools: 0,
    usedBlocks: 0,
    tornPools: 0,
    debugHooks: false,
  };
  /** The first address after the contents of the window. */
  #held = 0;
  /** Mappings below 4 GiB, where an address may look like a count. */
  readonly #lowStart: Address;
  readonly #lowEnd: Address;
  /** Bits in the upper half of a word that no count has. */
  readonly #countMask: number;
  /** malloc is not glibc's, so chunks have no header to check. */
  readonly #chunkHeads: boolean;

  constructor(
    readonly memory: Memory,
    readonly layout: HeapLayout,
    readonly types: TypeTable,
    readonly visitor: HeapVisitor,
  ) {
    const low = memory.mappings.filter(({ end }) => end < 2 ** 32);
    this.#lowStart = low[0]?.start ?? 0;
    this.#lowEnd = low.at(-1)?.end ?? 0;
    this.#countMask = layout.countFlags ? 0xffff : -1;
    this.#chunkHeads = !memory.mappings.some(({ path }) => OTHER_ALLOCATORS.test(path));
  }

  /** Scans parts one after the other. */
  run(parts: Iterable<HeapPart>): ScanFigures {
    if (isScanning) {
      throw new Error("a heap is scanned while another is");
    }
    isScanning = true;
    try {
      for (const part of parts) {
        this.#scanPart(part);
      }
    } finally {
      found.count = 0;
      isScanning = false;
      this.types.setNear(0, 0, words);
    }
    return this.figures;
  }

  #scanPart(part: HeapPart): void {
    const { region } = part;
    const resident = this.memory.resident(part.start, Math.min(region.end, part.end + OVERLAP));
    let next = 0;
    let at = part.start;
    while (at < part.end && next < resident.length) {
      while (next < resident.length && itemAt(resident, next).end <= at) {
        next += 1;
      }
      const range = resident[next];
      if (range === undefined || range.start >= part.end) {
        return;
      }
      at = Math.max(at, range.start);
      this.#load(at, part, resident, next);
      this.types.setNear(found.base, this.#held, words);
      at = this.#scanWindow(at, region);
    }
  }

  /** Fills the window around `from`, with zeros where nothing is resident. */
  #load(from: Address, part: HeapPart, resident: readonly AddressRange[], first: number): void {
    found.base = Math.floor(from / WINDOW) * WINDOW;
    this.#held = Math.min(part.end, found.base + WINDOW);
    const end = Math.min(part.region.end, this.#held + OVERLAP);
    // The part of the window before `from` was already scanned; only a chunk's header is read from it.
    let done = Math.max(found.base, part.start, from - PAGE);
    windowBytes.fill(0, 0, done - found.base);
    for (let n = first > 0 ? first - 1 : 0; n < resident.length; n++) {
      const range = itemAt(resident, n);
      const start = Math.max(range.start, done);
      const stop = Math.min(range.end, end);
      if (range.start >= end) {
        break;
      }
      if (start < stop) {
        windowBytes.fill(0, done - found.base, start - found.base);
        const target = windowBytes.subarray(start - found.base, stop - found.base);
        const got = this.memory.readInto(start, target);
        target.fill(0, got);
        this.figures.readBytes += got;
        done = stop;
      }
    }
    windowBytes.fill(0, done - found.base);
  }

  /** @returns where to continue: after the window, or after a large chunk that began in it */
  #scanWindow(from: Address, region: AddressRange): Address {
    const { poolBytes } = this.layout;
    // A pool begins at a multiple of its size, so a region that starts inside one has no pool there.
    let at = Math.floor(from / PAGE) * PAGE;
    while (at < this.#held) {
      if (found.count > MOST_FOUND - MOST_BLOCKS) {
        this.#deliver();
      }
      const index = (at - found.base) >>> 2;
      if (at % poolBytes === 0 && at + poolBytes <= region.end && this.#isPool(index)) {
        this.#scanPool(at, index);
        at += poolBytes;
        continue;
      }
      const bytes = mappedChunkBytes(words, index);
      if (bytes > 0 && at + bytes <= region.end) {
        this.#scanChunk(at + MAPPED_HEAD, bytes - MAPPED_HEAD);
        at += bytes;
        continue;
      }
      this.#scanPage(at, index);
      at += PAGE;
    }
    this.#deliver();
    return at;
  }

  #isPool(index: number): boolean {
    const sizeClass = words[index + 9] ?? 0;
    if (sizeClass >= 32) {
      return false;
    }
    const size = (sizeClass + 1) * 16;
    const next = words[index + 10] ?? 0;
    return (
      words[index + 11] === this.layout.poolBytes - size &&
      next > POOL_HEADER &&
      next <= this.layout.poolBytes &&
      (next - POOL_HEADER) % size === 0 &&
      (words[index] ?? 0) <= (next - POOL_HEADER) / size &&
      (words[index + 8] ?? 0) < 1 << 24
    );
  }

  #scanPool(address: Address, index: number): void {
    const size = ((words[index + 9] ?? 0) + 1) * 16;
    const carved = ((words[index + 10] ?? 0) - POOL_HEADER) / size;
    const used = words[index] ?? 0;
    this.figures.pools += 1;
    if (used === 0) {
      return;
    }
    isFree.fill(0, 0, carved);
    // All blocks of a pool have the same upper half of the address, so only the lower half varies.
    const poolLow = address >>> 0;
    const poolHigh = Math.floor(address / 2 ** 32);
    let freed = 0;
    let low = words[index + 2] ?? 0;
    let high = words[index + 3] ?? 0;
    while (high === poolHigh && low > poolLow) {
      const offset = low - poolLow;
      const block = ((offset - POOL_HEADER) / size) | 0;
      if (offset !== POOL_HEADER + block * size || block >= carved || isFree[block] === 1) {
        break; // torn: the list changed while it was read
      }
      isFree[block] = 1;
      freed += 1;
      low = words[index + (offset >>> 2)] ?? 0;
      high = words[index + (offset >>> 2) + 1] ?? 0;
    }
    if (carved - freed !== used) {
      this.figures.tornPools += 1;
    }
    this.figures.usedBlocks += carved - freed;
    const step = size >>> 2;
    let first = UNKNOWN;
    for (let block = 0, at = index + POOL_HEADER / 4; block < carved; block++, at += step) {
      if (isFree[block] === 0) {
        // All blocks of a pool have the marks of the hooks, or none has.
        first = first === UNKNOWN ? this.#hookBytes(at, size) : first;
        this.#scanBlock(at, size, first);
      }
    }
  }

  /** Number of bytes that the debug hooks put before the contents of a pool's block. */
  #hookBytes(at: number, size: Bytes): Bytes {
    const hooks = size > HOOK_BYTES && this.#isMarked(at);
    if (hooks) {
      this.figures.debugHooks = true;
    }
    return hooks ? HOOK_BYTES : 0;
  }

  #keep(row: TypeRow, at: number, room: Bytes): void {
    const { count } = found;
    foundTypes[count] = row;
    foundPlaces[count] = at;
    foundRooms[count] = room;
    found.count = count + 1;
  }

  #deliver(): void {
    this.visitor.objects(found);
    found.count = 0;
  }

  /** A used block, whose first bytes belong to the hooks. */
  #scanBlock(at: number, size: Bytes, first: Bytes): void {
    const { types } = this;
    const last = Math.min(first + MOST_PRE_HEADER, size - 16);
    for (let before = first; before <= last; before += 16) {
      const head = at + (before >>> 2);
      const row = this.#typeAt(head);
      if (row >= 0 && types.of(row).preHeader === before - first) {
        this.#keep(row, head, size - before);
        return;
      }
    }
  }

  /** Whether the debug hooks' mark precedes the contents. */
  #isMarked(at: number): boolean {
    return words[at + 3] === MARK && (words[at + 2] ?? 0) >>> 8 === 0xfdfdfd;
  }

  /** Whether there is a plausible reference count at `at`. */
  #isCount(at: number): boolean {
    const count = words[at] ?? 0;
    if (count === 0 || ((words[at + 1] ?? 0) & this.#countMask) !== 0) {
      return false;
    }
    // A program that is not position-independent has its data and its heap below 4 GiB.
    return count < this.#lowStart || count >= this.#lowEnd || (count & 7) !== 0;
  }

  /** The type of the plausible object at `at`; negative if there is none. */
  #typeAt(at: number): TypeRow {
    if (!this.#isCount(at)) {
      return -1;
    }
    const low = words[at + 2] ?? 0;
    const high = words[at + 3] ?? 0;
    if ((low & 7) !== 0 || high > 0x7fff || (high === 0 && low < 0x10000)) {
      return -1;
    }
    return this.types.find(low, high);
  }

  /** A separate mapping of malloc: an object, or raw data. */
  #scanChunk(address: Address, bytes: Bytes): void {
    const at = (address - found.base) >>> 2;
    let first = 0;
    while (first < 2 * HOOK_BYTES && this.#isMarked(at + (first >>> 2))) {
      first += HOOK_BYTES;
    }
    this.#scanBlock(at, bytes, first);
  }

  /** A page of malloc or of an unknown allocator. */
  #scanPage(address: Address, index: number): void {
    const end = index + PAGE / 4;
    for (let at = index; at < end; at += 4) {
      // Cheapest tests first: these two exclude nearly every place.
      if (words[at] === 0 || (words[at + 3] ?? 0) > 0x7fff) {
        continue;
      }
      if (!this.#isCount(at)) {
        continue;
      }
      const low = words[at + 2] ?? 0;
      const high = words[at + 3] ?? 0;
      if ((low & 7) !== 0 || (high === 0 && low < 0x10000)) {
        continue;
      }
      const row = this.types.find(low, high);
      if (row < 0) {
        continue;
      }
      const type = this.types.of(row);
      const room = this.#roomAt(address + (at - index) * 4, type.preHeader);
      if (
        room > 0 &&
        fitsChunk(type, this.layout, words, at, room) &&
        (!type.isGc || this.#isLinked(address + (at - index) * 4 - GC_HEAD_BYTES))
      ) {
        this.#keep(row, at, room);
      }
    }
  }

  /** Bytes from an object in malloc's memory to the end of its chunk; 0 if no used chunk begins there. */
  #roomAt(object: Address, before: Bytes): Bytes {
    for (const hooks of HOOKS_IN_MALLOC) {
      const data = object - before - hooks;
      const size = this.#wordAt(data - 8);
      const flags = size & 7;
      const bytes = size - flags;
      if (flags & CHUNK_MAPPED ? mappedBlockBytes(bytes) > 0 : bytes % 16 === 0) {
        const inUse =
          bytes >= 32 &&
          bytes < 2 ** 40 &&
          (flags & CHUNK_MAPPED || (this.#wordAt(data - 8 + bytes) & 1) === 1);
        if (inUse) {
          return bytes - 8 - before - hooks;
        }
      }
    }
    return this.#chunkHeads ? 0 : UNKNOWN_ROOM;
  }

  /** A GC head is in no list, or one of its neighbours points to it (a collection borrows one of the links). */
  #isLinked(head: Address): boolean {
    const next = this.#wordAt(head);
    if (next === 0) {
      return true;
    }
    const before = this.#wordAt(head + 8);
    const back = this.#wordAt(next + 8);
    return back - (back % 4) === head || this.#wordAt(before - (before % 4)) === head;
  }

  /** A word of memory, NaN if there is none; only its lowest bits and its size matter here. */
  #wordAt(address: Address): number {
    if (address >= found.base && address + 8 <= this.#held) {
      const at = (address - found.base) >>> 2;
      return wordAt(words, at);
    }
    return readWords(this.memory, address, 1)?.[0] ?? Number.NaN;
  }
}

/** Without chunk headers, sizes are not checked. */
const UNKNOWN_ROOM = Number.POSITIVE_INFINITY;
const OTHER_ALLOCATORS = /\/lib(jemalloc|tcmalloc\w*|mimalloc\w*|hoard|snmalloc\w*)[.-]/;
