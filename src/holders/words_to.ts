/** Passes over memory for words that are wanted addresses. */

import type { AddressRange, Memory } from "../linux/memory/memory.js";
import type { Address, Bytes } from "../model/base/units.js";

/** A bit filter over words, half a MiB in size. It quickly rejects most of the many millions of words. */
const FILTER_BITS = 2 ** 22;
const PIECE: Bytes = 2 ** 20;

interface Piece {
  readonly start: Address;
  readonly words: Uint32Array;
}

/** The places of words that are keys of `wanted`, with its values. */
export function* wordsTo(
  contents: Iterable<Piece>,
  wanted: ReadonlyMap<Address, number>,
): Generator<{ readonly place: Address; readonly row: number }> {
  const filter = new Uint32Array(FILTER_BITS / 32);
  for (const address of wanted.keys()) {
    const bit = (address >>> 3) & (FILTER_BITS - 1);
    filter[bit >>> 5] = (filter[bit >>> 5] ?? 0) | (1 << (bit & 31));
  }
  for (const { start, words } of contents) {
    let place = start;
    for (let at = 0; at + 1 < words.length; at += 2, place += 8) {
      const low = words[at] ?? 0;
      const bit = (low >>> 3) & (FILTER_BITS - 1);
      if ((((filter[bit >>> 5] ?? 0) >>> (bit & 31)) & 1) === 1) {
        const row = wanted.get(low + (words[at + 1] ?? 0) * 2 ** 32);
        if (row !== undefined) {
          yield { place, row };
        }
      }
    }
  }
}

/** The present contents of memory; an array is valid until the next step. */
export function* contentsOf(memory: Memory, ranges: readonly AddressRange[]): Generator<Piece> {
  const buffer = new Uint8Array(PIECE);
  for (const { start, end } of ranges) {
    for (let at = start; at < end; at += PIECE) {
      const got = memory.readInto(at, buffer.subarray(0, Math.min(PIECE, end - at)));
      yield { start: at, words: new Uint32Array(buffer.buffer, 0, got >>> 2) };
    }
  }
}
