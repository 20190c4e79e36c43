/**
 * The pickle's memo: tokens by number, in pieces so that growing never copies. A token is one number of 32 bits:
 *
 *     bits 31..27  kind        bits 26..0  an id or a row
 *
 * Values that do not fit (a number, which no pickler memoizes) are in `#others`. The value of an open container
 * is the number of its own entry, so it is not stored.
 */
import { Kind } from "./token.js";

const SHIFT = 12;
const PIECE = 2 ** SHIFT;
const KIND_SHIFT = 27;
const OTHER = 2 ** KIND_SHIFT - 1;

export class Memo {
  length = 0;
  /** Containers that were fetched while they were empty. */
  readonly fetched = new Set<number>();
  readonly #tokens: Uint32Array[] = [];
  readonly #others = new Map<number, number>();

  /** @param index at most `length` */
  set(index: number, kind: number, value: number): void {
    if (index >>> SHIFT === this.#tokens.length) {
      this.#tokens.push(new Uint32Array(PIECE));
    }
    let stored = value;
    if (kind === Kind.openDict || kind === Kind.openList) {
      stored = 0;
    } else if (!(value >= 0 && value < OTHER && value >>> 0 === value)) {
      stored = OTHER;
      this.#others.set(index, value);
    }
    this.#pieceOf(index)[index & (PIECE - 1)] = (kind << KIND_SHIFT) | stored;
    if (index === this.length) {
      this.length += 1;
    }
  }

  kind(index: number): number {
    return (this.#pieceOf(index)[index & (PIECE - 1)] ?? 0) >>> KIND_SHIFT;
  }

  value(index: number): number {
    const token = this.#pieceOf(index)[index & (PIECE - 1)] ?? 0;
    const value = token & OTHER;
    if (value === OTHER) {
      return this.#others.get(index) ?? 0;
    }
    const kind = token >>> KIND_SHIFT;
    return kind === Kind.openDict || kind === Kind.openList ? index : value;
  }

  // Checking for a piece here would make reading a snapshot 4 % slower.
  #pieceOf(index: number): Uint32Array {
    // biome-ignore lint/style/noNonNullAssertion: no caller names an entry beyond `length`
    return this.#tokens[index >>> SHIFT]!;
  }
}
