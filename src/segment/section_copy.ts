/** Private copies of a segment's sections, updated at each snapshot without reading unchanged parts. */
import { uint8At, uint32At } from "../model/base/columns.js";
import type { SectionHeader } from "./header.js";

/** Fills `target` from byte `offset` of the segment; returns the number of existing bytes. */
type ReadSegment = (target: Uint8Array, offset: number) => number;

/** Attempts to read a record that is being written. */
const TRIES = 3;
const SMALLEST_BUFFER = 1024;

/** An append-only section: records below `count` are final, so only the tail is ever read. */
export class AppendedCopy {
  #bytes: Uint8Array<ArrayBuffer> = new Uint8Array(0);
  /** Whole records copied. */
  count = 0;
  /** Records that the section counts, but that lie beyond the file's end. */
  missing = 0;

  constructor(readonly stride: number) {}

  get bytes(): Uint8Array<ArrayBuffer> {
    return this.#bytes.subarray(0, this.count * this.stride);
  }

  refresh(read: ReadSegment, section: SectionHeader): void {
    const wanted = Math.min(section.count, section.capacity);
    if (wanted > this.count) {
      this.#bytes = withRoom(this.#bytes, wanted * this.stride);
      const from = this.count * this.stride;
      const got = read(this.#bytes.subarray(from, wanted * this.stride), section.offset + from);
      this.count += Math.floor(got / this.stride);
    }
    this.missing = Math.max(0, wanted - this.count);
  }
}

/**
 * A section whose records are rewritten in place, guarded by a sequence number in their first and last four bytes:
 *
 *     writer    end = n+1 ──> body ──> begin = n+1
 *     reader    begin, of a first read ──> body, of a second ──> end, of a third        equal: whole
 *
 * Three reads are needed because the order in which one read copies its bytes is not guaranteed: processors
 * copy both ends of a short range before its middle. A record that stays torn keeps its last complete copy
 * (zeros if there was none). Records that are written in one store (`guarded` false) are never torn.
 */
export class RewrittenCopy {
  #bytes: Uint8Array<ArrayBuffer> = new Uint8Array(0);
  #before: Uint8Array<ArrayBuffer> = new Uint8Array(0);
  #scratch: Uint8Array<ArrayBuffer> = new Uint8Array(0);
  #after: Uint8Array<ArrayBuffer> = new Uint8Array(0);
  /** Generation of each block before it was last copied completely; -1: copy it again. */
  readonly #copied: Float64Array;
  #blockRecords = 0;
  #place = -1;
  /** Records in the copy. */
  count = 0;
  /** Torn records at the last snapshot. */
  torn = 0;
  missing = 0;

  readonly #guarded: boolean;

  constructor(
    readonly stride: number,
    blocks: number,
    guarded = true,
  ) {
    this.#guarded = guarded;

    this.#copied = new Float64Array(blocks).fill(-1);
  }

  get bytes(): Uint8Array<ArrayBuffer> {
    return this.#bytes.subarray(0, this.count * this.stride);
  }

  /** `records`: number of records of the section to hold (its capacity if any may be in use). */
  refresh(read: ReadSegment, section: SectionHeader, records: number): void {
    const wanted = Math.min(records, section.capacity);
    if (section.blockRecords !== this.#blockRecords || section.offset !== this.#place) {
      this.#copied.fill(-1);
      this.#blockRecords = section.blockRecords;
      this.#place = section.offset;
    }
    this.#bytes = withRoom(this.#bytes, wanted * this.stride);
    const before = this.count;
    this.count = wanted;
    this.torn = 0;
    this.missing = 0;
    const blocks = this.#copied.length;
    const size = this.#blockRecords;
    const covered = Math.min(wanted, blocks * size);
    for (let block = 0; block * size < covered; block++) {
      const from = block * size;
      const to = Math.min(from + size, wanted);
      const generation = uint32At(section.blockGeneration, block);
      // A block that was copied up to a smaller count has unread rows.
      if (this.#copied[block] !== generation || to > before) {
        this.#copied[block] = this.#copyRows(read, section, from, to) ? generation : -1;
      }
    }
    // Rows that no generation covers are always read; a correct writer leaves none.
    if (covered < wanted) {
      this.#copyRows(read, section, covered, wanted);
    }
  }

  /** True if every row was read completely. */
  #copyRows(read: ReadSegment, section: SectionHeader, from: number, to: number): boolean {
    const { stride } = this;
    const start = section.offset + from * stride;
    const there = Math.floor(this.#readThrice(read, start, 0, (to - from) * stride) / stride);
    this.missing += to - from - there;

    let tornHere = 0;
    for (let row = 0; row < there; row++) {
      const at = row * stride;
      let whole = this.#isWhole(at);
      for (let tries = 1; tries < TRIES && !whole; tries++) {
        whole = this.#readThrice(read, start, at, stride) === stride && this.#isWhole(at);
      }
      if (whole) {
        this.#bytes.set(this.#scratch.subarray(at, at + stride), (from + row) * stride);
      } else {
        tornHere += 1;
      }
    }
    this.torn += tornHere;
    return tornHere === 0 && there === to - from;
  }

  /** @returns the number of bytes from `at` on that all three reads returned. */
  #readThrice(read: ReadSegment, start: number, at: number, length: number): number {
    const into = (bytes: Uint8Array<ArrayBuffer>) =>
      read(bytes.subarray(at, at + length), start + at);
    this.#scratch = withRoom(this.#scratch, at + length);
    if (!this.#guarded) {
      return into(this.#scratch);
    }
    this.#before = withRoom(this.#before, at + length);
    this.#after = withRoom(this.#after, at + length);
    const there = into(this.#before);
    return Math.min(there, into(this.#scratch), into(this.#after));
  }

  #isWhole(at: number): boolean {
    const end = at + this.stride - 4;
    return !this.#guarded || u32(this.#before, at) === u32(this.#after, end);
  }
}

function u32(bytes: Uint8Array, at: number): number {
  return (
    (uint8At(bytes, at) |
      (uint8At(bytes, at + 1) << 8) |
      (uint8At(bytes, at + 2) << 16) |
      (uint8At(bytes, at + 3) << 24)) >>>
    0
  );
}

function withRoom(bytes: Uint8Array<ArrayBuffer>, length: number): Uint8Array<ArrayBuffer> {
  if (length <= bytes.length) {
    return bytes;
  }
  const room = new Uint8Array(
    Math.max(length, Math.min(bytes.length * 2, 1 << 26), SMALLEST_BUFFER),
  );
  room.set(bytes);
  return room;
}
