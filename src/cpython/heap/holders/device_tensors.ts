/**
 * Finds tensors whose data lies in given allocations, in the object graph from outside. The device's allocator
 * reports its blocks; the graph shows which objects of the program refer to them. If several tensors view one
 * block, it counts once and is named after the tensor that covers most of it; among equals, after one that
 * outlives the functions that are running.
 */

import { float64At, uint32At } from "../../../model/base/columns.js";
import { present } from "../../../model/base/present.js";
import type { Address, Bytes } from "../../../model/base/units.js";
import type { NodeId } from "../../../model/heap/heap_graph.js";
import { pathTo } from "../../../model/heap/heap_paths.js";
import { FIRST_OBJECT, type ObjectGraph, ROOT_STACKS } from "../graph/graph.js";
import { StepNames } from "../names/step_names.js";
import { type Holds, IMPLEMENTATION_AT, readTensorStorage } from "../objects/tensor.js";
import { readRowLength, readTensorShape } from "../objects/tensor_shape.js";
import { SHAPE_TENSOR } from "../objects/type_table.js";

interface DeviceBlock {
  readonly address: Address;
  /** As rounded by the allocator. */
  readonly bytes: Bytes;
}

export interface DeviceTensor {
  readonly address: Address;
  /** Bytes of the storage. */
  readonly bytes: Bytes;
  /** Empty for one element, or if it could not be read; then `dtype` is "". */
  readonly shape: readonly number[];
  readonly dtype: string;
  /** The object's type: "torch.Tensor", "torch.nn.parameter.Parameter". */
  readonly type: string;
  /** Number of Python tensors in this storage. */
  readonly views: number;
  /** Path from a root: "module app", "model". */
  readonly path: readonly string[];
}

/**
 * Minimum share of a block that its storage fills: the allocator rounds a size up to the next power of two at
 * most.
 */
const LEAST_FILLED = 0.5;
/** Maximum number of views of one storage to consider. */
const MOST_VIEWS = 256;

/** One row for each block that a Python tensor refers to, largest first. */
export function findDeviceTensors(
  objects: ObjectGraph,
  blocks: readonly DeviceBlock[],
): DeviceTensor[] {
  const sizes = new Map(blocks.map(({ address, bytes }) => [address, bytes]));
  const holds: Holds = (data, bytes) => {
    const size = sizes.get(data) ?? 0;
    return bytes <= size && bytes > size * LEAST_FILLED;
  };
  const found = new Map<Address, Found[]>();
  for (let node = FIRST_OBJECT; node < objects.graph.nodes; node++) {
    if (!isTensor(objects, node)) {
      continue;
    }
    const tensor = readTensor(objects, node, holds);
    if (tensor !== null) {
      const others = found.get(tensor.data);
      if (others === undefined) {
        found.set(tensor.data, [tensor]);
      } else {
        others.push(tensor);
      }
    }
  }
  const names = new StepNames(objects);
  return [...found.values()]
    .map((views) => describe(objects, names, views))
    .sort((a, b) => b.bytes - a.bytes);
}

/** An object that reports itself how much device memory it holds. */
interface DeviceArray {
  /** Address of the object. */
  readonly object: Address;
  readonly bytes: Bytes;
  readonly shape: readonly number[];
  readonly dtype: string;
}

/**
 * One row for each array, in the given order; `address` is the object's. An object that is not in the graph has
 * no path.
 */
export function findDeviceArrays<One extends DeviceArray>(
  objects: ObjectGraph,
  arrays: readonly One[],
): (DeviceTensor & { readonly array: One })[] {
  const names = new StepNames(objects);
  return arrays.map((array) => {
    const node = objects.index.at(array.object);
    return {
      array,
      address: array.object,
      bytes: array.bytes,
      shape: array.shape,
      dtype: array.dtype,
      type: node === 0 ? "" : names.typeName(node),
      views: 1,
      path: node === 0 ? [] : names.words(pathTo(objects.paths, node)),
    };
  });
}

export function isTensor({ graph, types }: ObjectGraph, node: NodeId): boolean {
  return types.of(uint32At(graph.type, node)).shape === SHAPE_TENSOR;
}

/** Number of indices in a tensor that is a row of indices (int64); null if it is not one. */
export function rowLengthOf({ graph, copy }: ObjectGraph, node: NodeId): number | null {
  for (const at of IMPLEMENTATION_AT) {
    const implementation = copy.word(float64At(graph.address, node) + at);
    const length = implementation > 0 ? readRowLength(copy, implementation) : null;
    if (length !== null) {
      return length;
    }
  }
  return null;
}

interface Found {
  readonly node: NodeId;
  readonly implementation: Address;
  readonly data: Address;
  readonly bytes: Bytes;
}

function readTensor({ graph, copy }: ObjectGraph, node: NodeId, holds: Holds): Found | null {
  for (const at of IMPLEMENTATION_AT) {
    const implementation = copy.word(float64At(graph.address, node) + at);
    const storage = implementation > 0 ? readTensorStorage(copy, implementation, holds) : null;
    if (storage !== null) {
      return { node, implementation, ...storage };
    }
  }
  return null;
}

function describe(objects: ObjectGraph, names: StepNames, views: readonly Found[]): DeviceTensor {
  const [best] = views
    .slice(0, MOST_VIEWS)
    .map((view) => {
      const way = pathTo(objects.paths, view.node);
      const read = readTensorShape(objects.copy, view.implementation, view.bytes);
      const elements = read?.shape.reduce((product, size) => product * size, 1) ?? 0;
      return { view, way, read, elements, local: way.includes(ROOT_STACKS) };
    })
    .sort(
      (a, b) =>
        b.elements - a.elements || Number(a.local) - Number(b.local) || a.way.length - b.way.length,
    );
  const { view, way, read } = present(best);
  return {
    address: view.data,
    bytes: view.bytes,
    shape: read?.shape ?? [],
    dtype: read?.dtype ?? "",
    type: names.typeName(view.node),
    views: views.length,
    path: names.words(way),
  };
}
