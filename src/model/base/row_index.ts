/**
 * A hash index over the rows of some columnar table: open addressing in typed arrays, without an object per
 * row. The table stores the rows and compares them.
 */

import type { Bytes } from "./units.js";

const LEAST_SLOTS = 256;

export class RowIndex {
  #size = 0;
  /** Row + 1; 0 is empty. */
  #rows: Uint32Array;
  #hashes: Uint32Array;

  /** `rows`: how many are expected. */
  constructor(rows = 0) {
    const slots = Math.max(LEAST_SLOTS, 2 ** Math.ceil(Math.log2(2 * rows + 1)));
    this.#rows = new Uint32Array(slots);
    this.#hashes = new Uint32Array(slots);
  }

  get bytes(): Bytes {
    return this.#rows.byteLength + this.#hashes.byteLength;
  }

  /** The row with this hash for which `same` is true, or -1. */
  find(hash: number, same: (row: number) => boolean): number {
    const mask = this.#rows.length - 1;
    const wanted = hash >>> 0;
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const entry = this.#rows[slot] ?? 0;
      if (entry === 0) {
        return -1;
      }
      if (this.#hashes[slot] === wanted && same(entry - 1)) {
        return entry - 1;
      }
    }
  }

  /** Adds a row that {@link find} did not find. */
  add(hash: number, row: number): void {
    if (this.#size * 2 >= this.#rows.length) {
      this.#grow();
    }
    this.#size += 1;
    this.#place(hash >>> 0, row + 1);
  }

  #place(hash: number, entry: number): void {
    const mask = this.#rows.length - 1;
    let slot = hash & mask;
    while (this.#rows[slot] !== 0) {
      slot = (slot + 1) & mask;
    }
    this.#rows[slot] = entry;
    this.#hashes[slot] = hash;
  }

  #grow(): void {
    const rows = this.#rows;
    const hashes = this.#hashes;
    this.#rows = new Uint32Array(rows.length * 2);
    this.#hashes = new Uint32Array(rows.length * 2);
    for (let slot = 0; slot < rows.length; slot++) {
      if (rows[slot] !== 0) {
        this.#place(hashes[slot] ?? 0, rows[slot] ?? 0);
      }
    }
  }
}

/** Mixes one more 32-bit word into a hash (finalizer of MurmurHash3, by A. Appleby, public domain). */
export function mixHash(hash: number, word: number): number {
  let mixed = Math.imul(hash ^ word, 0x85ebca6b);
  mixed ^= mixed >>> 13;
  mixed = Math.imul(mixed, 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}
