/** A training job's options as the rules by which layers are built. */
import type { BlockRules } from "../blocks/rules.js";
import { expertDivision } from "../job/experts.js";
import { quantizationOf } from "../job/loading.js";
import { bytesOfCompute, type Library, type TrainOptions } from "../job/options.js";
import { hasWholeTable, undividedBy, WITHOUT_PLAN } from "../job/tensor_plan.js";
import type { ModelShape } from "../shape/model_shape.js";
import { gatheredBytes, sharesFlatParameters } from "./states.js";

/** torchtune and torchtitan delete them before the backward pass; Fabric converts a 16-bit model's output to fp32. */
const HELD_LOGITS: Readonly<Record<Library, BlockRules["holdsLogits"]>> = {
  transformers: "made",
  torchtune: "none",
  torchtitan: "none",
  litgpt: "fp32",
};

/** A batch of one sequence needs no padding; transformers leaves out a mask that hides nothing. */
export function masksOf(
  { attention, padded, library }: Pick<TrainOptions, "attention" | "padded" | "library">,
  sequences: number,
): BlockRules["masks"] {
  if (attention === "flash" || library !== "transformers") {
    return "none";
  }
  return padded && sequences > 1 ? "all" : "windows";
}

export function trainingRules(model: ModelShape, options: TrainOptions): BlockRules {
  const { method, parallelism } = options;
  const experts = expertDivision(options);
  const computeBytes = bytesOfCompute(options.dtype);
  const sharded = parallelism.sharding.kind !== "ddp";
  const trainBase = method === "full";
  const sequence = Math.ceil(options.sequence / parallelism.context);
  const isTransformers = options.library === "transformers";
  // Its plans gather the logits ("colwise_gather_output"), and have no sequence parallelism.
  const byPlan = isTransformers && parallelism.tensor > 1 && !parallelism.sequenceParallel;
  const isFsdp = parallelism.sharding.kind === "fsdp";
  // FSDP and DeepSpeed compute with 16-bit copies of their own. accelerate uses autocast beside FSDP all the same, and
  // for a 16-bit model with adapters; Fabric beside gathered weights in fp32.
  const gathersFp32 = isFsdp && gatheredBytes(options) > computeBytes;
  const isAutocast =
    (options.fp32Weights && (!sharded || (isFsdp && isTransformers) || gathersFp32)) ||
    (isTransformers && !trainBase);
  const readsFp32 = computeBytes === 4 || gathersFp32 || (options.fp32Weights && !sharded);
  // PEFT makes adapters of 16-bit models in fp32 (`autocast_adapter_dtype`), which FSDP gathers in the compute type.
  const readsFp32Adapters = readsFp32 || (isTransformers && !isFsdp);
  return {
    training: true,
    batch: options.batch,
    sequence,
    context: options.sequence,
    computeBytes,
    weightBytes: readsFp32 ? 4 : 2,
    autocast: computeBytes < 4 && isAutocast,
    quantization: quantizationOf(model, options),
    trainBase,
    adapter: trainBase
      ? null
      : {
          rank: options.adapterRank,
          targets: options.adapterTargets,
          family: model.family,
          itemBytes: readsFp32Adapters ? 4 : computeBytes,
          dropout: options.adapterDropout,
          details: options.adapterDetails,
          copiesInput: computeBytes < 4 && readsFp32Adapters,
        },
    inputNeedsGradient: !trainBase && options.checkpointing !== "none",
    attention: options.attention,
    masks: masksOf(options, options.batch),
    onCpu: options.gpu.isCpu === true,
    fusesGroups: computeBytes < 4 && !options.gpu.old,
    cachesKeys: false,
    repeatsGroups: !isTransformers && options.attention !== "flash",
    headRows: "all",
    holdsInputs: false,
    loss: options.loss,
    compiled: options.compiled,
    lossCompiled: options.compiled && (!sharded || options.library === "torchtune"),
    fusedGelu: !isTransformers,
    fusedProjection: options.library === "litgpt",
    // lm_head_chunk_size of litgpt's finetuning scripts.
    lossChunkRows: options.library === "litgpt" ? 128 : null,
    holdsLogits: HELD_LOGITS[options.library],
    // litgpt's published figures are those of bitsandbytes 0.41.
    quantizedKeepsInput: options.library === "litgpt",
    dropout: options.dropout,
    castsInputs: isFsdp && computeBytes < 4 && !gathersFp32,
    flatGradients: sharesFlatParameters(options),
    tensorParallel: parallelism.tensor,
    ...(byPlan && !WITHOUT_PLAN.test(model.family) ? { undivided: undividedBy(model.family) } : {}),
    gathersLogits: byPlan,
    wholeTables: byPlan && hasWholeTable(model.family),
    sequenceParallel: parallelism.sequenceParallel && parallelism.tensor > 1,
    experts,
    routedOver: isTransformers ? 1 : parallelism.tensor / experts.tensor,
    imbalance: options.imbalance,
  };
}
