/**
 * The pickle's memo: tokens by number. A token is one number of 32 bits:
 *
 *     bits 31..27  kind        bits 26..0  an id or a row
 *
 * Values that do not fit (a number, which no pickler memoizes) are in `#others`. The value of an open container
 * is the number of its own entry, so it is not stored.
 */
import { Kind } from "./token.js";

const KIND_SHIFT = 27;
const OTHER = 2 ** KIND_SHIFT - 1;

export class Memo {
  length = 0;
  /** Containers that were fetched while they were empty. */
  readonly fetched = new Set<number>();
  #tokens = new Uint32Array(4096);
  readonly #others = new Map<number, number>();

  /** @param index at most `length` */
  set(index: number, kind: number, value: number): void {
    if (index === this.length) {
      this.length += 1;
      if (index === this.#tokens.length) {
        this.#grow();
      }
    }
    let stored = OTHER;
    if (kind !== Kind.openDict && kind !== Kind.openList) {
      if (value >= 0 && value < OTHER && value >>> 0 === value) {
        stored = value;
      } else {
        this.#others.set(index, value);
      }
    }
    this.#tokens[index] = (kind << KIND_SHIFT) | stored;
  }

  kind(index: number): number {
    return (this.#tokens[index] ?? 0) >>> KIND_SHIFT;
  }

  value(index: number): number {
    const token = this.#tokens[index] ?? 0;
    const value = token & OTHER;
    return value === OTHER ? this.#otherValue(index, token >>> KIND_SHIFT) : value;
  }

  #otherValue(index: number, kind: number): number {
    return kind === Kind.openDict || kind === Kind.openList
      ? index
      : (this.#others.get(index) ?? 0);
  }

  #grow(): void {
    const grown = new Uint32Array(2 * this.#tokens.length);
    grown.set(this.#tokens);
    this.#tokens = grown;
  }
}
