/** The type in which an engine computes, where neither the checkpoint nor the device decides it alone. */
import { badUsage } from "../../model/errors/errors.js";
import { capabilityWords, type Gpu } from "../device/gpus.js";
import type { ModelShape } from "../shape/model_shape.js";
import type { CacheType } from "./cache_types.js";
import type { ComputeDType, Engine } from "./options.js";

/** Families for which vLLM refuses float16 (vllm/config/model.py, `_FLOAT16_NOT_SUPPORTED_MODELS`). */
const WITHOUT_FP16 = /^(?:gemma2|gemma3|gemma3_text|plamo2|glm4)$/;

interface Wanted {
  readonly engine: Engine;
  readonly gpu: Gpu;
  /** Of the checkpoint and the device, or as given. */
  readonly dtype: ComputeDType;
  readonly given: ComputeDType | undefined;
}

/** @throws TidemarkError TM-E002 for a type that the engine refuses for this family */
export function servedType(
  { family }: ModelShape,
  { engine, gpu, dtype, given }: Wanted,
): ComputeDType {
  // Other engines convert a checkpoint in fp32, unless they are told not to.
  const wanted =
    dtype === "fp32" && engine !== "transformers" && given === undefined ? "fp16" : dtype;
  if (wanted !== "fp16" || engine !== "vllm" || !WITHOUT_FP16.test(family)) {
    return wanted;
  }
  if (given === "fp16") {
    throw badUsage(
      `vllm refuses float16 for ${family}, which is numerically unstable in it`,
      `use --dtype ${gpu.old ? "fp32" : "bf16"}, or leave --dtype out`,
    );
  }
  return gpu.old ? "fp32" : "bf16";
}

/** From this compute capability on, engines have kernels for a cache in fp8. */
const FP8_CACHE_FROM = 8.9;

/** A sentence about a cache in fp8 on an older device. */
export function olderFp8Cache({
  engine,
  gpu,
  kvDType,
}: {
  readonly engine: Engine;
  readonly gpu: Gpu;
  readonly kvDType: CacheType;
}): string[] {
  return kvDType === "fp8" && engine !== "transformers" && gpu.capability < FP8_CACHE_FROM
    ? [
        `${capabilityWords(gpu)}, and the kernels of ${engine} for a cache in fp8 are for ${FP8_CACHE_FROM} and more${engine === "vllm" ? ': versions stop with "fp8e4nv not supported" (issue 26431 and pull request 35720 of vLLM)' : ""}`,
      ]
    : [];
}
