import type { Bytes } from "./units.js";

const GROWTH = 1.5;

type TypedArray = Uint8Array | Uint16Array | Uint32Array | Float32Array | Float64Array;

/** A typed array that grows at its end. A view taken earlier stays valid: rows never change place or value. */
export class GrowingColumn<Array extends TypedArray> {
  length = 0;
  #array: Array;
  readonly #make: (length: number) => Array;

  /** `rows`: how many are expected. */
  constructor(make: (length: number) => Array, rows = 64) {
    this.#make = make;
    this.#array = make(Math.max(2, rows));
  }

  /** Continues `rows`, which must not change; they are copied before the first row is added. */
  static after<Array extends TypedArray>(rows: Array): GrowingColumn<Array> {
    const Typed = rows.constructor as new (length: number) => Array;
    const column = new GrowingColumn((length) => new Typed(length), 0);
    column.#array = rows;
    column.length = rows.length;
    return column;
  }

  /** Size of its array, including the room for further rows. */
  get bytes(): Bytes {
    return this.#array.byteLength;
  }

  /** Rows that it has room for. */
  get capacity(): number {
    return this.#array.length;
  }

  push(value: number): void {
    if (this.length === this.#array.length) {
      const grown = this.#make(Math.max(2, Math.ceil(this.length * GROWTH)));
      grown.set(this.#array);
      this.#array = grown;
    }
    this.#array[this.length++] = value;
  }

  /** Adds all of `rows`. If they are many, it gets no room for more. */
  pushAll(rows: Array): void {
    const length = this.length + rows.length;
    if (length > this.#array.length) {
      const room = rows.length < this.length ? Math.ceil(this.length * GROWTH) : 0;
      const grown = this.#make(Math.max(2, length, room));
      grown.set(this.#array.subarray(0, this.length));
      this.#array = grown;
    }
    this.#array.set(rows, this.length);
    this.length = length;
  }

  /** Adds rows of arbitrary contents, and returns the array in which they are to be written, from `length - rows` on. */
  extend(rows: number): Array {
    this.length += rows;
    if (this.length > this.#array.length) {
      const grown = this.#make(Math.max(2, Math.ceil(this.length * GROWTH)));
      grown.set(this.#array);
      this.#array = grown;
    }
    return this.#array;
  }

  at(row: number): number {
    return this.#array[row] ?? 0;
  }

  /** The rows so far, without a copy. */
  view(): Array {
    return this.#array.subarray(0, this.length) as Array;
  }
}

export const growingUint8 = () => new GrowingColumn((length) => new Uint8Array(length));
export const growingUint32 = (rows?: number) =>
  new GrowingColumn((length) => new Uint32Array(length), rows);
export const growingFloat64 = (rows?: number) =>
  new GrowingColumn((length) => new Float64Array(length), rows);
