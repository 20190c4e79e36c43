/** The bound of a container that drops old items when it is full. */

import type { ObjectGraph } from "../cpython/heap/index.js";
import { float64At, uint32At } from "../model/base/columns.js";
import type { NodeId } from "../model/heap/heap_graph.js";
import { pathTo } from "../model/heap/heap_paths.js";

/** Objects/dequeobject.c and Modules/_functoolsmodule.c: unchanged from 3.9 to 3.15. */
const DEQUE_MAXLEN = 64;
const LRU_CACHE = 72;
const LRU_MAXSIZE = 96;
const MOST_BOUND = 2 ** 40;
const DEQUE = /(?:^|\.)deque$/;
const LRU_WRAPPER = /_lru_cache_wrapper$/;

/**
 * The bound of the holder, or of the cache whose dict it is; 0 if there is none. An object inside an item of a
 * bounded container is not bounded by it.
 */
export function boundOf(objects: ObjectGraph, holder: NodeId): number {
  const { graph, copy, paths, index } = objects;
  const isOf = (node: NodeId | undefined, type: RegExp): node is NodeId =>
    node !== undefined &&
    node >= graph.firstObject &&
    type.test(graph.typeNames[uint32At(graph.type, node)] ?? "");
  if (isOf(holder, DEQUE)) {
    return bounded(copy.word(float64At(graph.address, holder) + DEQUE_MAXLEN));
  }
  const cache = pathTo(paths, holder)
    .slice(-2)
    .find((node) => isOf(node, LRU_WRAPPER));
  if (cache === undefined) {
    return 0;
  }
  const address = float64At(graph.address, cache);
  // Only if its dict is at the expected offset; another layout proves nothing.
  return index.at(copy.word(address + LRU_CACHE)) === 0
    ? 0
    : bounded(copy.word(address + LRU_MAXSIZE));
}

/** -1 or None means no bound. */
function bounded(word: number): number {
  return word > 0 && word < MOST_BOUND ? word : 0;
}
