/** Retained sizes of groups: what would be freed if all objects of one type went. */
import type { DominatorTree, HeapGraph } from "./heap_graph.js";

/**
 * Bytes that the objects of each group retain together: an object under another of its own group counts
 * there already. `groupOf[n]` is a node's group, below `groups`.
 */
export function retainedByGroup(
  { nodes, firstObject }: HeapGraph,
  { dominator, retained, retainedNodes, order }: DominatorTree,
  groupOf: Uint32Array,
  groups: number,
): Float64Array {
  // The dominator tree in preorder: what a node dominates is the run of `retainedNodes` behind it.
  const place = new Uint32Array(nodes);
  const next = new Uint32Array(nodes);
  const inOrder = new Uint32Array(order.length);
  next[0] = 1;
  for (const node of order.subarray(1)) {
    const above = dominator[node];
    place[node] = next[above];
    next[above] += retainedNodes[node];
    next[node] = place[node] + 1;
    inOrder[place[node]] = node;
  }
  const bytes = new Float64Array(groups);
  const coveredTo = new Uint32Array(groups);
  for (let at = 0; at < inOrder.length; at++) {
    const node = inOrder[at];
    const group = groupOf[node];
    if (node >= firstObject && at >= coveredTo[group]) {
      bytes[group] += retained[node];
      coveredTo[group] = at + retainedNodes[node];
    }
  }
  return bytes;
}
