/**
 * Storages of torch tensors as nodes of the graph: views and parameters share them, and a storage is freed with
 * its last tensor.
 *
 *   tensor ──> storage <── view          a node after those of Python's objects, identified by the address of its data
 *   tensor ──> ndarray                    of torch.from_numpy: the array owns the data
 */

import { float64At, uint32At } from "../../../model/base/columns.js";
import type { Address, Bytes } from "../../../model/base/units.js";
import type { NodeId } from "../../../model/heap/heap_graph.js";
import type { HeapPages } from "../memory/heap_pages.js";
import { readStorageOf } from "./tensor.js";
import { SHAPE_NDARRAY, SHAPE_TENSOR, type TypeTable } from "./type_table.js";

export interface Storages {
  /** Data addresses and sizes; row n is the node `first + n`. */
  readonly addresses: readonly Address[];
  readonly bytes: readonly Bytes[];
  /** What a tensor refers to: a storage, or the array whose data it uses. */
  readonly ofTensor: ReadonlyMap<NodeId, NodeId>;
}

/** Bit 2 of an array's flags: it owns its data. */
const NDARRAY_OWNS = 4;
const NDARRAY_DATA = 16;
const NDARRAY_FLAGS = 64;

/** @param address and @param type columns of the objects from node `from` on, up to node `first`. */
export function findStorages(
  copy: HeapPages,
  types: TypeTable,
  address: Float64Array,
  type: Uint32Array,
  from: NodeId,
  first: NodeId,
): Storages {
  const tensors: NodeId[] = [];
  const arrays: NodeId[] = [];
  const end = types.hasShape(SHAPE_TENSOR) ? first : from;
  for (let node = from; node < end; node++) {
    const shape = types.of(uint32At(type, node)).shape;
    if (shape === SHAPE_TENSOR) {
      tensors.push(node);
    } else if (shape === SHAPE_NDARRAY) {
      arrays.push(node);
    }
  }
  const owners = new Map<Address, NodeId>();
  const addresses: Address[] = [];
  const bytes: Bytes[] = [];
  const ofTensor = new Map<NodeId, NodeId>();
  if (tensors.length > 0) {
    for (const node of arrays) {
      const flags = copy.index(float64At(address, node) + NDARRAY_FLAGS);
      if (flags >= 0 && ((copy.words[flags] ?? 0) & NDARRAY_OWNS) !== 0) {
        owners.set(copy.word(float64At(address, node) + NDARRAY_DATA), node);
      }
    }
  }
  for (const node of tensors) {
    const storage = readStorageOf(copy, float64At(address, node));
    if (storage !== null) {
      let owner = owners.get(storage.data);
      if (owner === undefined) {
        owner = first + addresses.length;
        owners.set(storage.data, owner);
        addresses.push(storage.data);
        bytes.push(storage.bytes);
      }
      ofTensor.set(node, owner);
    }
  }
  return { addresses, bytes, ofTensor };
}
