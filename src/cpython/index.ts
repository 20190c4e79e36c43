/** Reads CPython from outside, and runs code in it. */

export { locatePython, type PythonRuntime } from "./interpreter/locate.js";
export { LAYOUTS, type PythonLayout } from "./layouts/index.js";
export type { PythonFrame } from "./stacks/frames.js";
export type { MixedFrame } from "./stacks/native_merge.js";
export { readStacks, type Stacks } from "./stacks/stacks.js";
export { listThreads, moduleEntry, threadNames } from "./stacks/threads.js";
