/**
 * The pickle's memo: tokens by number, in pieces so that growing never copies. Entries hold ids, rows and
 * memo numbers, all below 2^32; anything else (a number, which no pickler memoizes) is in `#others`.
 */

const SHIFT = 12;
const PIECE = 2 ** SHIFT;
const OTHER = 0xffffffff;

export class Memo {
  length = 0;
  /** Containers that were fetched while they were empty. */
  readonly fetched = new Set<number>();
  readonly #kinds: Uint8Array[] = [];
  readonly #values: Uint32Array[] = [];
  readonly #others = new Map<number, number>();

  /** @param index at most `length` */
  set(index: number, kind: number, value: number): void {
    if (index >>> SHIFT === this.#kinds.length) {
      this.#kinds.push(new Uint8Array(PIECE));
      this.#values.push(new Uint32Array(PIECE));
    }
    const row = index & (PIECE - 1);
    this.#kindsOf(index)[row] = kind;
    if (value >= 0 && value < OTHER && value >>> 0 === value) {
      this.#valuesOf(index)[row] = value;
    } else {
      this.#valuesOf(index)[row] = OTHER;
      this.#others.set(index, value);
    }
    if (index === this.length) {
      this.length += 1;
    }
  }

  kind(index: number): number {
    return this.#kindsOf(index)[index & (PIECE - 1)] ?? 0;
  }

  value(index: number): number {
    const value = this.#valuesOf(index)[index & (PIECE - 1)] ?? 0;
    return value === OTHER ? (this.#others.get(index) ?? 0) : value;
  }

  // Checking for a piece in the two functions below would make reading a snapshot 4 % slower.

  #kindsOf(index: number): Uint8Array {
    // biome-ignore lint/style/noNonNullAssertion: no caller names an entry beyond `length`
    return this.#kinds[index >>> SHIFT]!;
  }

  #valuesOf(index: number): Uint32Array {
    // biome-ignore lint/style/noNonNullAssertion: as above
    return this.#values[index >>> SHIFT]!;
  }
}
