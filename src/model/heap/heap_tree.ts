/**
 * The dominator tree reduced to the size of a page, with correct sums:
 *
 *   dominator tree ── largest nodes ──> separate rows
 *                  └─ the rest ──> a row for each type below one of those ──> the rest below it as one row
 *
 * A dominator of a large node is at least as large, so the nodes above a size also form a tree.
 */

import { itemAt } from "../base/columns.js";
import type { Bytes, Objects } from "../base/units.js";
import type { DominatorTree, HeapGraph, NodeId } from "./heap_graph.js";

/** What a row represents. */
export const TreeKind = {
  /** One object. */
  object: 0,
  /** A kind of root; row 0 is all of them. */
  root: 1,
  /** Small objects of one type directly under the row above. */
  together: 2,
  /** Small objects of many types directly under the row above. */
  others: 3,
} as const;

/** Columns by row; each row comes after its dominator. */
export interface HeapTree {
  readonly rows: number;
  /** Parent row; 0 for row 0. */
  readonly parent: Uint32Array;
  /** Of {@link TreeKind}. */
  readonly kind: Uint8Array;
  /** Row of `typeNames`; 0 for several types. */
  readonly type: Uint32Array;
  /** Objects that the row itself represents; 0 for a root. */
  readonly count: Float64Array;
  readonly shallow: Float64Array;
  /** Including all rows below. */
  readonly retained: Float64Array;
  /** Objects, including those of all rows below. */
  readonly objects: Float64Array;
  /** 0 if the row is not a single object. */
  readonly address: Float64Array;
  /** Each name once. */
  readonly typeNames: readonly string[];
  readonly places: TypePlaces;
}

/** Locations of a type's objects: of type t, places[start[t] .. start[t + 1]), most bytes first. */
interface TypePlaces {
  readonly start: Uint32Array;
  readonly row: Uint32Array;
  readonly objects: Float64Array;
  readonly bytes: Float64Array;
}

export interface CutTree extends HeapTree {
  /** For each row, its node; 0 if it is not a single node. */
  readonly node: Uint32Array;
}

interface TreeBounds {
  readonly nodes: number;
  /** Levels of nodes: a linked list of a million objects must not take all rows. */
  readonly levels: number;
  /** Least share of its holder for a separate row; of a thousand similar objects, none gets one. */
  readonly share: number;
  readonly groups: number;
  /** Most rows for each type. */
  readonly places: number;
}

const PAGE_BOUNDS: TreeBounds = {
  nodes: 10_000,
  levels: 40,
  share: 0.001,
  groups: 10_000,
  places: 40,
};

interface Group {
  readonly parent: number;
  readonly type: number;
  count: Objects;
  shallow: Bytes;
  retained: Bytes;
  objects: Objects;
}

/** Cuts to at most `nodes` + 2 x `groups` rows, not counting roots. */
export function cutTree(
  graph: HeapGraph,
  tree: DominatorTree,
  bounds: TreeBounds = PAGE_BOUNDS,
): CutTree {
  const { firstObject } = graph;
  const { typeNames, typeOf } = uniqueNames(graph.typeNames);
  const worthy = nodesWithin(tree, firstObject, bounds);
  const above = sizeAbove(worthy, tree.retained, bounds.nodes);
  const selected = worthy.filter((node) =>
    node < firstObject
      ? node === 0 || (tree.retained[node] ?? 0) > 0
      : (tree.retained[node] ?? 0) > above,
  );
  // For each node the row that it counts for: its own, or from `selected.length` on a group's.
  const place = new Uint32Array(graph.nodes);
  const groups = gather(graph, tree, typeOf, typeNames.length, selected, place);
  const { kept, rowOfGroup } = fold(groups, selected.length, bounds.groups);
  const rows = selected.length + kept.length;
  const cut = {
    rows,
    parent: new Uint32Array(rows),
    kind: new Uint8Array(rows),
    type: new Uint32Array(rows),
    count: new Float64Array(rows),
    shallow: new Float64Array(rows),
    retained: new Float64Array(rows),
    objects: new Float64Array(rows),
    address: new Float64Array(rows),
    node: new Uint32Array(rows),
    typeNames,
  };
  selected.forEach((node, row) => {
    const isRoot = node < firstObject;
    cut.parent[row] = place[tree.dominator[node] ?? 0] ?? 0;
    cut.kind[row] = isRoot ? TreeKind.root : TreeKind.object;
    cut.type[row] = isRoot ? 0 : (typeOf[graph.type[node] ?? 0] ?? 0);
    cut.count[row] = isRoot ? 0 : 1;
    cut.shallow[row] = graph.shallow[node] ?? 0;
    cut.retained[row] = tree.retained[node] ?? 0;
    cut.objects[row] = tree.retainedNodes[node] ?? 0;
    cut.address[row] = isRoot ? 0 : (graph.address[node] ?? 0);
    cut.node[row] = node;
  });
  kept.forEach((group, n) => {
    const row = selected.length + n;
    cut.parent[row] = group.parent;
    cut.kind[row] = group.type < 0 ? TreeKind.others : TreeKind.together;
    cut.type[row] = Math.max(group.type, 0);
    cut.count[row] = group.count;
    cut.shallow[row] = group.shallow;
    cut.retained[row] = group.retained;
    cut.objects[row] = group.objects;
  });
  const rowOf = (node: NodeId) => {
    const at = place[node] ?? 0;
    return at < selected.length ? at : (rowOfGroup[at - selected.length] ?? 0);
  };
  return { ...cut, places: findPlaces(graph, tree, typeOf, cut, rowOf, bounds.places) };
}

/** Nodes that may have rows, in tree order; their dominators may as well. */
function nodesWithin(
  { order, dominator, retained }: DominatorTree,
  firstObject: NodeId,
  { levels, share }: TreeBounds,
): Uint32Array {
  // Below the common root; `levels + 1` and more: no row.
  const level = new Uint32Array(dominator.length);
  return order.filter((node) => {
    const above = dominator[node] ?? 0;
    const isLarge = above < firstObject || (retained[node] ?? 0) >= (retained[above] ?? 0) * share;
    level[node] = node === 0 ? 0 : isLarge ? (level[above] ?? 0) + 1 : levels + 1;
    return level[node] <= levels;
  });
}

/** At most `most` of the nodes retain more than this. */
function sizeAbove(nodes: Uint32Array, retained: Float64Array, most: number): Bytes {
  if (nodes.length <= most) {
    return -1;
  }
  const sizes = Float64Array.from(nodes, (node) => retained[node] ?? 0).sort();
  return sizes[sizes.length - most - 1] ?? 0;
}

/** Fills `place`, and sums nodes without a row by their parent row and type. */
function gather(
  { type, shallow }: HeapGraph,
  { order, dominator, retained, retainedNodes }: DominatorTree,
  typeOf: Uint32Array,
  types: number,
  selected: Uint32Array,
  place: Uint32Array,
): Group[] {
  const groups: Group[] = [];
  const known = new Map<number, number>();
  let next = 0;
  for (const node of order) {
    if (selected[next] === node) {
      place[node] = next++;
      continue;
    }
    const parent = place[dominator[node] ?? 0] ?? 0;
    if (parent >= selected.length) {
      place[node] = parent; // deeper within a group
      continue;
    }
    const key = parent * types + (typeOf[type[node] ?? 0] ?? 0);
    let at = known.get(key);
    if (at === undefined) {
      at = groups.length;
      known.set(key, at);
      const ofType = typeOf[type[node] ?? 0] ?? 0;
      groups.push({ parent, type: ofType, count: 0, shallow: 0, retained: 0, objects: 0 });
    }
    add(itemAt(groups, at), {
      count: 1,
      shallow: shallow[node] ?? 0,
      retained: retained[node] ?? 0,
      objects: retainedNodes[node] ?? 0,
    });
    place[node] = selected.length + at;
  }
  return groups;
}

function add(sum: Group, part: Pick<Group, "count" | "shallow" | "retained" | "objects">): void {
  sum.count += part.count;
  sum.shallow += part.shallow;
  sum.retained += part.retained;
  sum.objects += part.objects;
}

/** Keeps the largest groups; the others below one row are merged. */
function fold(
  groups: readonly Group[],
  firstRow: number,
  most: number,
): { kept: Group[]; rowOfGroup: Uint32Array } {
  const bySize = groups.map((_, n) => n);
  bySize.sort((a, b) => itemAt(groups, b).retained - itemAt(groups, a).retained);
  const kept: Group[] = [];
  const othersUnder = new Map<number, number>();
  const rowOfGroup = new Uint32Array(groups.length);
  for (const [rank, n] of bySize.entries()) {
    const group = itemAt(groups, n);
    let at = rank < most ? undefined : othersUnder.get(group.parent);
    if (at === undefined) {
      at = kept.length;
      kept.push(rank < most ? group : { ...group, type: -1 });
      if (rank >= most) {
        othersUnder.set(group.parent, at);
      }
    } else {
      add(itemAt(kept, at), group);
    }
    rowOfGroup[n] = firstRow + at;
  }
  return { kept, rowOfGroup };
}

/** Adds up each type's objects by the row that they count to. */
function findPlaces(
  { firstObject, type, shallow }: HeapGraph,
  { order }: DominatorTree,
  typeOf: Uint32Array,
  { rows, typeNames }: Pick<HeapTree, "rows" | "typeNames">,
  rowOf: (node: NodeId) => number,
  most: number,
): TypePlaces {
  const known = new Map<number, { row: number; objects: Objects; bytes: Bytes }>();
  const byType: { row: number; objects: Objects; bytes: Bytes }[][] = typeNames.map(() => []);
  for (const node of order) {
    if (node < firstObject) {
      continue;
    }
    const row = rowOf(node);
    const ofType = typeOf[type[node] ?? 0] ?? 0;
    const key = ofType * rows + row;
    let place = known.get(key);
    if (place === undefined) {
      place = { row, objects: 0, bytes: 0 };
      known.set(key, place);
      byType[ofType]?.push(place);
    }
    place.objects += 1;
    place.bytes += shallow[node] ?? 0;
  }
  const largest = byType.map((places) =>
    places.sort((a, b) => b.bytes - a.bytes || b.objects - a.objects).slice(0, most),
  );
  const all = largest.flat();
  const start = new Uint32Array(typeNames.length + 1);
  largest.forEach((places, n) => {
    start[n + 1] = (start[n] ?? 0) + places.length;
  });
  return {
    start,
    row: Uint32Array.from(all, (place) => place.row),
    objects: Float64Array.from(all, (place) => place.objects),
    bytes: Float64Array.from(all, (place) => place.bytes),
  };
}

/** Two classes may have the same name. */
function uniqueNames(names: readonly string[]): { typeNames: string[]; typeOf: Uint32Array } {
  const rows = new Map<string, number>();
  const typeOf = Uint32Array.from(names, (name) => {
    const row = rows.get(name) ?? rows.size;
    rows.set(name, row);
    return row;
  });
  return { typeNames: [...rows.keys()], typeOf };
}
