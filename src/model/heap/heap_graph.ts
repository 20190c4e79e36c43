/**
 * The objects of one program and their references, as columns. Node 0 is the common root; the nodes after it up
 * to `firstObject` are the kinds of roots (modules, frames, ...), the rest are objects.
 *
 *   edges of node n: edgeTo[edgeStart[n] .. edgeStart[n + 1])
 *
 * Most objects are numbers and texts that one object refers to. They have no edge, but the object's number in a column, so
 * that passes over the edges need not visit them.
 */

import type { Bytes, Objects } from "../base/units.js";

/** Row of a {@link HeapGraph}. */
export type NodeId = number;

export interface HeapGraph {
  readonly nodes: number;
  /** The first node that is an object. */
  readonly firstObject: NodeId;
  /** Address of the object itself, after its GC header; 0 for a root. */
  readonly address: Float64Array;
  /** Row of `typeNames`. */
  readonly type: Uint32Array;
  /** Bytes of the object including its header and the buffers that only it owns. */
  readonly shallow: Float64Array;
  /** `nodes + 1` long, ascending. */
  readonly edgeStart: Uint32Array;
  readonly edgeTo: Uint32Array;
  /**
   * By node: its only referrer, if it refers to nothing itself; `edgeTo` does not contain this reference. 0: it has edges, or
   * nothing refers to it. An object that got another referrer while the program was read may have both. Absent: all
   * references are edges.
   */
  readonly onlyReferrer?: Uint32Array;
  readonly typeNames: readonly string[];
}

/** Two columns by node with arbitrary contents, which a step of the analysis may use instead of new ones. */
export type SpareColumns = readonly [Uint32Array, Uint32Array];

/** What removing a node would free: the tree of immediate dominators and retained sizes. */
export interface DominatorTree {
  /** 0 for node 0 and for unreachable nodes. */
  readonly dominator: Uint32Array;
  /** Of one node, the value in `retained` and in `retainedNodes`; the columns below take memory once they are read. */
  retainedBytes(node: NodeId): Bytes;
  retainedObjects(node: NodeId): Objects;
  /** Whether removing a node would free another one. */
  dominates(above: NodeId, node: NodeId): boolean;
  /** Total shallow size of all nodes that the node dominates, including itself; 0 for unreachable nodes. */
  readonly retained: Float64Array;
  /** Number of dominated nodes, including itself. */
  readonly retainedNodes: Uint32Array;
  /** 1 if a root reaches the node. */
  readonly reached: Uint8Array;
  /** The reachable nodes, each after its dominator. */
  readonly order: Uint32Array;
}

/** Objects counted by type: row `i` is the type named `types[i]`. `bytes` includes the buffers that objects own. */
export interface TypeCounts {
  readonly types: readonly string[];
  readonly objects: Float64Array;
  readonly bytes: Float64Array;
}
