/**
 * The non-zero pages of a core file. A core contains whole mappings, including untouched parts as zeroes: 8 MiB
 * for a thread's stack that used 20 KiB. A page of zeroes counts as never touched, although a core file cannot
 * prove that.
 */

import type { AddressRange, Memory } from "../linux/memory/memory.js";
import { itemAt } from "../model/base/columns.js";
import type { Address, Bytes } from "../model/base/units.js";

const PAGE = 4096;
const PIECE = 4 * 2 ** 20;
const ZEROES = Buffer.alloc(PAGE);

export class HeldPages {
  /** Pages that are not all zeroes; ascending, neighbours merged within a mapping. */
  readonly #ranges: { start: Address; end: Address }[] = [];
  /** Bytes in the core file, including zeroes; bytes in pages of zeroes. */
  readonly heldBytes: Bytes;
  readonly zeroBytes: Bytes;

  constructor(memory: Memory) {
    const piece = Buffer.alloc(PIECE);
    let held = 0;
    let kept = 0;
    for (const mapping of memory.mappings) {
      for (const { start, end } of memory.resident(mapping.start, mapping.end)) {
        held += end - start;
        for (let at = start; at < end; at += PIECE) {
          const length = memory.readInto(at, piece.subarray(0, Math.min(PIECE, end - at)));
          kept += this.#keep(at, piece, length);
        }
      }
    }
    this.heldBytes = held;
    this.zeroBytes = held - kept;
  }

  #keep(address: Address, piece: Buffer, length: Bytes): Bytes {
    let kept = 0;
    for (let at = 0; at + PAGE <= length; at += PAGE) {
      if (piece[at] === 0 && piece.compare(ZEROES, 0, PAGE, at, at + PAGE) === 0) {
        continue;
      }
      const last = this.#ranges.at(-1);
      if (last?.end === address + at) {
        last.end += PAGE;
      } else {
        this.#ranges.push({ start: address + at, end: address + at + PAGE });
      }
      kept += PAGE;
    }
    return kept;
  }

  within(start: Address, end: Address): AddressRange[] {
    let low = 0;
    let high = this.#ranges.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (itemAt(this.#ranges, middle).end <= start) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    const found: AddressRange[] = [];
    for (let index = low; index < this.#ranges.length; index++) {
      const range = itemAt(this.#ranges, index);
      if (range.start >= end) {
        break;
      }
      found.push({ start: Math.max(start, range.start), end: Math.min(end, range.end) });
    }
    return found;
  }
}
