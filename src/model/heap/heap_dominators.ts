/**
 * Immediate dominators by Lengauer and Tarjan ("A Fast Algorithm for Finding Dominators in a
 * Flowgraph", TOPLAS 1979), the version with simple linking: O(m log n) on any graph, while iterative schemes
 * become quadratic on hostile graphs. Everything uses depth-first numbers and no recursion, because a linked
 * list of a million objects is a path of that depth.
 *
 * Most objects of a program are numbers and texts that a single object refers to. That object dominates them,
 * so they get no depth-first number, and the columns by number are short:
 *
 *     list ──> dict ──┬─> "name"     two numbers: list, dict
 *                     └─> 17         attached to the dict
 *
 * All rows are within their columns; `?? 0` is only for the type checker and costs nothing when compiled.
 */
import { addAt } from "../base/columns.js";
import type { Bytes, Objects } from "../base/units.js";
import type { DominatorTree, HeapGraph, NodeId, SpareColumns } from "./heap_graph.js";

interface DepthFirst {
  /** Nodes in the order of their first visit; only the first `count` are valid. */
  readonly visited: Uint32Array;
  /** Number of a node in that order; NOT_VISITED if no root reaches it, or if it is attached. */
  readonly number: Uint32Array;
  /** Number of the parent in the depth-first tree, by number. */
  readonly parent: Uint32Array;
  readonly count: number;
  /** Two columns by number, with arbitrary contents, for the next step. */
  readonly spare: readonly [Uint32Array, Uint32Array];
}

const NOT_VISITED = 0xffffffff;
/** Dominated by its only referrer, and reachable. */
const ATTACHED = 0xfffffffe;
const NO_REFERRER = 0xffffffff;
const MANY_REFERRERS = 0xfffffffe;

/** Dominators from node 0 on, and retained sizes. */
export function findDominators(
  graph: HeapGraph,
  [first, second]: SpareColumns = [new Uint32Array(graph.nodes), new Uint32Array(graph.nodes)],
): DominatorTree {
  const above = attachSingles(graph, first, second);
  const order = visitDepthFirst(graph, above, second);
  return new Dominators(graph, order, lengauerTarjan(graph, order), above);
}

/**
 * By node: its only referrer, if it is attached to it; otherwise NO_REFERRER or MANY_REFERRERS. A node is attached if
 * it has one referrer and refers to nothing.
 */
function attachSingles(
  { nodes, edgeStart, edgeTo, onlyReferrer }: HeapGraph,
  spare: Uint32Array,
  second: Uint32Array,
): Uint32Array {
  const above = spare.fill(NO_REFERRER);
  // Edges of a node, and references that are no edges.
  const refers = second.fill(0);
  for (let node = 0; onlyReferrer !== undefined && node < nodes; node++) {
    const referrer = onlyReferrer[node] ?? 0;
    if (referrer !== 0) {
      above[node] = referrer;
      refers[referrer] = 1;
    }
  }
  for (let node = 0; node < nodes; node++) {
    const end = edgeStart[node + 1] ?? 0;
    for (let edge = edgeStart[node] ?? 0; edge < end; edge++) {
      const to = edgeTo[edge] ?? 0;
      const before = above[to];
      if (before !== node) {
        above[to] =
          before === NO_REFERRER && edgeStart[to] === edgeStart[to + 1] && refers[to] === 0
            ? node
            : MANY_REFERRERS;
      }
    }
  }
  above[0] = MANY_REFERRERS;
  return above;
}

function visitDepthFirst(
  { edgeStart, edgeTo }: HeapGraph,
  above: Uint32Array,
  spare: Uint32Array,
): DepthFirst {
  const most = above.reduce((sum, referrer) => sum + (referrer < MANY_REFERRERS ? 0 : 1), 0);
  const visited = new Uint32Array(most);
  const number = spare.fill(NOT_VISITED);
  const parent = new Uint32Array(most);
  // The path from node 0 to the current node (by number), and the next edge of each of its nodes (by number).
  const path = new Uint32Array(most);
  const nextEdge = new Uint32Array(most);
  let depth = 0;
  let count = 1;
  number[0] = 0;
  while (depth >= 0) {
    const from = path[depth] ?? 0;
    const node = visited[from] ?? 0;
    let edge = nextEdge[from] ?? 0;
    const end = edgeStart[node + 1] ?? 0;
    while (edge < end && !isNew(edgeTo[edge] ?? 0)) {
      edge += 1;
    }
    nextEdge[from] = edge + 1;
    if (edge >= end) {
      depth -= 1;
      continue;
    }
    const to = edgeTo[edge] ?? 0;
    number[to] = count;
    visited[count] = to;
    parent[count] = from;
    nextEdge[count] = edgeStart[to] ?? 0;
    depth += 1;
    path[depth] = count;
    count += 1;
  }
  return { visited, number, parent, count, spare: [path, nextEdge] };

  function isNew(to: NodeId): boolean {
    return number[to] === NOT_VISITED && (above[to] ?? 0) >= MANY_REFERRERS;
  }
}

/** The referrers of each visited node, both by number: from[start[n] .. start[n + 1]). */
function reverseEdges({ edgeStart, edgeTo }: HeapGraph, { visited, number, count }: DepthFirst) {
  const start = new Uint32Array(count + 2);
  for (let n = 0; n < count; n++) {
    const node = visited[n] ?? 0;
    for (let edge = edgeStart[node] ?? 0; edge < (edgeStart[node + 1] ?? 0); edge++) {
      const to = number[edgeTo[edge] ?? 0] ?? 0;
      if (to !== NOT_VISITED) {
        start[to + 2] = (start[to + 2] ?? 0) + 1;
      }
    }
  }
  for (let n = 2; n < count + 2; n++) {
    start[n] = (start[n] ?? 0) + (start[n - 1] ?? 0);
  }
  const from = new Uint32Array(start[count + 1] ?? 0);
  for (let n = 0; n < count; n++) {
    const node = visited[n] ?? 0;
    for (let edge = edgeStart[node] ?? 0; edge < (edgeStart[node + 1] ?? 0); edge++) {
      const to = number[edgeTo[edge] ?? 0] ?? 0;
      if (to !== NOT_VISITED) {
        const at = start[to + 1] ?? 0;
        from[at] = n;
        start[to + 1] = at + 1;
      }
    }
  }
  return { start, from };
}

/** The immediate dominator of each number, as a number. */
function lengauerTarjan(graph: HeapGraph, order: DepthFirst): Uint32Array {
  const { parent, count } = order;
  // Every number is linked to its parent when it has been processed, in descending order.
  const ancestor = parent;
  let linked = count;
  const { start, from } = reverseEdges(graph, order);
  const [semi, stack] = order.spare;
  const label = new Uint32Array(count);
  const dominator = new Uint32Array(count);
  const bucket = new Uint32Array(count).fill(NOT_VISITED);
  const inBucket = new Uint32Array(count);
  for (let n = 0; n < count; n++) {
    semi[n] = n;
    label[n] = n;
  }

  /** The vertex of least semidominator on the path from v to below its tree's root. */
  const evaluate = (v: number): number => {
    if (v < linked) {
      return v;
    }
    let depth = 0;
    let at = v;
    while ((ancestor[at] ?? 0) >= linked) {
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
    linked = w;
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

/** Columns that only a listing of the whole heap needs are computed when they are first asked for. */
class Dominators implements DominatorTree {
  readonly dominator: Uint32Array;
  readonly #graph: HeapGraph;
  readonly #order: DepthFirst;
  /** By depth-first number, including what is attached. */
  readonly #bytes: Float64Array;
  readonly #objects: Uint32Array;
  #whole: Pick<DominatorTree, "retained" | "retainedNodes" | "reached" | "order"> | null = null;

  /** `dominators` by number; `above` becomes the column of dominators. */
  constructor(graph: HeapGraph, order: DepthFirst, dominators: Uint32Array, above: Uint32Array) {
    const { visited, number, count } = order;
    this.#graph = graph;
    this.#order = order;
    this.#bytes = new Float64Array(count);
    this.#objects = new Uint32Array(count);
    this.dominator = above;
    const { shallow, nodes } = graph;
    for (let node = 0; node < nodes; node++) {
      const referrer = above[node] ?? 0;
      const to = referrer < MANY_REFERRERS ? (number[referrer] ?? 0) : NOT_VISITED;
      if (to === NOT_VISITED) {
        above[node] = 0;
      } else {
        number[node] = ATTACHED;
        this.#count(to, shallow[node] ?? 0, 1);
      }
    }
    // A dominator is visited before the nodes it dominates, so in reverse order every sum is complete when it is
    // passed on.
    for (let n = count - 1; n >= 0; n--) {
      const node = visited[n] ?? 0;
      this.#count(n, shallow[node] ?? 0, 1);
      if (n > 0) {
        const to = dominators[n] ?? 0;
        above[node] = visited[to] ?? 0;
        this.#count(to, this.#bytes[n] ?? 0, this.#objects[n] ?? 0);
      }
    }
  }

  retainedBytes(node: NodeId): Bytes {
    const number = this.#order.number[node] ?? 0;
    return number === ATTACHED ? (this.#graph.shallow[node] ?? 0) : (this.#bytes[number] ?? 0);
  }

  retainedObjects(node: NodeId): Objects {
    const number = this.#order.number[node] ?? 0;
    return number === ATTACHED ? 1 : (this.#objects[number] ?? 0);
  }

  dominates(above: NodeId, node: NodeId): boolean {
    let at = this.dominator[node] ?? 0;
    while (at !== 0 && at !== above) {
      at = this.dominator[at] ?? 0;
    }
    return at === above && node !== 0;
  }

  get retained() {
    return this.#columns.retained;
  }

  get retainedNodes() {
    return this.#columns.retainedNodes;
  }

  get reached() {
    return this.#columns.reached;
  }

  get order() {
    return this.#columns.order;
  }

  get #columns() {
    this.#whole ??= this.#fillColumns();
    return this.#whole;
  }

  #fillColumns() {
    const { nodes } = this.#graph;
    const { visited, number, count } = this.#order;
    const attached = number.reduce((sum, own) => sum + (own === ATTACHED ? 1 : 0), 0);
    const order = new Uint32Array(count + attached);
    order.set(visited.subarray(0, count));
    const retained = new Float64Array(nodes);
    const retainedNodes = new Uint32Array(nodes);
    const reached = new Uint8Array(nodes);
    let next = count;
    for (let node = 0; node < nodes; node++) {
      reached[node] = number[node] === NOT_VISITED ? 0 : 1;
      retained[node] = this.retainedBytes(node);
      retainedNodes[node] = this.retainedObjects(node);
      if (number[node] === ATTACHED) {
        order[next++] = node;
      }
    }
    return { retained, retainedNodes, reached, order };
  }

  #count(number: number, bytes: Bytes, objects: Objects): void {
    addAt(this.#bytes, number, bytes);
    this.#objects[number] = (this.#objects[number] ?? 0) + objects;
  }
}
