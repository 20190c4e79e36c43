/**
 * Immediate dominators by Lengauer and Tarjan ("A Fast Algorithm for Finding Dominators in a
 * Flowgraph", TOPLAS 1979), the version with simple linking: O(m log n) on any graph, while iterative schemes
 * become quadratic on hostile graphs. Everything uses depth-first numbers and no recursion, because a linked
 * list of a million objects is a path of that depth.
 *
 * All rows are within their columns; `?? 0` is only for the type checker and costs nothing when compiled.
 */
import { addAt } from "../base/columns.js";
import type { DominatorTree, HeapGraph } from "./heap_graph.js";

interface DepthFirst {
  /** Nodes in the order of their first visit; only the first `count` are valid. */
  readonly visited: Uint32Array;
  /** Number of a node in that order; NOT_VISITED if no root reaches it. */
  readonly number: Uint32Array;
  /** Number of the parent in the depth-first tree, by number. */
  readonly parent: Uint32Array;
  readonly count: number;
}

const NOT_VISITED = 0xffffffff;

/** Dominators from node 0 on, and retained sizes. */
export function findDominators(graph: HeapGraph): DominatorTree {
  const order = visitDepthFirst(graph);
  const dominators = lengauerTarjan(graph, order);
  return addUpRetained(graph, order, dominators);
}

function visitDepthFirst({ nodes, edgeStart, edgeTo }: HeapGraph): DepthFirst {
  const visited = new Uint32Array(nodes);
  const number = new Uint32Array(nodes).fill(NOT_VISITED);
  const parent = new Uint32Array(nodes);
  // The path from node 0 to the current node (by number), and the next edge of each node.
  const path = new Uint32Array(nodes);
  const nextEdge = edgeStart.slice(0, nodes);
  let depth = 0;
  let count = 1;
  number[0] = 0;
  while (depth >= 0) {
    const from = path[depth] ?? 0;
    const node = visited[from] ?? 0;
    let edge = nextEdge[node] ?? 0;
    const end = edgeStart[node + 1] ?? 0;
    while (edge < end && number[edgeTo[edge] ?? 0] !== NOT_VISITED) {
      edge += 1;
    }
    nextEdge[node] = edge + 1;
    if (edge >= end) {
      depth -= 1;
      continue;
    }
    const to = edgeTo[edge] ?? 0;
    number[to] = count;
    visited[count] = to;
    parent[count] = from;
    depth += 1;
    path[depth] = count;
    count += 1;
  }
  return { visited, number, parent, count };
}

/** The referrers of each visited node, both by number: from[start[n] .. start[n + 1]). */
function reverseEdges({ edgeStart, edgeTo }: HeapGraph, { visited, number, count }: DepthFirst) {
  const start = new Uint32Array(count + 2);
  for (let n = 0; n < count; n++) {
    const node = visited[n] ?? 0;
    for (let edge = edgeStart[node] ?? 0; edge < (edgeStart[node + 1] ?? 0); edge++) {
      const to = (number[edgeTo[edge] ?? 0] ?? 0) + 2;
      start[to] = (start[to] ?? 0) + 1;
    }
  }
  for (let n = 2; n < count + 2; n++) {
    start[n] = (start[n] ?? 0) + (start[n - 1] ?? 0);
  }
  const from = new Uint32Array(start[count + 1] ?? 0);
  for (let n = 0; n < count; n++) {
    const node = visited[n] ?? 0;
    for (let edge = edgeStart[node] ?? 0; edge < (edgeStart[node + 1] ?? 0); edge++) {
      const to = (number[edgeTo[edge] ?? 0] ?? 0) + 1;
      const at = start[to] ?? 0;
      from[at] = n;
      start[to] = at + 1;
    }
  }
  return { start, from };
}

/** The immediate dominator of each number, as a number. */
function lengauerTarjan(graph: HeapGraph, order: DepthFirst): Uint32Array {
  const { parent, count } = order;
  const { start, from } = reverseEdges(graph, order);
  const semi = new Uint32Array(count);
  const label = new Uint32Array(count);
  const ancestor = new Uint32Array(count).fill(NOT_VISITED);
  const dominator = new Uint32Array(count);
  const bucket = new Uint32Array(count).fill(NOT_VISITED);
  const inBucket = new Uint32Array(count);
  const stack = new Uint32Array(count);
  for (let n = 0; n < count; n++) {
    semi[n] = n;
    label[n] = n;
  }

  /** The vertex of least semidominator on the path from v to below its tree's root. */
  const evaluate = (v: number): number => {
    if (ancestor[v] === NOT_VISITED) {
      return v;
    }
    let depth = 0;
    let at = v;
    while (ancestor[ancestor[at] ?? 0] !== NOT_VISITED) {
      stack[depth++] = at;
      at = ancestor[at] ?? 0;
    }
    while (depth > 0) {
      const below = stack[--depth] ?? 0;
      const above = ancestor[below] ?? 0;
      if ((semi[label[above] ?? 0] ?? 0) < (semi[label[below] ?? 0] ?? 0)) {
        label[below] = label[above] ?? 0;
      }
      ancestor[below] = ancestor[above] ?? 0;
    }
    return label[v] ?? 0;
  };

  for (let w = count - 1; w > 0; w--) {
    const above = parent[w] ?? 0;
    let least = w;
    for (let edge = start[w] ?? 0; edge < (start[w + 1] ?? 0); edge++) {
      const candidate = semi[evaluate(from[edge] ?? 0)] ?? 0;
      if (candidate < least) {
        least = candidate;
      }
    }
    semi[w] = least;
    inBucket[w] = bucket[least] ?? 0;
    bucket[least] = w;
    ancestor[w] = above;
    for (let v = bucket[above] ?? 0; v !== NOT_VISITED; v = inBucket[v] ?? 0) {
      const u = evaluate(v);
      dominator[v] = (semi[u] ?? 0) < (semi[v] ?? 0) ? u : above;
    }
    bucket[above] = NOT_VISITED;
  }
  for (let w = 1; w < count; w++) {
    if (dominator[w] !== semi[w]) {
      dominator[w] = dominator[dominator[w] ?? 0] ?? 0;
    }
  }
  return dominator;
}

function addUpRetained(
  { nodes, shallow }: HeapGraph,
  { visited, count }: DepthFirst,
  dominators: Uint32Array,
): DominatorTree {
  const dominator = new Uint32Array(nodes);
  const retained = new Float64Array(nodes);
  const retainedNodes = new Uint32Array(nodes);
  const reached = new Uint8Array(nodes);
  // A dominator is visited before the nodes it dominates, so in reverse order every sum is complete when it is
  // passed on.
  for (let n = count - 1; n >= 0; n--) {
    const node = visited[n] ?? 0;
    reached[node] = 1;
    addAt(retained, node, shallow[node] ?? 0);
    retainedNodes[node] = (retainedNodes[node] ?? 0) + 1;
    if (n > 0) {
      const above = visited[dominators[n] ?? 0] ?? 0;
      dominator[node] = above;
      addAt(retained, above, retained[node] ?? 0);
      retainedNodes[above] = (retainedNodes[above] ?? 0) + retainedNodes[node];
    }
  }
  return { dominator, retained, retainedNodes, reached, order: visited.subarray(0, count) };
}
