/** The tree that the flame graph draws, and the figures of its nodes. */
import type { ProfileTables, SiteTable, SiteValue } from "../../../src/model/profile.js";
import type { FlameTree } from "../flame/layout.js";

export interface CallGraph extends FlameTree {
  /** Frame of a node; of the root meaningless. */
  readonly frame: Uint32Array;
  /** Node that takes a stack's own figures. */
  readonly nodeOfStack: Uint32Array;
}

/** Callers above callees: the stack table is this tree already. */
export function calleesBelow({ stacks }: ProfileTables): CallGraph {
  return {
    length: stacks.length,
    parent: stacks.parent,
    frame: stacks.frame,
    nodeOfStack: Uint32Array.from({ length: stacks.length }, (_, stack) => stack),
  };
}

/** A column of the sites, by node: the node's own. */
export function ownFigures(
  graph: CallGraph,
  sites: SiteTable,
  rows: Uint32Array,
  column: SiteValue | "liveVariance" | "peakVariance" | "allocatedVariance",
): Float64Array {
  const own = new Float64Array(graph.length);
  const values = sites[column];
  for (const row of rows) own[graph.nodeOfStack[sites.stack[row]]] += values[row];
  return own;
}

/** A node's own and everything below it. */
export function withDescendants(graph: FlameTree, own: Float64Array): Float64Array {
  const total = own.slice();
  foldUp(graph, total);
  return total;
}

function foldUp({ length, parent }: FlameTree, figures: Float64Array): void {
  for (let node = length - 1; node > 0; node--) figures[parent[node]] += figures[node];
}

/** By node: the allocator ({@link Domain}) that most of its figure comes from. */
export function mainDomains(
  graph: CallGraph,
  sites: SiteTable,
  rows: Uint32Array,
  column: SiteValue,
): Uint8Array {
  const byDomain = [0, 1, 2].map(() => new Float64Array(graph.length));
  const values = sites[column];
  for (const row of rows) {
    byDomain[sites.domain[row]][graph.nodeOfStack[sites.stack[row]]] += values[row];
  }
  for (const own of byDomain) foldUp(graph, own);
  const main = new Uint8Array(graph.length);
  for (let node = 0; node < graph.length; node++) {
    let best = 0;
    for (let domain = 1; domain < 3; domain++)
      if (byDomain[domain][node] > byDomain[best][node]) best = domain;
    main[node] = best;
  }
  return main;
}
