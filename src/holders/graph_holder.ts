/** Finds the holder of memory that an autograd graph keeps. */

import { ROOT_STACKS } from "../cpython/heap/graph/graph.js";
import {
  type Holder,
  holderOf,
  itselfAsHolder,
  nodesOfType,
  type ObjectGraph,
} from "../cpython/heap/index.js";
import { isMadeByGraph } from "../cpython/heap/objects/tensor.js";
import { float64At, itemAt } from "../model/base/columns.js";
import type { NodeId } from "../model/heap/heap_graph.js";
import { pathTo } from "../model/heap/heap_paths.js";
import { graphSizes } from "./autograd_graphs.js";
import { holdingKindOf } from "./holding_kind.js";

const TENSOR = "torch.Tensor";
const MOST_TENSORS = 400;
const MOST_HELD = 20_000;
/** With more results than this, their container is the holder. */
const MOST_RANKED = 48;
/** With more held tensors than this, only those that the copy shows as results are considered. */
const MOST_WATCHED = 256;
/** Number of C++ blocks behind the result of one step of a small model. */
const BLOCKS_OF_A_STEP = 400;

export function hasTensors(objects: ObjectGraph): boolean {
  return nodesOfType(objects, TENSOR).length > 0;
}

/** A tensor created by a graph, or its storage. */
export function isOfGraph({ graph, copy, paths, end }: ObjectGraph, node: NodeId): boolean {
  const tensor = node < end ? node : (pathTo(paths, node).at(-2) ?? 0);
  return tensor >= graph.firstObject && isMadeByGraph(copy, float64At(graph.address, tensor));
}

/**
 * Memory kept by a graph has no Python object; it is reachable from the tensor at the graph's end. So its
 * holder is the container of graph results or, if none is found, the container of most tensors. null if there
 * is no common one.
 */
export function graphHolder(objects: ObjectGraph): Holder | null {
  const tensors = nodesOfType(objects, TENSOR);
  const held = evenly(
    tensors.filter((node) => holdingKindOf(objects, node) === "held" && !isPassing(objects, node)),
    MOST_HELD,
  );
  const results = held.filter((node) => isOfGraph(objects, node));
  const few = held.length > MOST_WATCHED ? results : held;
  const ends = results.length > MOST_RANKED ? results : largestGraphs(objects, few);
  if (ends.length === 1) {
    return itselfAsHolder(objects, itemAt(ends, 0));
  }
  const common = ends.length > 0 || results.length > 0 ? ends : held;
  return holderOf(objects, evenly(common, MOST_TENSORS));
}

/** It is on a stack but in no variable, so it is being computed. */
function isPassing({ graph, paths, frames }: ObjectGraph, node: NodeId): boolean {
  const [root, ...way] = pathTo(paths, node);
  const words = frames.wordsTo(float64At(graph.address, node));
  return (
    root === ROOT_STACKS && way.length === 1 && !(words?.at(-1)?.startsWith("local ") ?? false)
  );
}

/**
 * Among few results, one that is kept all the time has the graphs of all steps behind it, the others only that
 * of one step. If there is only one candidate, the other was not found.
 */
function largestGraphs(objects: ObjectGraph, nodes: readonly NodeId[]): NodeId[] {
  const blocks = graphSizes(objects, nodes);
  const most = Math.max(1, ...blocks);
  const largest = nodes.filter((_, n) => itemAt(blocks, n) >= most / 2);
  return largest.length === 1 && most < BLOCKS_OF_A_STEP ? [] : largest;
}

function evenly(nodes: readonly NodeId[], most: number): NodeId[] {
  const step = Math.max(1, nodes.length / most);
  return Array.from({ length: Math.min(nodes.length, most) }, (_, i) =>
    itemAt(nodes, Math.floor(i * step)),
  );
}
