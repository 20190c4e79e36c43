/** The kinds of references that hold an object. */
import { ROOT_GARBAGE, ROOT_NATIVE } from "../cpython/heap/graph/graph.js";
import type { ObjectGraph } from "../cpython/heap/index.js";
import { uint32At } from "../model/base/columns.js";
import type { NodeId } from "../model/heap/heap_graph.js";
import { rootOf } from "../model/heap/heap_paths.js";

export type HoldingKind = "held" | "garbage" | "native";

/**
 * An object that is reachable only because its reference count is higher than its known references is held by
 * native code, not by Python.
 */
export function holdingKindOf({ paths, end }: ObjectGraph, node: NodeId): HoldingKind {
  const root = rootOf(paths, node);
  if (root === ROOT_GARBAGE) {
    return "garbage";
  }
  const object = node < end ? node : uint32At(paths.before, node); // a storage belongs to its tensor
  const isLoose = object === 0 || root === 0 || object === root;
  return isLoose || (root === ROOT_NATIVE && uint32At(paths.before, object) === root)
    ? "native"
    : "held";
}
