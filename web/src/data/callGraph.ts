/** The tree that the flame graph draws, and the figures of its nodes. */
import type { ProfileTables, SiteTable, SiteValue } from "../../../src/model/profile.js";
import { mixHash, RowIndex } from "../../../src/model/row_index.js";
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

/** Allocating frames at the top, their callers below, for the stacks of the given sites. */
export function callersBelow({ stacks }: ProfileTables, usedStacks: Iterable<number>): CallGraph {
  const parent = [0];
  const frame = [0];
  const index = new RowIndex();
  const nodeOfStack = new Uint32Array(stacks.length);
  for (const used of usedStacks) {
    let node = 0;
    for (let stack = used; stack !== 0; stack = stacks.parent[stack]) {
      const wanted = stacks.frame[stack];
      const hash = mixHash(mixHash(0, node), wanted);
      const above = node;
      node = index.find(hash, (row) => parent[row] === above && frame[row] === wanted);
      if (node < 0) {
        node = parent.push(above) - 1;
        frame.push(wanted);
        index.add(hash, node);
      }
    }
    nodeOfStack[used] = node;
  }
  return {
    length: parent.length,
    parent: Uint32Array.from(parent),
    frame: Uint32Array.from(frame),
    nodeOfStack,
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
  for (let node = graph.length - 1; node > 0; node--) total[graph.parent[node]] += total[node];
  return total;
}

/** By node: the allocator ({@link Domain}) that most of its figure comes from. */
export function mainDomains(
  graph: CallGraph,
  sites: SiteTable,
  rows: Uint32Array,
  column: SiteValue,
): Uint8Array {
  const byDomain = [0, 1, 2].map((domain) =>
    withDescendants(
      graph,
      ownFigures(
        graph,
        sites,
        rows.filter((row) => sites.domain[row] === domain),
        column,
      ),
    ),
  );
  const main = new Uint8Array(graph.length);
  for (let node = 0; node < graph.length; node++) {
    let best = 0;
    for (let domain = 1; domain < 3; domain++)
      if (byDomain[domain][node] > byDomain[best][node]) best = domain;
    main[node] = best;
  }
  return main;
}
