/**
 * Call trees over typed arrays, callees below (from the program's entry) or callers below (from the
 * allocating function), and the values of their nodes. One tree can have values of several snapshots; two make
 * a differential tree.
 *
 *     const rows = selectSites(tables, snapshot.sites, EVERY_ROW);
 *     const tree = calleesBelow(tables, stackWeights(tables, [{ snapshot, rows }]));
 *     const total = withDescendants(tree, ownFigures(tree, snapshot.sites, rows, "liveBytes"));
 */

import { addAt, float64At, itemAt, uint8At, uint32At } from "../base/columns.js";
import { mixHash, RowIndex } from "../base/row_index.js";
import type { FrameId } from "../base/units.js";
import {
  Domain,
  FrameKind,
  type ProfileSnapshot,
  type ProfileTables,
  type SiteTable,
  type SiteValue,
} from "./profile.js";

/** Frames with the same function, file and line are one node. Node 0 is the root; `parent[i] < i`. */
export interface CallTree {
  readonly length: number;
  readonly parent: Uint32Array;
  /** A frame of the node; all its frames are equivalent. The root's is meaningless. */
  readonly frame: Uint32Array;
  /** For each stack: the node that gets its values; 0 if it has no weight. */
  readonly nodeOfStack: Uint32Array;
}

/** A snapshot with the selected rows of its sites. */
export interface SelectedSites {
  readonly snapshot: ProfileSnapshot;
  readonly rows: Uint32Array;
}

/** For a gibibyte that is 4 KiB, far less than one sample represents. */
const SMALLEST_SHARE = 4e-6;

const WEIGHED = ["liveBytes", "peakBytes", "allocatedBytes"] as const;

/** For each stack: its shares of live, peak and allocated bytes in all `snapshots`; above 0 if any value is. */
export function stackWeights(
  { stacks }: ProfileTables,
  snapshots: readonly SelectedSites[],
): Float64Array {
  const weights = new Float64Array(stacks.length);
  for (const { snapshot, rows } of snapshots) {
    for (const column of WEIGHED) {
      const values = snapshot.sites[column];
      let total = 0;
      for (const row of rows) {
        total += float64At(values, row);
      }
      for (const row of total > 0 ? rows : []) {
        addAt(weights, uint32At(snapshot.sites.stack, row), float64At(values, row) / total);
      }
    }
  }
  return weights;
}

/** The tree of calls. `weights` is by stack; stacks without weight have no node. */
export function calleesBelow(tables: ProfileTables, weights: Float64Array): CallTree {
  const { stacks } = tables;
  const keys = frameKeys(tables);
  const used = new Uint8Array(stacks.length);
  for (let stack = stacks.length - 1; stack > 0; stack--) {
    if (used[stack] === 1 || float64At(weights, stack) > 0) {
      used[stack] = 1;
      used[uint32At(stacks.parent, stack)] = 1;
    }
  }
  // If all frames differ, the stack table already is this tree.
  const asItIs = keys.every((key, frame) => key === frame);
  const nodes = new NodeTable(stacks.length);
  const nodeOfStack = new Uint32Array(stacks.length);
  for (let stack = 1; stack < stacks.length; stack++) {
    if (used[stack] === 1) {
      const frame = uint32At(stacks.frame, stack);
      const parent = uint32At(nodeOfStack, uint32At(stacks.parent, stack));
      nodeOfStack[stack] = asItIs
        ? nodes.add(parent, frame, frame)
        : nodes.child(parent, frame, uint32At(keys, frame));
    }
  }
  return nodes.tree(nodeOfStack);
}

/**
 * The reversed tree: the root's children are the allocating frames, with their callers below. All stacks are
 * processed level by level towards their roots. The full tree could be as large as all stacks together, so a
 * node below `smallestShare` of the total weight is not split; its own values include its callers.
 */
export function callersBelow(
  tables: ProfileTables,
  weights: Float64Array,
  smallestShare = SMALLEST_SHARE,
): CallTree {
  const { stacks } = tables;
  const keys = frameKeys(tables);
  const nodes = new NodeTable(1024);
  const nodeOfStack = new Uint32Array(stacks.length);
  const smallest = weights.reduce((sum, weight) => sum + weight, 0) * smallestShare;
  /** The stacks being processed, and the current position of each. */
  const leaves = Uint32Array.from(weights.keys()).filter(
    (stack) => stack !== 0 && float64At(weights, stack) > 0,
  );
  const places = leaves.slice();
  for (let going = leaves.length; going > 0; ) {
    const firstNew = nodes.beginLevel();
    const levelWeights = new Float64Array(going);
    for (let index = 0; index < going; index++) {
      const leaf = uint32At(leaves, index);
      const frame = uint32At(stacks.frame, uint32At(places, index));
      const node = nodes.child(uint32At(nodeOfStack, leaf), frame, uint32At(keys, frame));
      nodeOfStack[leaf] = node;
      addAt(levelWeights, node - firstNew, float64At(weights, leaf));
    }
    let left = 0;
    for (let index = 0; index < going; index++) {
      const leaf = uint32At(leaves, index);
      const caller = uint32At(stacks.parent, uint32At(places, index));
      if (
        caller !== 0 &&
        float64At(levelWeights, uint32At(nodeOfStack, leaf) - firstNew) >= smallest
      ) {
        leaves[left] = leaf;
        places[left++] = caller;
      }
    }
    going = left;
  }
  return nodes.tree(nodeOfStack);
}

/** Values of a site column by node, without descendants. */
export function ownFigures(
  { length, nodeOfStack }: CallTree,
  sites: SiteTable,
  rows: Uint32Array,
  column: SiteValue | "liveVariance" | "peakVariance" | "allocatedVariance",
): Float64Array {
  const own = new Float64Array(length);
  const values = sites[column];
  for (const row of rows) {
    addAt(own, uint32At(nodeOfStack, uint32At(sites.stack, row)), float64At(values, row));
  }
  return own;
}

/** For each node: its own value plus those of all descendants. */
export function withDescendants({ length, parent }: CallTree, own: Float64Array): Float64Array {
  const total = own.slice();
  for (let node = length - 1; node > 0; node--) {
    addAt(total, uint32At(parent, node), float64At(total, node));
  }
  return total;
}

/** For each node: the {@link Domain} with the largest part of its value, including descendants. */
export function mainDomains(
  tree: CallTree,
  sites: SiteTable,
  rows: Uint32Array,
  column: SiteValue,
): Uint8Array {
  const byDomain = Object.values(Domain).map((domain) => {
    const ofDomain = rows.filter((row) => sites.domain[row] === domain);
    return withDescendants(tree, ownFigures(tree, sites, ofDomain, column));
  });
  const main = new Uint8Array(tree.length);
  for (let domain = 1; domain < byDomain.length; domain++) {
    for (let node = 0; node < tree.length; node++) {
      if (
        float64At(itemAt(byDomain, domain), node) >
        float64At(itemAt(byDomain, uint8At(main, node)), node)
      ) {
        main[node] = domain;
      }
    }
  }
  return main;
}

/** For each frame: the first equivalent frame. */
function frameKeys({ frames }: ProfileTables): Uint32Array {
  const keys = new Uint32Array(frames.length);
  const index = new RowIndex();
  let frame: FrameId = 0;
  // Native code without a symbol is distinguished by its address.
  const addressOf = (row: FrameId) =>
    frames.kind[row] === FrameKind.native && frames.function[row] === 0
      ? float64At(frames.address, row)
      : 0;
  const alike = (row: FrameId) =>
    frames.function[row] === frames.function[frame] &&
    frames.file[row] === frames.file[frame] &&
    frames.kind[row] === frames.kind[frame] &&
    frames.line[row] === frames.line[frame] &&
    addressOf(row) === addressOf(frame);
  for (; frame < frames.length; frame++) {
    const hash = mixHash(
      mixHash(
        mixHash(uint32At(frames.function, frame), uint32At(frames.file, frame)),
        uint32At(frames.line, frame),
      ),
      addressOf(frame) | 0,
    );
    const found = index.find(hash, alike);
    if (found < 0) {
      index.add(hash, frame);
    }
    keys[frame] = found < 0 ? frame : found;
  }
  return keys;
}

/** Nodes that grow, found by parent and key. */
class NodeTable {
  length = 1;
  parent: Uint32Array;
  frame: Uint32Array;
  #keys: Uint32Array;
  #index = new RowIndex();
  #wantedParent = 0;
  #wantedKey = 0;
  readonly #same = (node: number) =>
    this.parent[node] === this.#wantedParent && this.#keys[node] === this.#wantedKey;

  constructor(capacity: number) {
    this.parent = new Uint32Array(Math.max(capacity, 1));
    this.frame = new Uint32Array(Math.max(capacity, 1));
    this.#keys = new Uint32Array(Math.max(capacity, 1));
  }

  /** For reversed trees: earlier nodes are not needed again. Returns the number of the next node. */
  beginLevel(): number {
    this.#index = new RowIndex();
    return this.length;
  }

  child(parent: number, frame: FrameId, key: FrameId): number {
    const hash = mixHash(mixHash(0, parent), key);
    this.#wantedParent = parent;
    this.#wantedKey = key;
    const found = this.#index.find(hash, this.#same);
    if (found >= 0) {
      return found;
    }
    const node = this.add(parent, frame, key);
    this.#index.add(hash, node);
    return node;
  }

  /** Adds a node that is known to be new. */
  add(parent: number, frame: FrameId, key: FrameId): number {
    const node = this.length++;
    if (node === this.parent.length) {
      this.parent = doubled(this.parent);
      this.frame = doubled(this.frame);
      this.#keys = doubled(this.#keys);
    }
    this.parent[node] = parent;
    this.frame[node] = frame;
    this.#keys[node] = key;
    return node;
  }

  tree(nodeOfStack: Uint32Array): CallTree {
    const { length } = this;
    return {
      length,
      parent: this.parent.slice(0, length),
      frame: this.frame.slice(0, length),
      nodeOfStack,
    };
  }
}

function doubled(column: Uint32Array): Uint32Array {
  const grown = new Uint32Array(column.length * 2);
  grown.set(column);
  return grown;
}
