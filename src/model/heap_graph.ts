/**
 * The objects of one program and who refers to whom, as columns. Node 0 is the root of all roots; the
 * nodes behind it up to `firstObject` are the roots by kind (modules, frames, ...), the rest are objects.
 *
 *   edges of node n: edgeTo[edgeStart[n] .. edgeStart[n + 1])
 */
import type { Address, Bytes } from "./units.js";

/** Row of a {@link HeapGraph}. */
export type NodeId = number;

export interface HeapGraph {
  readonly nodes: number;
  /** The first node that is an object. */
  readonly firstObject: NodeId;
  /** Of the object itself, behind its GC header; 0 for a root. */
  readonly address: Float64Array;
  /** Row of `typeNames`. */
  readonly type: Uint32Array;
  /** Bytes of the object with its header and the buffers that it alone owns. */
  readonly shallow: Float64Array;
  /** `nodes + 1` long, ascending. */
  readonly edgeStart: Uint32Array;
  readonly edgeTo: Uint32Array;
  readonly typeNames: readonly string[];
}

/** What a node's death would free: the tree of immediate dominators and the sizes under it. */
export interface DominatorTree {
  /** 0 for node 0, and for what no root reaches. */
  readonly dominator: Uint32Array;
  /** Shallow sizes of all that the node dominates, itself included; 0 for what no root reaches. */
  readonly retained: Float64Array;
  /** Nodes under it, itself included. */
  readonly retainedNodes: Uint32Array;
  /** 1 where a root reaches the node. */
  readonly reached: Uint8Array;
}

/** Position of an address among ascending ones; -1 where it is none of them. */
export function findAddress(ascending: Float64Array, address: Address): number {
  let low = 0;
  let high = ascending.length - 1;
  while (low <= high) {
    const middle = (low + high) >>> 1;
    const found = ascending[middle];
    if (found === address) {
      return middle;
    }
    if (found < address) {
      low = middle + 1;
    } else {
      high = middle - 1;
    }
  }
  return -1;
}

export function sumOf(column: ArrayLike<Bytes>): Bytes {
  let sum = 0;
  for (let row = 0; row < column.length; row++) {
    sum += column[row];
  }
  return sum;
}
