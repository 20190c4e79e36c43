/**
 * Call trees over typed arrays, callees below (from the program's entry) or callers below (from the
 * allocating function), for one figure or several side by side: two make a differential tree.
 *
 *     const live = stackFigures(profile, "liveBytes", selectSites(profile, { thread: 0 }));
 *     const tree = calleesBelow(profile, [live], "line");
 *     for (const child of childrenOf(tree, 0)) draw(tree.frame[child], tree.total[0][child]);
 */
import { FrameKind, type Profile, type ProfileTables, type SiteValue } from "./profile.js";
import { mixHash, RowIndex } from "./row_index.js";
import type { FrameId } from "./units.js";

/** What makes two frames one node: the line that called, or the function alone. */
export type Granularity = "line" | "function";

/** Node 0 is the root; `parent[i] < i`. */
export interface CallTree {
  readonly length: number;
  readonly parent: Uint32Array;
  /** A frame of the node; all of them are alike in the chosen granularity. The root's means nothing. */
  readonly frame: Uint32Array;
  /** By figure: what was allocated in the node itself. */
  readonly own: readonly Float64Array[];
  /** By figure: own and everything below. */
  readonly total: readonly Float64Array[];
  /** Node `i` has the children `children[childStart[i]]` to before `children[childStart[i + 1]]`, the
   * largest first (by the largest of its totals). */
  readonly childStart: Uint32Array;
  readonly children: Uint32Array;
  /** By stack: the node that took its figures; 0 where it had none. */
  readonly nodeOfStack: Uint32Array;
  /** True where small nodes were not split: their own figures hold what came from their callers. */
  readonly cut: boolean;
}

/** Of a gibibyte that is 4 KiB, far below what a sample stands for. */
const SMALLEST_SHARE = 4e-6;

/** A figure by stack: the sum over the sites of `rows` (all where absent). */
export function stackFigures(profile: Profile, value: SiteValue, rows?: Uint32Array): Float64Array {
  const { sites, stacks } = profile;
  const figures = new Float64Array(stacks.length);
  const values = sites[value];
  const count = rows?.length ?? sites.length;
  for (let index = 0; index < count; index++) {
    const site = rows === undefined ? index : rows[index]!;
    figures[sites.stack[site]!]! += values[site]!;
  }
  return figures;
}

/** The tree of calls. Stacks without any figure have no node. */
export function calleesBelow(
  tables: ProfileTables,
  figures: readonly Float64Array[],
  granularity: Granularity = "line",
): CallTree {
  const { stacks } = tables;
  const keys = frameKeys(tables, granularity);
  const weights = weightsOf(figures, stacks.length);
  const used = new Uint8Array(stacks.length);
  for (let stack = stacks.length - 1; stack > 0; stack--) {
    if (used[stack] === 1 || weights[stack]! > 0) {
      used[stack] = 1;
      used[stacks.parent[stack]!] = 1;
    }
  }
  // The stack table is this tree already where every frame is unlike all others.
  const asItIs = keys.every((key, frame) => key === frame);
  const nodes = new NodeTable(stacks.length);
  const nodeOfStack = new Uint32Array(stacks.length);
  for (let stack = 1; stack < stacks.length; stack++) {
    if (used[stack] === 1) {
      const frame = stacks.frame[stack]!;
      const parent = nodeOfStack[stacks.parent[stack]!]!;
      nodeOfStack[stack] = asItIs
        ? nodes.add(parent, frame, frame)
        : nodes.child(parent, frame, keys[frame]!);
    }
  }
  return finish(nodes, nodeOfStack, figures, false);
}

/** The tree turned over: the root's children are the frames that allocated, below each its callers.
 * All stacks take a step towards their roots at once, level by level. The whole could be as large as all
 * stacks together, so a node below `smallestShare` of the figures' sum is not split into its callers. */
export function callersBelow(
  tables: ProfileTables,
  figures: readonly Float64Array[],
  granularity: Granularity = "line",
  smallestShare = SMALLEST_SHARE,
): CallTree {
  const { stacks } = tables;
  const keys = frameKeys(tables, granularity);
  const nodes = new NodeTable(1024);
  const nodeOfStack = new Uint32Array(stacks.length);
  const weights = weightsOf(figures, stacks.length);
  const smallest = weights.reduce((sum, weight) => sum + weight, 0) * smallestShare;
  /** The stacks under way, and where each is now. */
  const leaves = Uint32Array.from(weights.keys()).filter(
    (stack) => stack !== 0 && weights[stack]! > 0,
  );
  const places = leaves.slice();
  let cut = false;
  for (let going = leaves.length; going > 0; ) {
    const firstNew = nodes.beginLevel();
    const levelWeights = new Float64Array(going);
    for (let index = 0; index < going; index++) {
      const leaf = leaves[index]!;
      const frame = stacks.frame[places[index]!]!;
      const node = nodes.child(nodeOfStack[leaf]!, frame, keys[frame]!);
      nodeOfStack[leaf] = node;
      levelWeights[node - firstNew]! += weights[leaf]!;
    }
    let left = 0;
    for (let index = 0; index < going; index++) {
      const leaf = leaves[index]!;
      const caller = stacks.parent[places[index]!]!;
      if (caller !== 0 && levelWeights[nodeOfStack[leaf]! - firstNew]! >= smallest) {
        leaves[left] = leaf;
        places[left++] = caller;
      } else {
        cut ||= caller !== 0;
      }
    }
    going = left;
  }
  return finish(nodes, nodeOfStack, figures, cut);
}

/** The children of a node, the largest first. */
export function childrenOf(tree: CallTree, node: number): Uint32Array {
  return tree.children.subarray(tree.childStart[node]!, tree.childStart[node + 1]!);
}

/** By stack: the sum of its own figures' sizes; 0 where it has none. */
function weightsOf(figures: readonly Float64Array[], length: number): Float64Array {
  const weights = new Float64Array(length);
  for (const figure of figures) {
    for (let stack = 0; stack < length; stack++) {
      weights[stack]! += Math.abs(figure[stack]!);
    }
  }
  return weights;
}

/** By frame: the first frame that is alike. */
function frameKeys({ frames }: ProfileTables, granularity: Granularity): Uint32Array {
  const keys = new Uint32Array(frames.length);
  const index = new RowIndex();
  const byLine = granularity === "line";
  let frame: FrameId = 0;
  // Native code without a symbol is told apart by its address, as nothing else does.
  const addressOf = (row: FrameId) =>
    frames.kind[row] === FrameKind.native && frames.function[row] === 0 ? frames.address[row]! : 0;
  const alike = (row: FrameId) =>
    frames.function[row] === frames.function[frame] &&
    frames.file[row] === frames.file[frame] &&
    frames.kind[row] === frames.kind[frame] &&
    (byLine
      ? frames.line[row] === frames.line[frame]
      : frames.firstLine[row] === frames.firstLine[frame]) &&
    addressOf(row) === addressOf(frame);
  for (; frame < frames.length; frame++) {
    const place = byLine ? frames.line[frame]! : frames.firstLine[frame]!;
    const hash = mixHash(
      mixHash(mixHash(frames.function[frame]!, frames.file[frame]!), place),
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

  /** Of callers' trees: nodes above are not asked for again. Gives the number of the next node. */
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

  /** A node that is known to be new. */
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
}

function doubled(column: Uint32Array): Uint32Array {
  const grown = new Uint32Array(column.length * 2);
  grown.set(column);
  return grown;
}

function finish(
  nodes: NodeTable,
  nodeOfStack: Uint32Array,
  figures: readonly Float64Array[],
  cut: boolean,
): CallTree {
  const { length } = nodes;
  const parent = nodes.parent.slice(0, length);
  const own = figures.map((figure) => {
    const sums = new Float64Array(length);
    for (let stack = 0; stack < nodeOfStack.length; stack++) {
      sums[nodeOfStack[stack]!]! += figure[stack]!;
    }
    return sums;
  });
  const total = own.map((sums) => {
    const totals = sums.slice();
    for (let node = length - 1; node > 0; node--) {
      totals[parent[node]!]! += totals[node]!;
    }
    return totals;
  });
  return {
    length,
    parent,
    frame: nodes.frame.slice(0, length),
    own,
    total,
    ...childLists(parent, total),
    nodeOfStack,
    cut,
  };
}

/** Children grouped by parent (a counting sort), each group ordered by size. */
function childLists(
  parent: Uint32Array,
  totals: readonly Float64Array[],
): { readonly childStart: Uint32Array; readonly children: Uint32Array } {
  const { length } = parent;
  const childStart = new Uint32Array(length + 1);
  for (let node = 1; node < length; node++) {
    childStart[parent[node]! + 1]! += 1;
  }
  for (let node = 0; node < length; node++) {
    childStart[node + 1]! += childStart[node]!;
  }
  const next = childStart.slice();
  const children = new Uint32Array(length - 1);
  for (let node = 1; node < length; node++) {
    children[next[parent[node]!]!++] = node;
  }
  const sizes = new Float64Array(length);
  for (const total of totals) {
    for (let node = 0; node < length; node++) {
      sizes[node] = Math.max(sizes[node]!, total[node]!);
    }
  }
  for (let node = 0; node < length; node++) {
    const from = childStart[node]!;
    const to = childStart[node + 1]!;
    if (to - from > 1) {
      children.subarray(from, to).sort((a, b) => sizes[b]! - sizes[a]! || a - b);
    }
  }
  return { childStart, children };
}
