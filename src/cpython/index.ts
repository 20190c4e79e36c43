/** CPython read and entered from outside. */
export { type Code, CodeReader } from "./code.js";
export { type DictEntry, dictEntries, dictGet, instanceAttribute, setMembers } from "./dicts.js";
export type { PythonFrame } from "./frames.js";
export { LAYOUTS, type PythonLayout } from "./layouts/index.js";
export { locatePython, type PythonRuntime } from "./locate.js";
export type { MixedFrame } from "./native_merge.js";
export {
  isA,
  type PythonMemory,
  readItems,
  readSmallInteger,
  readText,
  TypeFlag,
  typeName,
  typeNameOf,
  typeOf,
} from "./objects.js";
export { readStacks, type Stacks, type ThreadStack } from "./stacks.js";
export type { PythonTask } from "./tasks.js";
export {
  gilHolder,
  listThreads,
  moduleAttribute,
  moduleEntry,
  type PythonThread,
  threadNames,
} from "./threads.js";
