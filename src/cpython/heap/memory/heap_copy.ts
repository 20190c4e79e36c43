/**
 * The copy of a program's memory from which a graph is built. It is taken while the program is paused, and
 * analysed after the program continues.
 *
 * Its pages are one after the other in one buffer; neighbours in memory are neighbours here.
 *
 * Bytes are accessed through views of parts, because a single view could not be larger than 4 GiB. The buffer
 * is allocated and touched before the program is paused: page faults would cost five times as much as the
 * copying. copy_plan.ts decides what is copied. Variables of libraries are copied after the pause: whether one
 * of them refers to an object affects only the name of a root, not which objects are roots.
 */

import type { AddressRange, Mapping, Memory } from "../../../linux/memory/memory.js";
import type { Address, Bytes } from "../../../model/base/units.js";
import { sumOf } from "./copy_plan.js";
import type { HeapPages } from "./heap_pages.js";
import { PAGE, PageDirectory } from "./page_directory.js";
import { wordAt } from "./words.js";

const WORDS_A_PAGE = PAGE / 4;
/** Number of bytes copied at once. */
const PIECE = 4 * 2 ** 20;
/** As many as Node has threads for file operations. */
const READ_AT_ONCE = 4;
/** Indexes of its words stay below 2^31, because they are used in 32-bit arithmetic. */
export const LARGEST_COPY: Bytes = 2 ** 33 - 2 * PAGE;

/** A part of a range, and its place in the copy. */
interface Piece {
  readonly address: Address;
  readonly page: number;
  readonly target: Uint8Array;
}

export class HeapCopy implements HeapPages {
  readonly pid;
  readonly name;
  mappings: readonly Mapping[];
  /** All copied pages, as u32. */
  readonly words: Uint32Array;
  readonly ranges: readonly AddressRange[];
  readonly isLive = false;
  readonly #directory = new PageDirectory();
  #pages = 1;

  /** Allocates `room` bytes and touches them. */
  constructor(
    readonly source: Memory,
    room: Bytes,
  ) {
    this.pid = source.pid;
    this.name = source.name;
    this.mappings = source.mappings;
    this.ranges = [];
    this.words = new Uint32Array(Math.ceil(room / PAGE + 1) * WORDS_A_PAGE);
    for (let at = WORDS_A_PAGE; at < this.words.length; at += WORDS_A_PAGE) {
      this.words[at] = 1;
    }
  }

  get pages(): number {
    return this.#pages;
  }

  /** Measures how fast the first ranges are copied now, in bytes per millisecond, and discards the result. */
  async tryOut(ranges: readonly AddressRange[], most: Bytes): Promise<number> {
    const first: AddressRange[] = [];
    for (const { start, end } of ranges) {
      const left = most - sumOf(first);
      if (left > 0) {
        first.push({ start, end: Math.min(end, start + left) });
      }
    }
    const started = performance.now();
    await this.fillConcurrently(first);
    const tookMs = performance.now() - started;
    const bytes = sumOf(this.ranges);
    (this.ranges as AddressRange[]).length = 0;
    this.#directory.clear();
    this.#pages = 1;
    return bytes / Math.max(tookMs, 1e-3);
  }

  /** Copies ranges in order; what no longer fits is left out. */
  fill(ranges: readonly AddressRange[]): void {
    for (const piece of this.#pieces(ranges)) {
      this.#keep(piece, this.source.readInto(piece.address, piece.target));
    }
    this.#sortRanges();
  }

  /** The same in any order, several pieces at once, while the program is paused. */
  async fillConcurrently(ranges: readonly AddressRange[]): Promise<void> {
    const { source } = this;
    if (source.readConcurrently === undefined) {
      this.fill(ranges);
      return;
    }
    const pieces = this.#pieces(ranges);
    const copyPieces = async () => {
      for (let next = pieces.next(); !next.done; next = pieces.next()) {
        const { address, target } = next.value;
        this.#keep(next.value, (await source.readConcurrently?.(address, target)) ?? 0);
      }
    };
    await Promise.all(Array.from({ length: READ_AT_ONCE }, copyPieces));
    this.#sortRanges();
  }

  /** Everything is kept. */
  keep(): void {}

  /**
   * Reads the current contents of a range, in pieces as contiguous as here. Pages that were not copied are
   * added if there is room.
   */
  renew(start: Address, bytes: Bytes): void {
    const end = start + bytes;
    const pageOf = (at: Address) => this.pageAt(at >>> 0, Math.floor(at / 2 ** 32));
    for (let at = start; at < end; ) {
      const first = Math.floor(at / PAGE) * PAGE;
      const page = pageOf(at);
      let next = first + PAGE;
      while (next < end && pageOf(next) === (page === 0 ? 0 : page + (next - first) / PAGE)) {
        next += PAGE;
      }
      if (page === 0) {
        this.fill(this.source.resident(first, next));
      } else {
        const until = Math.min(end, next);
        this.source.readInto(at, this.#bytes(page * PAGE + (at - first), until - at));
      }
      at = next;
    }
  }

  *#pieces(ranges: readonly AddressRange[]): Generator<Piece> {
    this.mappings = this.source.mappings;
    const most = this.words.length / WORDS_A_PAGE;
    for (const { start, end } of ranges) {
      for (let address = start; address < end && this.#pages < most; address += PIECE) {
        const length = Math.min(PIECE, end - address, (most - this.#pages) * PAGE);
        const page = this.#pages;
        this.#pages += Math.ceil(length / PAGE);
        yield { address, page, target: this.#bytes(page * PAGE, length) };
      }
    }
  }

  #keep({ address, page, target }: Piece, got: Bytes): void {
    target.fill(0, got);
    const pages = Math.ceil(got / PAGE);
    for (let n = 0; n < pages; n++) {
      this.#directory.enter(address + n * PAGE, page + n);
    }
    if (got > 0) {
      (this.ranges as AddressRange[]).push({ start: address, end: address + pages * PAGE });
    }
  }

  #sortRanges(): void {
    (this.ranges as AddressRange[]).sort((a, b) => a.start - b.start);
  }

  pageAt(low: number, high: number): number {
    return this.#directory.find(low, high);
  }

  index(address: Address): number {
    const low = address >>> 0;
    const page = this.#directory.find(low, Math.floor(address / 2 ** 32));
    return page === 0 ? -1 : page * WORDS_A_PAGE + ((low & (PAGE - 1)) >>> 2);
  }

  get bytes(): Bytes {
    return this.words.byteLength;
  }

  /** Pages of one range are adjacent. */
  *contents() {
    for (const { start, end } of this.ranges) {
      const at = this.index(start);
      yield { start, words: this.words.subarray(at, at + (end - start) / 4) };
    }
  }

  /** A word as a Number; -1 if it was not copied. */
  word(address: Address): number {
    const at = this.index(address);
    return at < 0 ? -1 : wordAt(this.words, at);
  }

  #bytes(from: Bytes, length: Bytes): Uint8Array {
    return new Uint8Array(this.words.buffer, from, length);
  }

  refresh(): boolean {
    return true;
  }

  /**
   * Reads from the copy, page by page. Memory that was not copied never changes (code, names of types in it),
   * so it is read from the program.
   */
  readInto(address: Address, target: Uint8Array): Bytes {
    let done = 0;
    while (done < target.length) {
      const at = address + done;
      const page = this.pageAt(at >>> 0, Math.floor(at / 2 ** 32));
      if (page === 0) {
        return done === 0 ? this.source.readInto(address, target) : done;
      }
      const within = at % PAGE;
      const length = Math.min(PAGE - within, target.length - done);
      target.set(this.#bytes(page * PAGE + within, length), done);
      done += length;
    }
    return done;
  }

  resident(start: Address, end: Address): AddressRange[] {
    const found: { start: Address; end: Address }[] = [];
    for (const range of this.ranges) {
      if (range.start < end && range.end > start) {
        const last = found.at(-1);
        const clipped = { start: Math.max(start, range.start), end: Math.min(end, range.end) };
        if (last?.end === clipped.start) {
          last.end = clipped.end;
        } else {
          found.push(clipped);
        }
      }
    }
    return found;
  }

  openFile(mapping: Mapping): number | null {
    return this.source.openFile(mapping);
  }

  close(): void {
    // The program's own descriptors are closed by whoever opened them.
  }
}
