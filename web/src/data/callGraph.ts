/** The tree that the flame graph draws, and the figures of its nodes. */
import type { ProfileTables, SiteTable, SiteValue } from "../../../src/model/profile.js";
import { mixHash } from "../../../src/model/row_index.js";
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

/** A node with less than this share of the whole is not split into its callers: of a gibibyte that is
 * 4 KiB, far below what a sample stands for, and there can be many millions of such nodes. */
const SMALLEST_SPLIT = 4e-6;

/** Allocating frames at the top, their callers below, for stacks by their weight (0: not used). All of
 * them take a step towards their roots at once; those that take the same step share the next. */
export function callersBelow({ stacks }: ProfileTables, weights: Float64Array): CallGraph {
  const nodes = new NodeColumns();
  const nodeOfStack = new Uint32Array(stacks.length);
  const smallest = weights.reduce((sum, weight) => sum + weight, 0) * SMALLEST_SPLIT;
  /** Of each walk: the stack it started from, where it is now, and its node. */
  let walks: Uint32Array = usedStacks(weights);
  let places: Uint32Array = walks.slice();
  let at: Uint32Array = new Uint32Array(walks.length);
  while (walks.length > 0) {
    const table = new Int32Array(2 ** Math.ceil(Math.log2(walks.length * 2 + 1))).fill(-1);
    const mask = table.length - 1;
    const firstNew = nodes.length;
    const weight = new Float64Array(walks.length);
    for (let walk = 0; walk < walks.length; walk++) {
      const above = at[walk];
      const frame = stacks.frame[places[walk]];
      let slot = mixHash(mixHash(0, above), frame) & mask;
      let node = table[slot];
      while (node >= 0 && (nodes.parent[node] !== above || nodes.frame[node] !== frame)) {
        slot = (slot + 1) & mask;
        node = table[slot];
      }
      if (node < 0) {
        node = nodes.add(above, frame);
        table[slot] = node;
      }
      at[walk] = node;
      weight[node - firstNew] += weights[walks[walk]];
    }
    let going = 0;
    for (let walk = 0; walk < walks.length; walk++) {
      const caller = stacks.parent[places[walk]];
      if (caller === 0 || weight[at[walk] - firstNew] < smallest) {
        nodeOfStack[walks[walk]] = at[walk];
        continue;
      }
      walks[going] = walks[walk];
      places[going] = caller;
      at[going] = at[walk];
      going++;
    }
    walks = walks.subarray(0, going);
    places = places.subarray(0, going);
    at = at.subarray(0, going);
  }
  return { ...nodes.whole(), nodeOfStack };
}

function usedStacks(weights: Float64Array): Uint32Array {
  const used = new Uint32Array(weights.length);
  let count = 0;
  for (let stack = 1; stack < weights.length; stack++)
    if (weights[stack] > 0) used[count++] = stack;
  return used.subarray(0, count);
}

/** Nodes of a tree that is being made; row 0 is the root. */
class NodeColumns {
  parent: Uint32Array = new Uint32Array(1024);
  frame: Uint32Array = new Uint32Array(1024);
  length = 1;

  add(parent: number, frame: number): number {
    if (this.length === this.parent.length) {
      this.parent = doubled(this.parent);
      this.frame = doubled(this.frame);
    }
    this.parent[this.length] = parent;
    this.frame[this.length] = frame;
    return this.length++;
  }

  whole(): { length: number; parent: Uint32Array; frame: Uint32Array } {
    const { length } = this;
    return {
      length,
      parent: this.parent.subarray(0, length),
      frame: this.frame.subarray(0, length),
    };
  }
}

function doubled(column: Uint32Array): Uint32Array {
  const larger = new Uint32Array(column.length * 2);
  larger.set(column);
  return larger;
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
