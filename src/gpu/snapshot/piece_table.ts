/**
 * Rows of several columns, in pieces: growing never copies, so that a trace of any length needs no second copy
 * of itself.
 *
 * A reader or writer of many rows uses the arrays of a piece directly (`table.piece.size[row] = ...`). A function
 * that takes any column would be compiled for all kinds of arrays at once, which takes several times as long.
 */
import { itemAt } from "../../model/base/columns.js";

type Column = Uint8Array | Uint16Array | Uint32Array | Int32Array | Float64Array;
type Columns = Readonly<Record<string, Column>>;
/** Whole columns, and the number of rows. */
export type Taken<Piece> = { readonly length: number } & { [Name in keyof Piece]: Piece[Name] };

const SHIFT = 16;
const ROWS = 2 ** SHIFT;

/** The row of a table, as a row of its piece. */
export function rowInPiece(row: number): number {
  return row & (ROWS - 1);
}

export class PieceTable<Piece extends Columns> {
  length = 0;
  /** The piece of the last row. */
  piece: Piece;
  readonly #pieces: Piece[] = [];
  readonly #make: (rows: number) => Piece;

  /** @param make creates the columns, each of that many rows */
  constructor(make: (rows: number) => Piece) {
    this.#make = make;
    this.piece = make(0);
  }

  /** Adds a row of zeros. @returns its row in `piece` */
  append(): number {
    const row = this.length++ & (ROWS - 1);
    if (row === 0) {
      this.piece = this.#make(ROWS);
      this.#pieces.push(this.piece);
    }
    return row;
  }

  pieceOf(row: number): Piece {
    return itemAt(this.#pieces, row >>> SHIFT);
  }

  /** `count` rows from `first` on. */
  slice(first: number, count: number): Taken<Piece> {
    const whole = this.#make(count);
    for (const [name, column] of Object.entries(whole)) {
      this.#copy(name, first, column as Column);
    }
    return { ...whole, length: count };
  }

  /** All rows; afterwards the table is empty. Each column is freed before the next one is joined. */
  take(): Taken<Piece> {
    const { length } = this;
    const whole = this.#make(0) as Record<string, Column>;
    const none = this.#make(0);
    for (const [name, empty] of Object.entries(none)) {
      const make = empty.constructor as new (rows: number) => Column;
      const column = new make(length);
      this.#copy(name, 0, column);
      whole[name] = column;
      for (const piece of this.#pieces as Record<string, Column>[]) {
        piece[name] = empty;
      }
    }
    this.#pieces.length = 0;
    this.length = 0;
    return { ...(whole as Piece), length };
  }

  #copy(name: string, first: number, whole: Column): void {
    for (let row = first; row < first + whole.length; ) {
      const start = rowInPiece(row);
      const count = Math.min(ROWS - start, first + whole.length - row);
      const column = this.pieceOf(row)[name] as Column;
      whole.set(column.subarray(start, start + count), row - first);
      row += count;
    }
  }
}
