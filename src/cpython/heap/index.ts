/**
 * The objects of a CPython program, live or in a core file.
 *
 *   const memory = openProcessMemory(pid);
 *   const { census } = countObjects(memory);                       // never stops the program
 *   const { objects } = await takeGraph(memory, { maxPauseMs: 500 }, census.objects.length);
 *   holderOf(objects, findObjects(objects, sampledAddresses).map(({ node }) => node));
 *                                                                  // where they gather, and the way there
 */
export { type BoxedNumbers, findBoxedNumbers } from "./boxed.js";
export type { Census } from "./census.js";
export {
  type DeviceArray,
  type DeviceBlock,
  type DeviceTensor,
  findDeviceArrays,
  findDeviceTensors,
} from "./device_tensors.js";
export {
  FIRST_OBJECT,
  type ObjectGraph,
  ROOT_GARBAGE,
  ROOT_NAMES,
  ROOT_NATIVE,
  typeRetained,
} from "./graph.js";
export {
  bytesInPlace,
  type FoundObject,
  findObjects,
  type Holder,
  holderOf,
  itselfAsHolder,
  largestHolders,
  nodeAt,
} from "./holders.js";
export { findKvPools, type KvPool } from "./kv_pools.js";
export { namedTree } from "./named_tree.js";
export { findRootPaths, nodesOfType, type RootPath } from "./root_paths.js";
export { StepNames } from "./step_names.js";
export {
  countObjects,
  countObjectsExactly,
  countObjectsTogether,
  type TakenCensus,
  type TakenGraph,
  type TakeOptions,
  takeGraph,
} from "./take.js";
export { readValue } from "./values.js";
