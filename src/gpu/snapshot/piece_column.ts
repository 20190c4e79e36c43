import { itemAt } from "../../model/base/columns.js";

type TypedArray = Uint8Array | Uint16Array | Uint32Array | Int32Array | Float64Array;

const SHIFT = 12;
const PIECE = 2 ** SHIFT;

/** A column in pieces: growing never copies, so that a trace of any length needs no second copy of itself. */
export class PieceColumn<Array extends TypedArray> {
  length = 0;
  #pieces: Array[] = [];
  #last: Array;
  readonly #make: (length: number) => Array;

  constructor(make: (length: number) => Array) {
    this.#make = make;
    this.#last = make(0);
  }

  push(value: number): void {
    const row = this.length++ & (PIECE - 1);
    if (row === 0) {
      this.#last = this.#make(PIECE);
      this.#pieces.push(this.#last);
    }
    this.#last[row] = value;
  }

  at(row: number): number {
    return this.#pieces[row >>> SHIFT]?.[row & (PIECE - 1)] ?? 0;
  }

  set(row: number, value: number): void {
    const piece = this.#pieces[row >>> SHIFT];
    if (piece !== undefined) {
      piece[row & (PIECE - 1)] = value;
    }
  }

  /** Rows `[from, to)` as one array. */
  slice(from = 0, to = this.length): Array {
    const whole = this.#make(to - from);
    for (let row = from; row < to; ) {
      const start = row & (PIECE - 1);
      const count = Math.min(PIECE - start, to - row);
      whole.set(itemAt(this.#pieces, row >>> SHIFT).subarray(start, start + count), row - from);
      row += count;
    }
    return whole;
  }

  /** All rows as one array; afterwards the column is empty and its pieces are freed. */
  take(): Array {
    const whole = this.slice();
    this.#pieces = [];
    this.length = 0;
    return whole;
  }
}

export const piecesOfUint8 = () => new PieceColumn((length) => new Uint8Array(length));
export const piecesOfUint16 = () => new PieceColumn((length) => new Uint16Array(length));
export const piecesOfUint32 = () => new PieceColumn((length) => new Uint32Array(length));
export const piecesOfFloat64 = () => new PieceColumn((length) => new Float64Array(length));
export const piecesOfInt32 = () => new PieceColumn((length) => new Int32Array(length));
