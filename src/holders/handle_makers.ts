/**
 * Finds the stack that creates a program's handles (threads, mappings, and descriptors whose opening was not
 * recorded). Growth rates do not show it, because each handle is a few small objects and only one in hundreds
 * is sampled. But a sampled handle shows it:
 *
 *     list ──┬─> (near, far): tuple ──┬─> socket          dominators: objects that would be freed with a
 *            │      small: a record   └─> socket  <── sampled           handle, and little else, are its record
 *            └─> ...
 *
 * Every sampled object in a record counts for its stack; the stack with the most creates the handles.
 */

import { FIRST_OBJECT, nodeAt, type ObjectGraph } from "../cpython/heap/index.js";
import { uint32At } from "../model/base/columns.js";
import type { StackId } from "../model/base/units.js";
import type { NodeId } from "../model/heap/heap_graph.js";
import type { SampledStack } from "./lookup_request.js";

/** Most levels upwards from a handle, and from a sampled object. */
const MOST_LEVELS = 4;
/** An object that dominates more, or more than this share, does not belong to a single handle. */
const MOST_HANDLES = 4;
const MOST_SHARE = 1 / 4;
const MOST_OBJECTS = 200;

/** null if no record was sampled. `handles`: nodes of one kind. */
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

/** The handles, and the objects that each of them is part of. */
function recordsOf(objects: ObjectGraph, handles: readonly NodeId[]): ReadonlySet<NodeId> {
  const counts = new Map<NodeId, number>();
  for (const handle of handles) {
    for (const node of ancestors(objects, handle)) {
      counts.set(node, (counts.get(node) ?? 0) + 1);
    }
  }
  const { tree } = objects;
  const most = Math.min(MOST_HANDLES, handles.length * MOST_SHARE);
  const small = [...counts].filter(
    ([node, count]) => count <= Math.max(1, most) && tree.retainedObjects(node) <= MOST_OBJECTS,
  );
  return new Set(small.map(([node]) => node));
}

/** The node and its dominators, nearest first, without roots. */
function ancestors({ tree }: ObjectGraph, node: NodeId): NodeId[] {
  const found: NodeId[] = [];
  for (let at = node; at >= FIRST_OBJECT && found.length < MOST_LEVELS; ) {
    found.push(at);
    at = uint32At(tree.dominator, at);
  }
  return found;
}
