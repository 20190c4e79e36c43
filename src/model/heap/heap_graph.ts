/**
 * The objects of one program and who refers to whom, as columns. Node 0 is the root of all roots; the
 * nodes behind it up to `firstObject` are the roots by kind (modules, frames, ...), the rest are objects.
 *
 *   edges of node n: edgeTo[edgeStart[n] .. edgeStart[n + 1])
 */

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
  /** The reached nodes, each behind the one that dominates it. */
  readonly order: Uint32Array;
}

/** Objects counted by type: row `i` is the type named `types[i]`. `bytes` includes the buffers that objects own. */
export interface TypeCounts {
  readonly types: readonly string[];
  readonly objects: Float64Array;
  readonly bytes: Float64Array;
}
