/** A column of node numbers, up to hundreds of millions: pieces of a fixed size, joined once at the end. */
import { itemAt } from "../../../model/base/columns.js";
import type { NodeId } from "../../../model/heap/heap_graph.js";

const PIECE = 2 ** 20;

export class EdgeColumn {
  length = 0;
  readonly #pieces: Uint32Array<ArrayBuffer>[] = [];
  #last = new Uint32Array(0);
  #free = PIECE;

  push(node: NodeId): void {
    if (this.#free === PIECE) {
      const piece = this.length / PIECE;
      this.#last = this.#pieces[piece] ?? new Uint32Array(PIECE);
      this.#pieces[piece] = this.#last;
      this.#free = 0;
    }
    this.#last[this.#free++] = node;
    this.length += 1;
  }

  at(row: number): NodeId {
    return this.#pieces[Math.floor(row / PIECE)]?.[row % PIECE] ?? 0;
  }

  /** Removes what was appended beyond a length. */
  shorten(length: number): void {
    this.length = length;
    this.#free = length % PIECE;
    if (this.#free === 0) {
      this.#free = PIECE;
    } else {
      this.#last = itemAt(this.#pieces, Math.floor(length / PIECE));
    }
  }

  /** A copy as one array. */
  view(): Uint32Array {
    const whole = new Uint32Array(this.length);
    for (const [piece, values] of this.#pieces.entries()) {
      const from = piece * PIECE;
      if (from < this.length) {
        whole.set(values.subarray(0, Math.min(PIECE, this.length - from)), from);
      }
    }
    return whole;
  }
}
