/** Native code: the symbols of its object files. */
export { Symboliser } from "./symboliser.js";
export { Unwinder } from "./unwind/unwinder.js";
