/** Retained sizes of groups: what would be freed if all objects of one type were removed. */
import { addAt } from "../base/columns.js";
import type { DominatorTree, HeapGraph } from "./heap_graph.js";

/**
 * Bytes that the objects of each group retain together: an object dominated by another of its group is already
 * counted there. `groupOf[n]` is a node's group, below `groups`.
 */
export function retainedByGroup(
  { nodes, firstObject }: HeapGraph,
  { dominator, retained, retainedNodes, order }: DominatorTree,
  groupOf: Uint32Array,
  groups: number,
): Float64Array {
  // The dominator tree in preorder: the nodes that a node dominates are the `retainedNodes` after it.
  const place = new Uint32Array(nodes);
  const next = new Uint32Array(nodes);
  const inOrder = new Uint32Array(order.length);
  next[0] = 1;
  for (const node of order.subarray(1)) {
    const above = dominator[node] ?? 0;
    place[node] = next[above] ?? 0;
    next[above] = (next[above] ?? 0) + (retainedNodes[node] ?? 0);
    next[node] = place[node] + 1;
    inOrder[place[node]] = node;
  }
  const bytes = new Float64Array(groups);
  const coveredTo = new Uint32Array(groups);
  for (let at = 0; at < inOrder.length; at++) {
    const node = inOrder[at] ?? 0;
    const group = groupOf[node] ?? 0;
    if (node >= firstObject && at >= (coveredTo[group] ?? 0)) {
      addAt(bytes, group, retained[node] ?? 0);
      coveredTo[group] = at + (retainedNodes[node] ?? 0);
    }
  }
  return bytes;
}
