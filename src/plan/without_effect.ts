/** Options that change nothing in this job, or that its engine does not have: one sentence each. */
import type { PlanRequest } from "./defaults.js";
import { BLOCK_CACHE_TYPES, bytesOfCacheType, type CacheType } from "./job/cache_types.js";
import type { Engine, PlanOptions, ServeOptions, TrainOptions } from "./job/options.js";

export function withoutEffect(options: PlanOptions, request: PlanRequest): string[] {
  return options.mode === "train" ? ofTraining(options, request) : ofServing(options, request);
}

function ofTraining(options: TrainOptions, { train }: PlanRequest): string[] {
  const adapter = [train?.adapterRank, train?.adapterTargets, train?.adapterDropout];
  return [
    ...(options.method === "full" && adapter.some((value) => value !== undefined)
      ? ["--lora-rank, --lora-targets and --lora-dropout have no effect: add --method lora"]
      : []),
    ...(options.activationOffload && options.checkpointing === "none"
      ? [
          "--offload-activations has no effect: it moves the inputs of checkpointed layers; add --checkpointing full",
        ]
      : []),
    ...(options.optimizerInBackward && options.accumulation > 1
      ? [
          "--optimizer-in-backward cannot accumulate gradients, because it consumes each one in the backward pass: leave --accumulation out",
        ]
      : []),
  ];
}

/** Types of a cache that an engine does not have. */
const NO_CACHE_TYPE: Readonly<Record<Engine, readonly CacheType[]>> = {
  transformers: BLOCK_CACHE_TYPES,
  vllm: ["int8", ...BLOCK_CACHE_TYPES],
  sglang: ["int8", ...BLOCK_CACHE_TYPES],
  tgi: ["int8", ...BLOCK_CACHE_TYPES],
  "llama.cpp": ["fp8", "int8"],
};

function ofServing(options: ServeOptions, { serve }: PlanRequest): string[] {
  const { engine, kvDType, valueDType = kvDType, gpuLayers } = options;
  const takesAsNeeded = engine === "transformers" || engine === "llama.cpp";
  return [
    ...(takesAsNeeded && serve?.utilization !== undefined
      ? [`--utilization has no effect: ${engine} allocates what it needs`]
      : []),
    ...[...new Set([kvDType, valueDType])].flatMap((type) =>
      NO_CACHE_TYPE[engine].includes(type)
        ? [
            `${engine} has no cache in ${type}: the plan is of a cache with ${bytesOfCacheType(type, 2)} B per value`,
          ]
        : [],
    ),
    ...(gpuLayers !== undefined && engine !== "llama.cpp"
      ? [`--gpu-layers has no effect: ${engine} keeps all layers on the device`]
      : []),
  ];
}
