/**
 * The pickle's memo: tokens by number, in pieces so that growing never copies. Entries hold ids, rows and
 * memo numbers, all below 2^32; anything else (a number, which no pickler remembers) stands in `#others`.
 */
import { itemAt } from "../../model/base/columns.js";

const SHIFT = 12;
const PIECE = 2 ** SHIFT;
const OTHER = 0xffffffff;

export class Memo {
  length = 0;
  /** Containers that were fetched while they were empty. */
  readonly fetched = new Set<number>();
  readonly #pieces: { readonly kinds: Uint8Array; readonly values: Uint32Array }[] = [];
  readonly #others = new Map<number, number>();

  /** @param index at most `length` */
  set(index: number, kind: number, value: number): void {
    if (index >>> SHIFT === this.#pieces.length) {
      this.#pieces.push({ kinds: new Uint8Array(PIECE), values: new Uint32Array(PIECE) });
    }
    const { kinds, values } = itemAt(this.#pieces, index >>> SHIFT);
    const row = index & (PIECE - 1);
    kinds[row] = kind;
    if (value >= 0 && value < OTHER && value >>> 0 === value) {
      values[row] = value;
    } else {
      values[row] = OTHER;
      this.#others.set(index, value);
    }
    if (index === this.length) {
      this.length += 1;
    }
  }

  kind(index: number): number {
    return this.#pieces[index >>> SHIFT]?.kinds[index & (PIECE - 1)] ?? 0;
  }

  value(index: number): number {
    const value = this.#pieces[index >>> SHIFT]?.values[index & (PIECE - 1)] ?? 0;
    return value === OTHER ? (this.#others.get(index) ?? 0) : value;
  }
}
