type TypedArray = Uint8Array | Uint16Array | Uint32Array | Float32Array | Float64Array;

/** A typed array that grows at its end. A view taken earlier stays valid: rows never change place or value. */
export class GrowingColumn<Array extends TypedArray> {
  length = 0;
  #array: Array;
  readonly #make: (length: number) => Array;

  /** `rows`: how many are expected. */
  constructor(make: (length: number) => Array, rows = 64) {
    this.#make = make;
    this.#array = make(Math.max(1, rows));
  }

  push(value: number): void {
    if (this.length === this.#array.length) {
      const grown = this.#make(this.length * 2);
      grown.set(this.#array);
      this.#array = grown;
    }
    this.#array[this.length++] = value;
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
