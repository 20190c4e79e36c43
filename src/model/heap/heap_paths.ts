/**
 * The path from a root to each object: breadth-first, one kind of root after another, so that a path through a
 * module's names is found even if one through a C variable would be shorter.
 */
import type { HeapGraph, NodeId } from "./heap_graph.js";

export interface PathTree {
  /** The predecessor of each node in its path; 0 if the node is a root or unreachable. */
  readonly before: Uint32Array;
  /** 0 if no root leads to the node, otherwise the place in `roots` of the root that did, from 1. */
  readonly reached: Uint8Array;
  readonly roots: readonly NodeId[];
}

/**
 * Searches from `roots`, in their order; node 0 precedes all of them. `late` roots are objects on many paths,
 * which a path should avoid if possible; each is expanded only at its turn. `spare`: a column by node that is no
 * longer needed.
 */
export function searchPaths(
  graph: HeapGraph,
  roots: readonly NodeId[],
  late: readonly NodeId[] = [],
  spare?: Uint32Array,
): PathTree {
  const { nodes, edgeStart, edgeTo, onlyReferrer } = graph;
  const before = new Uint32Array(nodes);
  const reached = new Uint8Array(nodes);
  const queue = spare ?? new Uint32Array(nodes);
  const held = new Set(late);
  for (const [place, root] of roots.entries()) {
    const turn = place + 1;
    let head = 0;
    let tail = 0;
    const isLate = held.delete(root);
    // If nothing led to it so far, it is like any other object.
    if (reached[root] === 0 && (!isLate || before[root] !== 0)) {
      reached[root] = turn;
      queue[tail++] = root;
    }
    while (head < tail) {
      const node = queue[head++] ?? 0;
      for (let edge = edgeStart[node] ?? 0; edge < (edgeStart[node + 1] ?? 0); edge++) {
        const to = edgeTo[edge] ?? 0;
        if (reached[to] === 0) {
          before[to] = before[to] || node;
          if (held.size === 0 || !held.has(to)) {
            reached[to] = turn;
            queue[tail++] = to;
          }
        }
      }
    }
  }
  if (onlyReferrer !== undefined) {
    reachThroughOnly(onlyReferrer, before, reached);
  }
  reached[0] = 1;
  return { before, reached, roots };
}

function reachThroughOnly(
  onlyReferrer: Uint32Array,
  before: Uint32Array,
  reached: Uint8Array,
): void {
  for (let node = 0; node < onlyReferrer.length; node++) {
    const referrer = onlyReferrer[node] ?? 0;
    const turn = reached[referrer] ?? 0;
    const known = reached[node] ?? 0;
    if (referrer !== 0 && (known === 0 || (turn > 0 && turn < known))) {
      before[node] = referrer;
      reached[node] = turn;
    }
  }
}

/** The first node of the path to `node`, without following the path; 0 if nothing leads to it. */
export function rootOf({ before, reached, roots }: PathTree, node: NodeId): NodeId {
  for (let at = node; ; ) {
    const root = roots[(reached[at] ?? 0) - 1] ?? 0;
    const above = before[root] ?? 0;
    if (root === 0 || above === 0) {
      return root;
    }
    at = above; // a late root, to which another one leads
  }
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
