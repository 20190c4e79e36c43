/**
 * A program's heap through a window of fixed size: a lookup of a heap of any size takes the same memory.
 *
 *   directory   page -> its number: number / 4 is its block
 *   slots       block -> where it is in `words`, if it is held
 *   words       [block][block][block] ...   of 16 KiB each, and the first bytes of the next one; one that was not
 *               used for a while is replaced
 *
 * If the whole heap fits, all of it is read at once, and nothing is ever replaced: a copy of one moment. Otherwise
 * each part is read when it is needed. The program keeps running, so what is read later may have changed; objects
 * that a lookup is about have been there for longer.
 */
import type { AddressRange, Mapping, Memory } from "../../../linux/memory/memory.js";
import { float64At } from "../../../model/base/columns.js";
import type { Address, Bytes } from "../../../model/base/units.js";
import { sumOf } from "./copy_plan.js";
import type { HeapPages } from "./heap_pages.js";
import { PAGE, PageDirectory } from "./page_directory.js";
import { wordAt } from "./words.js";

const PAGES_A_BLOCK = 4;
const BLOCK_SHIFT = 2;
const BLOCK = PAGES_A_BLOCK * PAGE;
/** What follows the block, for a header that begins at its end. */
const OVERLAP: Bytes = 64;
const SLOT: Bytes = BLOCK + OVERLAP;
const WORDS_A_SLOT = SLOT / 4;
const WORDS_A_PAGE = PAGE / 4;
const NOT_HELD = -1;
/** In `#uses`, of a slot: not used since the last round, used, never to be replaced. */
const IDLE = 0;
const USED = 1;
const KEPT = 2;
/** Share of the slots whose contents may be kept. */
const MOST_KEPT = 0.5;
/** A larger range is only read again when it is needed. */
const LARGEST_KEPT: Bytes = 2 ** 18;
const LARGEST_COPY: Bytes = 48 * 2 ** 20;
const WINDOW: Bytes = 16 * 2 ** 20;
/** Blocks for memory that is mapped during the lookup. */
const NEW_BLOCKS = 16_384;
/**
 * Small reads of a block that is not held go to the program directly, until they have cost as much as reading the block.
 * Types, names and code are scattered over the heap, and few of their neighbors are ever wanted.
 */
const MOST_DIRECT = 6;
const LARGEST_SMALL: Bytes = 512;
/** The cost of a larger direct read, up to a page; that of a small one is 1. */
const PAGE_READ = 3;
/** Bytes of `contents` at once. */
const PIECE: Bytes = 2 ** 20;

export class HeapWindows implements HeapPages {
  readonly pid;
  readonly name;
  readonly mappings: readonly Mapping[];
  readonly words: Uint32Array;
  readonly bytes: Bytes;
  readonly isLive: boolean;
  readonly #directory = new PageDirectory();
  /** By block, from 1 on. */
  readonly #start: Float64Array;
  readonly #slot: Int32Array;
  /** The cost of direct reads since it was held last. */
  readonly #direct: Uint8Array;
  /** By slot. */
  readonly #block: Int32Array;
  readonly #uses: Uint8Array;
  #blocks = 1;
  #free = 0;
  #kept = 0;
  #hand = 0;
  /** The slots that were asked for last, whose words may be about to be read. */
  #newest = NOT_HELD;
  #newestButOne = NOT_HELD;

  /** `ranges`: the pages to read, ascending. If they are more than `mostCopied`, only `window` is held. */
  constructor(
    readonly source: Memory,
    readonly ranges: readonly AddressRange[],
    mostCopied = LARGEST_COPY,
    window = WINDOW,
  ) {
    this.pid = source.pid;
    this.name = source.name;
    this.mappings = source.mappings;
    this.bytes = sumOf(ranges);
    const blocks = ranges.reduce(
      (sum, { start, end }) => sum + Math.ceil(end / BLOCK) - Math.floor(start / BLOCK),
      NEW_BLOCKS,
    );
    this.#start = new Float64Array(blocks);
    this.#slot = new Int32Array(blocks).fill(NOT_HELD);
    this.#direct = new Uint8Array(blocks);
    for (const { start, end } of ranges) {
      this.#enter(start, end);
    }
    this.isLive = this.bytes > mostCopied;
    const slots = this.isLive ? Math.floor(window / SLOT) : this.#blocks + NEW_BLOCKS;
    this.words = new Uint32Array(slots * WORDS_A_SLOT);
    this.#block = new Int32Array(slots);
    this.#uses = new Uint8Array(slots);
    if (!this.isLive) {
      // Mappings are placed downwards, so the newest objects have the lowest addresses and are read last: a container
      // does not refer to objects that did not exist yet when they were read.
      for (let block = this.#blocks - 1; block > 0; block--) {
        this.#load(block);
      }
    }
  }

  get pages(): number {
    return this.#blocks * PAGES_A_BLOCK;
  }

  pageAt(low: number, high: number): number {
    return this.#directory.find(low, high);
  }

  index(address: Address): number {
    const low = address >>> 0;
    const page = this.#directory.find(low, Math.floor(address / 2 ** 32));
    if (page === 0) {
      return -1;
    }
    const block = page >>> BLOCK_SHIFT;
    let slot = this.#slot[block] ?? NOT_HELD;
    if (slot < 0) {
      slot = this.#load(block);
    } else if (this.#uses[slot] === IDLE) {
      this.#uses[slot] = USED;
    }
    if (slot !== this.#newest) {
      this.#newestButOne = this.#newest;
      this.#newest = slot;
    }
    return (
      slot * WORDS_A_SLOT + (page & (PAGES_A_BLOCK - 1)) * WORDS_A_PAGE + ((low & (PAGE - 1)) >>> 2)
    );
  }

  word(address: Address): number {
    const at = this.index(address);
    return at < 0 ? -1 : wordAt(this.words, at);
  }

  renew(start: Address, bytes: Bytes): void {
    const end = start + bytes;
    if (!(start > 0 && end < 2 ** 53)) {
      return;
    }
    this.#enterNew(start, end);
    for (let first = start - (start % BLOCK); first < end; first += BLOCK) {
      const block = this.#blockAt(first);
      const slot = this.#slot[block] ?? NOT_HELD;
      if (block === 0) {
        continue;
      }
      if (slot >= 0) {
        this.#read(block, slot, Math.max(0, start - first), Math.min(BLOCK, end - first));
      } else if (!this.isLive) {
        this.#load(block);
      }
    }
  }

  keep(start: Address, bytes: Bytes): void {
    if (!this.isLive || bytes > LARGEST_KEPT) {
      return;
    }
    for (let first = start - (start % BLOCK); first < start + bytes; first += BLOCK) {
      const block = this.#blockAt(first);
      if (block === 0) {
        continue;
      }
      if (this.#kept >= this.#block.length * MOST_KEPT) {
        return;
      }
      const held = this.#slot[block] ?? NOT_HELD;
      const slot = held >= 0 ? held : this.#load(block);
      if (this.#uses[slot] !== KEPT) {
        this.#uses[slot] = KEPT;
        this.#kept += 1;
      }
    }
  }

  *contents() {
    const buffer = new Uint8Array(PIECE);
    for (const { start, end } of this.ranges) {
      for (let at = start; at < end; at += PIECE) {
        const got = this.readInto(at, buffer.subarray(0, Math.min(PIECE, end - at)));
        yield { start: at, words: new Uint32Array(buffer.buffer, 0, got >>> 2) };
      }
    }
  }

  refresh(): boolean {
    return true;
  }

  /** Memory that is not in the ranges (code, names of types in it) never changes, so it is read from the program. */
  readInto(address: Address, target: Uint8Array): Bytes {
    if (this.isLive && (target.length > BLOCK || this.#isScattered(address, target.length))) {
      return this.source.readInto(address, target);
    }
    let done = 0;
    while (done < target.length) {
      const at = this.index(address + done);
      if (at < 0) {
        return done === 0 ? this.source.readInto(address, target) : done;
      }
      const within = (address + done) % PAGE;
      const length = Math.min(PAGE - within, target.length - done);
      target.set(new Uint8Array(this.words.buffer, at * 4 + (within % 4), length), done);
      done += length;
    }
    return done;
  }

  resident(start: Address, end: Address): AddressRange[] {
    return this.ranges
      .filter((range) => range.start < end && range.end > start)
      .map((range) => ({ start: Math.max(start, range.start), end: Math.min(end, range.end) }));
  }

  openFile(mapping: Mapping): number | null {
    return this.source.openFile(mapping);
  }

  close(): void {
    // The program's own descriptors are closed by whoever opened them.
  }

  /** Whether a read of that many bytes is not worth reading their block; counts it. */
  #isScattered(address: Address, bytes: Bytes): boolean {
    const block = this.#directory.at(address) >>> BLOCK_SHIFT;
    if (bytes > PAGE || block === 0 || (this.#slot[block] ?? 0) >= 0) {
      return false;
    }
    const cost = this.#direct[block] ?? 0;
    if (cost >= MOST_DIRECT || this.#directory.at(address + bytes - 1) === 0) {
      return false;
    }
    this.#direct[block] = cost + (bytes > LARGEST_SMALL ? PAGE_READ : 1);
    return true;
  }

  /** Numbers the pages of a range. */
  #enter(start: Address, end: Address): void {
    let block = 0;
    for (let at = start; at < end; at += PAGE) {
      const first = at - (at % BLOCK);
      if (block === 0 || at === first) {
        block = this.#blockAt(first);
      }
      if (block === 0) {
        if (this.#blocks === this.#start.length) {
          return;
        }
        block = this.#blocks++;
        this.#start[block] = first;
      }
      this.#directory.enter(at, block * PAGES_A_BLOCK + (at - first) / PAGE);
      const slot = this.#slot[block] ?? NOT_HELD;
      if (slot >= 0) {
        this.#read(block, slot, at - first, at - first + PAGE);
      }
    }
  }

  /** Numbers the pages of a range that exist by now. */
  #enterNew(start: Address, end: Address): void {
    for (let at = start - (start % PAGE); at < end; at += PAGE) {
      const first = at;
      while (at < end && this.#directory.at(at) === 0) {
        at += PAGE;
      }
      if (at > first) {
        for (const range of this.source.resident(first, at)) {
          this.#enter(range.start, range.end);
        }
      }
    }
  }

  /** The block that begins at an address; 0 if none of its pages is known. */
  #blockAt(first: Address): number {
    for (let at = first; at < first + BLOCK; at += PAGE) {
      const page = this.#directory.at(at);
      if (page !== 0) {
        return page >>> BLOCK_SHIFT;
      }
    }
    return 0;
  }

  /** @returns the slot in which the block is now */
  #load(block: number): number {
    const slot = this.#free < this.#block.length ? this.#free++ : this.#replaced();
    this.#block[slot] = block;
    this.#slot[block] = slot;
    this.#uses[slot] = USED;
    this.#read(block, slot);
    return slot;
  }

  /** Reads the known pages of a part of a block into its slot. */
  #read(block: number, slot: number, from: Bytes = 0, to: Bytes = SLOT): void {
    const first = float64At(this.#start, block);
    for (let at = from; at < to; ) {
      const isKnown = this.#directory.at(first + at) !== 0;
      let next = at;
      do {
        next += PAGE - (next % PAGE);
      } while (isKnown && next < to && this.#directory.at(first + next) !== 0);
      if (isKnown) {
        const length = Math.min(next, to) - at;
        const target = new Uint8Array(this.words.buffer, slot * SLOT + at, length);
        target.fill(0, this.source.readInto(first + at, target));
      }
      at = next;
    }
  }

  /** A slot that was not used for a while. Those that were get a second chance. */
  #replaced(): number {
    for (;;) {
      const slot = this.#hand;
      this.#hand = (slot + 1) % this.#block.length;
      const uses = this.#uses[slot];
      if (uses === IDLE && slot !== this.#newest && slot !== this.#newestButOne) {
        const block = this.#block[slot] ?? 0;
        this.#slot[block] = NOT_HELD;
        this.#direct[block] = 0;
        return slot;
      }
      if (uses === USED) {
        this.#uses[slot] = IDLE;
      }
    }
  }
}
