/** CPython read and entered from outside. */

export {
  type DictEntry,
  dictEntries,
  dictGet,
  instanceAttribute,
  setMembers,
} from "./interpreter/dicts.js";
export { locatePython, type PythonRuntime } from "./interpreter/locate.js";
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
} from "./interpreter/objects.js";
export { LAYOUTS, type PythonLayout } from "./layouts/index.js";
export { type Code, CodeReader } from "./stacks/code.js";
export type { PythonFrame } from "./stacks/frames.js";
export type { MixedFrame } from "./stacks/native_merge.js";
export { readStacks, type Stacks, type ThreadStack } from "./stacks/stacks.js";
export type { PythonTask } from "./stacks/tasks.js";
export {
  gilHolder,
  listThreads,
  moduleAttribute,
  moduleEntry,
  type PythonThread,
  threadNames,
} from "./stacks/threads.js";
