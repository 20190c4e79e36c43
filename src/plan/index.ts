/**
 * `plan/`: how much memory training or serving a model takes, and what would reduce it.
 *
 *     const model = readModel("./model");                       // config.json and the headers of weight files
 *     const document = planMemory(model, { mode: "train", train: { batch: 1, sequence: 4096 } });
 *
 * | folder | holds |
 * |---|---|
 * | `job/` | what is asked for: options, optimizers |
 * | `shape/` | a configuration as layers, without any library's names |
 * | `tape/` | the operations of one step, what each saves, and the peak over time |
 * | `blocks/` | each kind of layer as operations |
 * | `train/` | states, division over devices, communication, host memory |
 * | `serve/` | KV cache, engines, vLLM's start-up log |
 * | `device/` | GPUs, CUDA context, the caching allocator |
 * | `compare/` | planned against measured |
 * | `files/` | the only part that reads files: all others run in the page, too |
 */

export { comparePlan, compareVllm, otherJob, otherProgram } from "./compare/compare.js";
export { type PlanRequest, planOptions } from "./defaults.js";
export { GPUS, type Gpu, gpuNamed, gpuOfSize, gpusLike, USUAL_GPU } from "./device/gpus.js";
export { withJobConfigs } from "./files/job_config.js";
export { readLog, readModel } from "./files/read_model.js";
export { fitRows, fitTable } from "./fit.js";
export { CACHE_TYPES, LLAMA_CACHE_TYPES } from "./job/cache_types.js";
export { OPTIMIZERS, type OptimizerName } from "./job/optimizers.js";
export * from "./job/options.js";
export type { PlanPageDocument } from "./page_document.js";
export { planMemory } from "./plan.js";
export { readVllmLog } from "./serve/vllm_log.js";
export type { ModelShape } from "./shape/model_shape.js";
export {
  cacheWords,
  errorWords,
  fitText,
  largeCount,
  layerWords,
  measuredAs,
  mostOf,
  partWords,
  roomWords,
} from "./wording.js";
export { type PlanWords, requestOf } from "./words.js";
