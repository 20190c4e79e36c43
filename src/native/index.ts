/** Native code: the symbols of its object files. */
export { type BundledAllocator, bundledAllocators } from "./bundled_allocators.js";
export { Symboliser } from "./symboliser.js";
export { Unwinder } from "./unwind/unwinder.js";
