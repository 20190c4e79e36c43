/**
 * The objects of a CPython program, live or in a core file.
 *
 *   const memory = openProcessMemory(pid);
 *   const { census } = countObjects(memory);                       // never stops the program
 *   const { objects } = await takeGraph(memory, { maxPauseMs: 500 }, census.objects.length);
 *   holderOf(objects, findObjects(objects, sampledAddresses).map(({ node }) => node));
 *                                                                  // where they accumulate, and the path to it
 */

export {
  countObjects,
  countObjectsExactly,
  countObjectsTogether,
  type TakenCensus,
  type TakenGraph,
  takeGraph,
} from "./census/paused_reads.js";
export {
  FIRST_OBJECT,
  type ObjectGraph,
  ROOT_NAMES,
  ROOT_NATIVE,
  typeRetained,
} from "./graph/graph.js";
export { findBoxedNumbers } from "./holders/boxed_numbers.js";
export {
  type DeviceTensor,
  findDeviceArrays,
  findDeviceTensors,
} from "./holders/device_tensors.js";
export {
  bytesInPlace,
  findObjects,
  type Holder,
  holderOf,
  itselfAsHolder,
  largestHolders,
  nodeAt,
} from "./holders/holders.js";
export { findKvPools, type KvPool } from "./holders/kv_pools.js";
export { namedTree } from "./names/named_tree.js";
export { findRootPaths, nodesOfType } from "./names/root_paths.js";
export { StepNames } from "./names/step_names.js";
export { readValue } from "./names/values.js";
