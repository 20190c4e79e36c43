/**
 * Which stack makes a program's handles (threads, mappings, and descriptors whose opening nobody saw): no rate of
 * growth tells it, for each is a few small objects, and a sample falls on one in hundreds. But a sample that fell
 * on one tells it:
 *
 *     list ──┬─> (near, far): tuple ──┬─> socket          dominators: what would go with a handle, and little
 *            │      small: a record   └─> socket  <── sampled           beside, is that handle's record
 *            └─> ...
 *
 * Every sampled object in a record counts for its stack; the one with most makes them.
 */

import { FIRST_OBJECT, nodeAt, type ObjectGraph } from "../cpython/heap/index.js";
import { uint32At } from "../model/base/columns.js";
import type { StackId } from "../model/base/units.js";
import type { NodeId } from "../model/heap/heap_graph.js";
import type { SampledStack } from "./lookup_request.js";

/** From a handle up, and from a sampled object up. */
const MOST_LEVELS = 4;
/** What has more than that belongs to no single handle. */
const MOST_HANDLES = 4;
const MOST_OBJECTS = 200;

/** null where no sample fell on a record. `handles`: nodes of one kind. */
export function makerOf(
  objects: ObjectGraph,
  handles: readonly NodeId[],
  sampled: readonly SampledStack[],
): StackId | null {
  const records = recordsOf(objects, handles);
  let maker: StackId | null = null;
  let most = 0;
  for (const { stack, addresses } of sampled) {
    const found = addresses.filter((address) =>
      ancestors(objects, nodeAt(objects, address)).some((node) => records.has(node)),
    ).length;
    if (found > most) {
      maker = stack;
      most = found;
    }
  }
  return maker;
}

/** The handles, and what each of them is a part of. */
function recordsOf(objects: ObjectGraph, handles: readonly NodeId[]): ReadonlySet<NodeId> {
  const counts = new Map<NodeId, number>();
  for (const handle of handles) {
    for (const node of ancestors(objects, handle)) {
      counts.set(node, (counts.get(node) ?? 0) + 1);
    }
  }
  const { retainedNodes } = objects.tree;
  const small = [...counts].filter(
    ([node, count]) => count <= MOST_HANDLES && uint32At(retainedNodes, node) <= MOST_OBJECTS,
  );
  return new Set(small.map(([node]) => node));
}

/** The node and what dominates it, nearest first; no roots. */
function ancestors({ tree }: ObjectGraph, node: NodeId): NodeId[] {
  const found: NodeId[] = [];
  for (let at = node; at >= FIRST_OBJECT && found.length < MOST_LEVELS; ) {
    found.push(at);
    at = uint32At(tree.dominator, at);
  }
  return found;
}
