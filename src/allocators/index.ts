/**
 * `tidemark allocators`: runs a program under each allocator setting and compares its memory.
 *
 *     SETTINGS ── apply: environment ──> trial: one run, polled, agent beside it ──┐
 *     compare: rounds, interleaved ──> changes: paired by round, intervals ──> tidemark.allocators/1
 */

export { chooseProgram } from "../inspect/index.js";
export { ALLOCATOR_NAMES, allocatorDeployment, allocatorEnvironment } from "./apply.js";
export { percent } from "./changes.js";
export { compareAllocators } from "./compare.js";
