/**
 * Memory reserved from the driver during backward replay: non-overlapping ranges by address. An expandable
 * segment grows and shrinks in parts, so ranges are split where an event names a part.
 */

import { itemAt } from "../../model/base/columns.js";
import type { Address, Bytes } from "../../model/base/units.js";
import type { GpuRangeColumns } from "../../model/gpu/gpu_replay.js";
import { PieceTable } from "../snapshot/piece_table.js";

interface OpenRange {
  readonly address: Address;
  readonly size: Bytes;
  /** The event that releases it; the number of events if none does. */
  readonly end: number;
  readonly stream: number;
  readonly pool: number;
  readonly expandable: boolean;
}

export class OpenRanges {
  /** By address. */
  readonly #open: OpenRange[] = [];
  readonly #closed = new PieceTable((rows) => ({
    address: new Float64Array(rows),
    size: new Float64Array(rows),
    start: new Int32Array(rows),
    end: new Int32Array(rows),
    stream: new Uint16Array(rows),
    pool: new Uint32Array(rows),
    expandable: new Uint8Array(rows),
  }));

  /** The range that contains an address. */
  holding(address: Address): OpenRange | undefined {
    const range = this.#open[this.#below(address + 1) - 1];
    return range !== undefined && address < range.address + range.size ? range : undefined;
  }

  /** @returns false if it overlaps another; nothing is added then. */
  add(range: OpenRange): boolean {
    const at = this.#below(range.address);
    const before = this.#open[at - 1];
    const after = this.#open[at];
    if (
      (before !== undefined && before.address + before.size > range.address) ||
      (after !== undefined && range.address + range.size > after.address)
    ) {
      return false;
    }
    this.#open.splice(at, 0, range);
    return true;
  }

  /** Ends the lifetime of `[address, address + size)`, which event `start` reserved from the driver; `whole` if
   * it must be exactly one range.
   * @returns false if there is no such range; nothing is changed then. */
  close(address: Address, size: Bytes, start: number, whole: boolean): boolean {
    const end = address + size;
    const first = this.#below(address + 1) - 1;
    let last = first;
    let reached = address;
    for (; reached < end; last++) {
      const range = this.#open[last];
      if (range === undefined || range.address > reached || range.address + range.size <= reached) {
        return false;
      }
      if (whole && (range.address !== address || range.size !== size)) {
        return false;
      }
      reached = range.address + range.size;
    }
    if (size <= 0) {
      return false;
    }
    const parts: OpenRange[] = [];
    for (const range of this.#open.slice(first, last)) {
      const from = Math.max(range.address, address);
      const to = Math.min(range.address + range.size, end);
      if (range.address < from) {
        parts.push({ ...range, size: from - range.address });
      }
      const expandable = range.expandable || !whole;
      this.#keep({ ...range, address: from, size: to - from, expandable }, start);
      if (to < range.address + range.size) {
        parts.push({ ...range, address: to, size: range.address + range.size - to });
      }
    }
    this.#open.splice(first, last - first, ...parts);
    return true;
  }

  /** All lifetimes; ranges that are still open existed before the trace. */
  finish(): GpuRangeColumns {
    for (const range of this.#open.splice(0)) {
      this.#keep(range, -1);
    }
    return this.#closed.take();
  }

  #keep(range: OpenRange, start: number): void {
    const row = this.#closed.append();
    const { piece } = this.#closed;
    piece.address[row] = range.address;
    piece.size[row] = range.size;
    piece.start[row] = start;
    piece.end[row] = range.end;
    piece.stream[row] = range.stream;
    piece.pool[row] = range.pool;
    piece.expandable[row] = range.expandable ? 1 : 0;
  }

  /** Number of ranges that begin below an address. */
  #below(address: Address): number {
    let low = 0;
    let high = this.#open.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (itemAt(this.#open, middle).address < address) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
}
