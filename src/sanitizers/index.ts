/**
 * `tidemark memcheck` and `asan`: native memory errors, explained.
 *
 *     program under Valgrind ──> XML ── valgrind_xml ──┐
 *     program under ASan ──> text ── sanitizer_text ───┴─> reports ── owners, explanations ──> tidemark.memcheck/1
 *                └── the hook of python/tidemark/_hooks/frames ──> Python stacks ──┘
 */
export { chooseProgram } from "../inspect/index.js";
export { type AsanRequest, asanDocument } from "./asan.js";
export { memcheckDocument } from "./memcheck.js";
export { buildForAsan } from "./toolchain/asan_build.js";
export { canCompileForAsan, hasValgrind, toolChecks } from "./toolchain/tools.js";
