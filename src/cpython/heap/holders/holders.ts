/** The holder of an object: its accumulation point as text, with its retained size. */

import { float64At, uint32At } from "../../../model/base/columns.js";
import type { Address, Bytes, Objects } from "../../../model/base/units.js";
import type { NodeId } from "../../../model/heap/heap_graph.js";
import { pathTo } from "../../../model/heap/heap_paths.js";
import { FIRST_OBJECT, type ObjectGraph } from "../graph/graph.js";
import { chainText } from "../names/chains.js";
import { StepNames } from "../names/step_names.js";
import { lastAtMost } from "../objects/owned_buffers.js";
import {
  SHAPE_ARRAY,
  SHAPE_BYTEARRAY,
  SHAPE_DEQUE,
  SHAPE_DICT,
  SHAPE_LIST,
  SHAPE_NDARRAY,
  SHAPE_ORDERED_DICT,
  SHAPE_SET,
  SHAPE_TABLED,
  SHAPE_TENSOR,
  SHAPE_TUPLE,
  SHAPE_TYPE,
} from "../objects/type_table.js";
import { accumulationPoint, isNamespace } from "./accumulation.js";
import { type AlikeParts, alikeParts } from "./alike_parts.js";

export interface Holder {
  readonly node: NodeId;
  readonly address: Address;
  readonly type: string;
  /** From a root to the holder: "module app", "running_stats". */
  readonly path: readonly string[];
  readonly retainedBytes: Bytes;
  /** Entries of a container; 0 for anything else. */
  readonly entries: Objects;
  /** Objects that would be freed with it. */
  readonly objects: Objects;
}

interface FoundObject {
  /** The requested address. */
  readonly address: Address;
  /** The object there, or the owner of the buffer there. */
  readonly node: NodeId;
  readonly type: string;
}

/** The object at or around an address, or the owner of the buffer that begins there; 0 if there is none. */
export function nodeAt(objects: ObjectGraph, address: Address): NodeId {
  const { index, buffers, graph } = objects;
  // A sampled address is that of a block: the object begins after its GC head and what precedes it.
  for (const before of [0, 16, 32, 48]) {
    const node = index.at(address + before);
    if (node !== 0 && blockStart(objects, node) <= address) {
      return node;
    }
  }
  const owner = buffers.ownerOf(address);
  if (owner !== 0) {
    return owner;
  }
  // Within an object: the last one that begins before the address, if it is long enough.
  const objectAddresses = graph.address.subarray(FIRST_OBJECT, objects.end);
  const row = lastAtMost(objectAddresses.length, (n) => float64At(objectAddresses, n), address);
  return row >= 0 &&
    address < float64At(objectAddresses, row) + bytesInPlace(objects, row + FIRST_OBJECT)
    ? row + FIRST_OBJECT
    : 0;
}

/** Most of what counts for these types is elsewhere: a table, items, data. */
const KEPT_ELSEWHERE: ReadonlySet<number> = new Set([
  SHAPE_LIST,
  SHAPE_DICT,
  SHAPE_ORDERED_DICT,
  SHAPE_SET,
  SHAPE_DEQUE,
  SHAPE_BYTEARRAY,
  SHAPE_ARRAY,
  SHAPE_NDARRAY,
  SHAPE_TENSOR,
  SHAPE_TYPE,
  SHAPE_TABLED,
]);

/** Bytes from an object's address to the end of the object itself. */
export function bytesInPlace({ graph, types }: ObjectGraph, node: NodeId): Bytes {
  const row = uint32At(graph.type, node);
  return KEPT_ELSEWHERE.has(types.of(row).shape)
    ? types.of(row).basicSize
    : float64At(graph.shallow, node) - types.of(row).preHeader;
}

function blockStart({ graph, types }: ObjectGraph, node: NodeId): Address {
  return float64At(graph.address, node) - types.of(uint32At(graph.type, node)).preHeader - 16;
}

/** What is at each address. Addresses without a known object are left out. */
export function findObjects(
  objects: ObjectGraph,
  addresses: readonly Address[],
): readonly FoundObject[] {
  const names = new StepNames(objects);
  return addresses.flatMap((address) => {
    const node = nodeAt(objects, address);
    return node === 0 ? [] : [{ address, node, type: names.typeName(node) }];
  });
}

/** The holder of most of the objects, where they accumulate; null if only roots hold them. */
export function holderOf(objects: ObjectGraph, nodes: readonly NodeId[]): Holder | null {
  const names = new StepNames(objects);
  const node = accumulationPoint(objects, names, nodes);
  if (node === 0) {
    return null;
  }
  const alike = alikeParts(objects, names, node, nodes);
  const together = alike === null ? null : togetherOf(objects, names, node, alike);
  // The object with more entries or links than each of its entries has is the one that grows.
  const least = (alike?.ends.length ?? 0) * entriesOf(objects, node);
  if (alike && together && Math.max(together.entries, alike.links) > least) {
    return together;
  }
  const retains = retainerOf(objects, names, node, nodes);
  const holder = describeHolder(objects, names, node);
  const onward = chainText(objects, names, node, nodes);
  const path = onward === null ? holder.path : [...holder.path, onward];
  return { ...holder, path, ...retainedBy(objects, retains) };
}

/**
 * Similar containers, reported as one: the path to the object that contains them, and the path from each entry
 * onwards.
 */
function togetherOf(
  objects: ObjectGraph,
  names: StepNames,
  container: NodeId,
  { ends, words }: AlikeParts,
): Holder {
  const all = ends.map((end) => describeHolder(objects, names, end));
  const [first] = all as [Holder];
  const sum = (figure: "retainedBytes" | "entries" | "objects") =>
    all.reduce((total, holder) => total + holder[figure], 0);
  return {
    ...first,
    path: [...names.words(pathTo(objects.paths, container)), `each of ${ends.length}`, ...words],
    retainedBytes: sum("retainedBytes"),
    entries: sum("entries"),
    objects: sum("objects"),
  };
}

/**
 * The holder, or the first object before it on its path that alone keeps most of them: a cache keeps each entry
 * both in its dict and in its order, so neither of the two does.
 */
function retainerOf(
  objects: ObjectGraph,
  names: StepNames,
  holder: NodeId,
  nodes: readonly NodeId[],
): NodeId {
  const { tree } = objects;
  const way = pathTo(objects.paths, holder);
  const found = way.findLast(
    (object, n) =>
      object >= FIRST_OBJECT &&
      !isNamespace(objects, names, object, way[n - 1] ?? 0) &&
      nodes.filter((node) => tree.dominates(object, node)).length * 2 >= nodes.length,
  );
  return found ?? holder;
}

function retainedBy(
  { tree }: ObjectGraph,
  node: NodeId,
): Pick<Holder, "retainedBytes" | "objects"> {
  return {
    retainedBytes: tree.retainedBytes(node),
    objects: tree.retainedObjects(node),
  };
}

/** An object that holds something directly, as the holder of it. */
export function itselfAsHolder(objects: ObjectGraph, node: NodeId): Holder {
  return describeHolder(objects, new StepNames(objects), node);
}

function describeHolder(objects: ObjectGraph, names: StepNames, node: NodeId): Holder {
  const { graph, paths } = objects;
  return {
    node,
    address: float64At(graph.address, node),
    type: names.typeName(node),
    path: names.words(pathTo(paths, node)),
    entries: entriesOf(objects, node),
    ...retainedBy(objects, node),
  };
}

/** ma_used, ob_size or `used` of the built-in containers, which all follow the type. */
function entriesOf({ graph, types, copy }: ObjectGraph, node: NodeId): Objects {
  const address = float64At(graph.address, node);
  const place = ENTRIES_AT[types.of(uint32At(graph.type, node)).shape];
  return node < FIRST_OBJECT || place === undefined ? 0 : Math.max(0, copy.word(address + place));
}

const ENTRIES_AT: Readonly<Record<number, Bytes>> = {
  [SHAPE_DICT]: 16,
  [SHAPE_ORDERED_DICT]: 16,
  [SHAPE_LIST]: 16,
  [SHAPE_TUPLE]: 16,
  [SHAPE_DEQUE]: 16,
  [SHAPE_SET]: 24,
};

/** Minimum share of all retained memory; smaller holders are not listed. */
const LEAST_GATHERED = 1 / 5000;

/**
 * The objects that retain most while none of their retained objects retains nearly as much. Among those with
 * the same path, such as items of a list, only the largest is listed; they would hide all others.
 */
export function largestHolders(objects: ObjectGraph, most: number): Holder[] {
  const { graph, tree, types, paths, end } = objects;
  const drop = new Float64Array(graph.nodes);
  const largestChild = new Float64Array(graph.nodes);
  for (let n = tree.order.length - 1; n > 0; n--) {
    const node = uint32At(tree.order, n);
    const above = uint32At(tree.dominator, node);
    // The storage of a single tensor is part of that tensor; one that several tensors share is a holder of its
    // own.
    const isPart = node >= end && types.of(uint32At(graph.type, above)).shape === SHAPE_TENSOR;
    if (!isPart) {
      largestChild[above] = Math.max(
        float64At(largestChild, above),
        float64At(tree.retained, node),
      );
    }
    drop[node] = isPart ? 0 : float64At(tree.retained, node) - float64At(largestChild, node);
  }
  const gathering: NodeId[] = [];
  const least = LEAST_GATHERED * float64At(tree.retained, 0);
  for (let node = FIRST_OBJECT; node < graph.nodes; node++) {
    if (float64At(drop, node) > least) {
      gathering.push(node);
    }
  }
  gathering.sort((a, b) => float64At(drop, b) - float64At(drop, a));
  const names = new StepNames(objects);
  const byWords = new Map<string, NodeId>();
  for (const node of gathering) {
    const words = [...names.words(pathTo(paths, node)), names.typeName(node)].join("\n");
    if (!byWords.has(words)) {
      byWords.set(words, node);
    }
    if (byWords.size === most) {
      break;
    }
  }
  return [...byWords.values()].map((node) => describeHolder(objects, names, node));
}
