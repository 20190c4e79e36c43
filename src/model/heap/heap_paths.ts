/**
 * The way from a root to each object: breadth first, one kind of root after the other, so that a way by a
 * module's names is told even where one by a C variable would be shorter.
 */
import type { HeapGraph, NodeId } from "./heap_graph.js";

export interface PathTree {
  /** The node before each one on its way; 0 where the next one is a root, or where no root leads there. */
  readonly before: Uint32Array;
  /** 1 where a root leads to the node. */
  readonly reached: Uint8Array;
}

/**
 * Searches from `roots`, in their order; node 0 is behind all of them. Those of them that are `late` are objects that
 * many ways lead through and none should that can do without: each is passed at its turn alone.
 */
export function searchPaths(
  graph: HeapGraph,
  roots: readonly NodeId[],
  late: readonly NodeId[] = [],
): PathTree {
  const { nodes, edgeStart, edgeTo } = graph;
  const before = new Uint32Array(nodes);
  const reached = new Uint8Array(nodes);
  const queue = new Uint32Array(nodes);
  const held = new Set(late);
  for (const root of roots) {
    let head = 0;
    let tail = 0;
    const isLate = held.delete(root);
    // Where nothing led to it so far, it is as any other object.
    if (reached[root] === 0 && (!isLate || before[root] !== 0)) {
      reached[root] = 1;
      queue[tail++] = root;
    }
    while (head < tail) {
      const node = queue[head++] ?? 0;
      for (let edge = edgeStart[node] ?? 0; edge < (edgeStart[node + 1] ?? 0); edge++) {
        const to = edgeTo[edge] ?? 0;
        if (reached[to] === 0) {
          before[to] = before[to] || node;
          if (held.size === 0 || !held.has(to)) {
            reached[to] = 1;
            queue[tail++] = to;
          }
        }
      }
    }
  }
  reached[0] = 1;
  return { before, reached };
}

/** Nodes from a root to `node`, both included. */
export function pathTo({ before, reached }: PathTree, node: NodeId): NodeId[] {
  if (reached[node] === 0) {
    return [];
  }
  const path: NodeId[] = [];
  for (let at = node; at !== 0; at = before[at] ?? 0) {
    path.push(at);
  }
  return path.reverse();
}
