/** The kinds of references that hold an object. */
import { ROOT_GARBAGE, ROOT_NATIVE } from "../cpython/heap/graph/graph.js";
import type { ObjectGraph } from "../cpython/heap/index.js";
import type { NodeId } from "../model/heap/heap_graph.js";
import { pathTo } from "../model/heap/heap_paths.js";

export type HoldingKind = "held" | "garbage" | "native";

/**
 * An object that is reachable only because its reference count is higher than its known references is held by
 * native code, not by Python.
 */
export function holdingKindOf({ paths, end }: ObjectGraph, node: NodeId): HoldingKind {
  const path = pathTo(paths, node);
  if (path[0] === ROOT_GARBAGE) {
    return "garbage";
  }
  const steps = node < end ? path.length : path.length - 1; // a storage belongs to its tensor
  return steps <= 0 || (path[0] === ROOT_NATIVE && steps <= 2) ? "native" : "held";
}
