/**
 * The edges of a graph: a column of node numbers, up to hundreds of millions. Those of the roots are known last but come
 * first, so there is room for them:
 *
 *     [ room .......... | roots' | objects' edges ............ | untouched, takes no memory ]
 */
import type { NodeId } from "../../../model/heap/heap_graph.js";

/** Roots are few, unless most objects are garbage or belong to C code. */
const ROOM = 2 ** 16;

export class EdgeColumn {
  length = 0;
  #array: Uint32Array;

  /** `edges`: how many are expected. */
  constructor(edges = 64) {
    this.#array = new Uint32Array(ROOM + edges);
  }

  push(node: NodeId): void {
    const at = ROOM + this.length;
    if (at === this.#array.length) {
      const grown = new Uint32Array(at + this.length * 2 + 64);
      grown.set(this.#array);
      this.#array = grown;
    }
    this.#array[at] = node;
    this.length += 1;
  }

  at(row: number): NodeId {
    return this.#array[ROOM + row] ?? 0;
  }

  /** Removes what was appended beyond a length. */
  shorten(length: number): void {
    this.length = length;
  }

  /** The edges so far, without a copy. */
  view(): Uint32Array {
    return this.#array.subarray(ROOM, ROOM + this.length);
  }

  /** The same after others. */
  viewAfter(first: Uint32Array): Uint32Array {
    if (first.length <= ROOM) {
      this.#array.set(first, ROOM - first.length);
      return this.#array.subarray(ROOM - first.length, ROOM + this.length);
    }
    const whole = new Uint32Array(first.length + this.length);
    whole.set(first);
    whole.set(this.view(), first.length);
    return whole;
  }
}
