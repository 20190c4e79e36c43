/**
 * Immediate dominators by Lengauer and Tarjan ("A Fast Algorithm for Finding Dominators in a
 * Flowgraph", TOPLAS 1979), the version with simple linking: O(m log n) on any graph, where iterative
 * schemes turn quadratic on hostile ones. Everything is in depth-first numbers and without recursion:
 * a linked list of a million objects is a path a million deep.
 */
import type { DominatorTree, HeapGraph } from "./heap_graph.js";

interface DepthFirst {
  /** Nodes in the order of their first visit; only the first `count` count. */
  readonly visited: Uint32Array;
  /** Number of a node in that order; NOT_VISITED where no root reaches it. */
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
  // The path from node 0 to where the walk stands (by number), and each one's next edge.
  const path = new Uint32Array(nodes);
  const nextEdge = edgeStart.slice(0, nodes);
  let depth = 0;
  let count = 1;
  number[0] = 0;
  while (depth >= 0) {
    const from = path[depth];
    const node = visited[from];
    let edge = nextEdge[node];
    const end = edgeStart[node + 1];
    while (edge < end && number[edgeTo[edge]] !== NOT_VISITED) {
      edge += 1;
    }
    nextEdge[node] = edge + 1;
    if (edge >= end) {
      depth -= 1;
      continue;
    }
    const to = edgeTo[edge];
    number[to] = count;
    visited[count] = to;
    parent[count] = from;
    depth += 1;
    path[depth] = count;
    count += 1;
  }
  return { visited, number, parent, count };
}

/** Who refers to each visited node, both by number: from[start[n] .. start[n + 1]). */
function reverseEdges({ edgeStart, edgeTo }: HeapGraph, { visited, number, count }: DepthFirst) {
  const start = new Uint32Array(count + 2);
  for (let n = 0; n < count; n++) {
    const node = visited[n];
    for (let edge = edgeStart[node]; edge < edgeStart[node + 1]; edge++) {
      start[number[edgeTo[edge]] + 2] += 1;
    }
  }
  for (let n = 2; n < count + 2; n++) {
    start[n] += start[n - 1];
  }
  const from = new Uint32Array(start[count + 1]);
  for (let n = 0; n < count; n++) {
    const node = visited[n];
    for (let edge = edgeStart[node]; edge < edgeStart[node + 1]; edge++) {
      from[start[number[edgeTo[edge]] + 1]++] = n;
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
    while (ancestor[ancestor[at]] !== NOT_VISITED) {
      stack[depth++] = at;
      at = ancestor[at];
    }
    while (depth > 0) {
      const below = stack[--depth];
      const above = ancestor[below];
      if (semi[label[above]] < semi[label[below]]) {
        label[below] = label[above];
      }
      ancestor[below] = ancestor[above];
    }
    return label[v];
  };

  for (let w = count - 1; w > 0; w--) {
    const above = parent[w];
    let least = w;
    for (let edge = start[w]; edge < start[w + 1]; edge++) {
      const candidate = semi[evaluate(from[edge])];
      if (candidate < least) {
        least = candidate;
      }
    }
    semi[w] = least;
    inBucket[w] = bucket[least];
    bucket[least] = w;
    ancestor[w] = above;
    for (let v = bucket[above]; v !== NOT_VISITED; v = inBucket[v]) {
      const u = evaluate(v);
      dominator[v] = semi[u] < semi[v] ? u : above;
    }
    bucket[above] = NOT_VISITED;
  }
  for (let w = 1; w < count; w++) {
    if (dominator[w] !== semi[w]) {
      dominator[w] = dominator[dominator[w]];
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
  // A dominator is visited before what it dominates: backwards, every sum is whole when it is passed on.
  for (let n = count - 1; n >= 0; n--) {
    const node = visited[n];
    reached[node] = 1;
    retained[node] += shallow[node];
    retainedNodes[node] += 1;
    if (n > 0) {
      const above = visited[dominators[n]];
      dominator[node] = above;
      retained[above] += retained[node];
      retainedNodes[above] += retainedNodes[node];
    }
  }
  return { dominator, retained, retainedNodes, reached, order: visited.subarray(0, count) };
}
