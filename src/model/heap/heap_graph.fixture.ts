/** Graphs of a few nodes, for tests. */
import { uint32At } from "../base/columns.js";
import type { HeapGraph } from "./heap_graph.js";

export type Edge = readonly [from: number, to: number];

/** A graph from pairs; every node weighs its number plus one. */
export function graphOf(nodes: number, edges: readonly Edge[]): HeapGraph {
  const edgeStart = new Uint32Array(nodes + 1);
  for (const [from] of edges) {
    edgeStart[from + 1] = uint32At(edgeStart, from + 1) + 1;
  }
  for (let n = 0; n < nodes; n++) {
    edgeStart[n + 1] = uint32At(edgeStart, n + 1) + uint32At(edgeStart, n);
  }
  const next = edgeStart.slice();
  const edgeTo = new Uint32Array(edges.length);
  for (const [from, to] of edges) {
    const at = uint32At(next, from);
    edgeTo[at] = to;
    next[from] = at + 1;
  }
  return {
    nodes,
    firstObject: 1,
    address: new Float64Array(nodes),
    type: new Uint32Array(nodes),
    shallow: Float64Array.from({ length: nodes }, (_, n) => n + 1),
    edgeStart,
    edgeTo,
    typeNames: [""],
  };
}

/** Up to `density` edges for each node. `random`: a whole number below another (base/random.fixture.ts). */
export function randomEdges(
  nodes: number,
  density: number,
  random: (below: number) => number,
): Edge[] {
  return Array.from({ length: random(nodes * density) }, () => [random(nodes), random(nodes)]);
}
