/** The assumptions of a plan in words; an option corrects each one that is wrong. */
import { formatExactCount } from "../model/base/numbers.js";
import { expertsOf } from "./divisible.js";
import { type BatchLimits, isLargeForVllm, offlineTokens } from "./job/batch_limits.js";
import { llamaNameOf } from "./job/cache_types.js";
import { shareWords } from "./job/engine_share.js";
import { expertDivision } from "./job/experts.js";
import { quantizationOf } from "./job/loading.js";
import type { PlanOptions, ServeOptions, TrainOptions } from "./job/options.js";
import {
  autoCacheType,
  bytesOfNextToken,
  bytesOfSequence,
  cacheFormat,
  cacheShape,
} from "./serve/attention_cache.js";
import { olderLatentCache } from "./serve/latent.js";
import { fillsShare, generates, servedShape } from "./serve/served_by.js";
import { stagesOf } from "./serve/stages.js";
import { isOfDiffusers, readsText } from "./shape/layers.js";
import type { ModelShape } from "./shape/model_shape.js";
import { hasMasterWeights, keepsWholeGradients } from "./train/states.js";

/** @param given what was asked for: what it leaves out has the defaults of libraries */
export function assumptionsOf(
  model: ModelShape,
  options: PlanOptions,
  given: Partial<BatchLimits> = {},
): string[] {
  return [
    ...(options.mode === "train"
      ? ofTraining(model, options)
      : [...ofServing(model, options, given), ...cacheNotes(model, options)]),
    ...dividedExperts(model, options),
  ];
}

function dividedExperts(model: ModelShape, options: PlanOptions): string[] {
  const { devices, tensor, copies } = expertDivision(options);
  const counts = model.towers.flatMap(({ layers }) => layers.map(({ layer }) => expertsOf(layer)));
  const experts = Math.max(0, ...counts);
  if (devices === 1) {
    return [];
  }
  const each = tensor === 1 ? "each whole" : `each divided over ${tensor} devices`;
  const rest =
    options.mode === "serve" && copies > 1
      ? `; ${copies} copies of the rest, with sequences of their own`
      : "";
  return [
    `${Math.ceil(experts / devices)} of ${experts} experts of a layer on each device, ${each}${rest}`,
  ];
}

function ofTraining(model: ModelShape, options: TrainOptions): string[] {
  const { method, dtype, fp32Weights } = options;
  const isWide = fp32Weights && dtype !== "fp32";
  const hasMaster = hasMasterWeights(options);
  const quantized = quantizationOf(model, options);
  const rest = isWide && !hasMaster ? "fp32" : dtype;
  const weights =
    quantized !== null
      ? `quantized weights in ${quantized.dtype}, the others in ${rest}, matrix products in`
      : rest === dtype
        ? "weights and matrix products in"
        : "fp32 weights, matrix products in";
  const sentences = [
    `${weights} ${dtype}${hasMaster ? ", master weights in fp32" : ""}${fp32Weights || model.stored.dtype === null || model.stored.dtype === dtype ? "" : ` (the checkpoint has ${model.stored.dtype})`}`,
    `${isOfDiffusers(model) ? "diffusers" : options.library} with ${options.attention} attention and ${options.loss} loss, ${options.compiled ? "with" : "without"} torch.compile, ${options.checkpointing === "none" ? "no" : options.checkpointing} checkpointing`,
    readsText(model)
      ? `${options.batch} ${options.batch === 1 ? "sequence" : "sequences"} of ${options.sequence} tokens on each device, without shorter ones`
      : `${options.batch} ${options.batch === 1 ? "image" : "images"} on each device`,
  ];
  if (method !== "full") {
    const targets =
      typeof options.adapterTargets === "string"
        ? options.adapterTargets
        : options.adapterTargets.join(", ");
    sentences.push(
      `adapters of rank ${options.adapterRank} on ${targets === "all" ? "all linear layers" : targets}${options.adapterDetails.modulesToSave.length > 0 ? `, and copies of ${options.adapterDetails.modulesToSave.join(", ")} trained whole` : ""}`,
    );
  }
  if (options.optimizer !== "none") {
    sentences.push(
      `optimizer ${options.optimizer}${options.optimizerInBackward ? " that steps in the backward pass" : ""}`,
    );
  }
  const { pipeline, schedule } = options.parallelism;
  if (pipeline > 1) {
    const { accumulation: count } = options;
    sentences.push(
      `${count} ${count === 1 ? "microbatch" : "microbatches"} in each step (--accumulation), in ${pipeline} stages by ${schedule}`,
    );
  }
  if (keepsWholeGradients(options)) {
    sentences.push(
      `${options.library === "litgpt" ? "Fabric (no_backward_sync)" : "accelerate (no_sync)"} keeps whole gradients in ${dtype} on each device until the last microbatch${options.library === "litgpt" ? "" : `; ${SYNC_EACH_BATCH} divides them in each one: planned as --accumulation 1`}`,
    );
  }
  return sentences;
}

/**
 * Field of accelerate's GradientAccumulationPlugin since 0.28; 0.28 to 0.30 also stepped the optimizer in each microbatch
 * (pull requests 2531 and 2790). The Trainer's loop, which calls `no_sync` by itself, reads it from 5.2 on (pull request
 * 43919 of transformers).
 */
const SYNC_EACH_BATCH =
  'sync_each_batch of GradientAccumulationPlugin (accelerate from 0.31 on; in the Trainer from transformers 5.2 on, accelerator_config={"gradient_accumulation_kwargs": {"sync_each_batch": True}})';

function ofServing(
  model: ModelShape,
  options: ServeOptions,
  given: Partial<BatchLimits>,
): string[] {
  const { engine, utilization, batchedTokens, maxSequences, concurrency, context } = options;
  const share = fillsShare(model, engine) ? [`uses ${shareWords(utilization)} of the device`] : [];
  const pass =
    engine === "transformers" || engine === "llama.cpp"
      ? []
      : [
          `computes ${batchedTokens} ${batchedTokens === 1 ? "token" : "tokens"} per pass${engine === "vllm" ? `, for at most ${maxSequences} sequences` : ""}`,
        ];
  const does = [...share, ...pass].join(" and ");
  const cache = bytesOfSequence(cacheShape(model, cacheFormat(model, options)), context);
  const [count, plural] = [concurrency, concurrency === 1 ? "" : "s"];
  return [
    `${engine}${does === "" ? "" : `, which ${does}`}`,
    ...vllmBatches(model, options, given),
    ...(engine === "llama.cpp" && options.tensor > 1
      ? ["--split-mode tensor; row divides the weights, but not the cache of a layer"]
      : []),
    readsText(model)
      ? `${count} sequence${plural} of ${context} tokens${cache > 0 ? `; cache in ${cacheTypeWords(options)}` : ""}`
      : `${count} image${plural} at once`,
  ];
}

/** Where the sizes of vLLM's batches come from, of those that were not given. */
function vllmBatches(
  model: ModelShape,
  options: ServeOptions,
  given: Partial<BatchLimits>,
): string[] {
  const { engine, gpu, context, batchedTokens } = options;
  const flags = [
    ...(given.batchedTokens === undefined ? ["--batched-tokens"] : []),
    ...(given.maxSequences === undefined ? ["--max-num-seqs"] : []),
  ];
  if (engine !== "vllm" || flags.length === 0) {
    return [];
  }
  const [has, default_] = flags.length === 1 ? ["has", "the default"] : ["have", "the defaults"];
  const offline = offlineTokens({ gpu, context, isWhole: !generates(model) }, given);
  return [
    `${flags.join(" and ")} ${has} ${default_} of vLLM's server for ${isLargeForVllm(gpu) ? "devices of 70 GiB and more" : "an A100, and devices below 70 GiB"}${offline === batchedTokens ? "" : `; vLLM's Python class LLM computes ${offline} tokens per pass`}`,
  ];
}

/** What the cache of this engine leaves out or adds, where versions and engines differ. */
function cacheNotes(model: ModelShape, options: ServeOptions): string[] {
  const attention = (model.towers.at(-1)?.layers ?? []).flatMap(({ layer }) =>
    layer.kind === "transformer" && layer.attention !== null ? [layer.attention] : [],
  );
  const hasLatent = attention.some(({ latent }) => latent !== undefined);
  const older = hasLatent ? olderLatentCache(model, options) : null;
  const stages = stagesOf(model, options);
  const format = cacheFormat(model, options, [
    stages[0]?.layers[0] ?? 0,
    stages.at(-1)?.layers[1] ?? 0,
  ]);
  const bytes =
    older === null
      ? 0
      : bytesOfNextToken(cacheShape(model, { ...format, latent: older.latent })) / options.pipeline;
  return [
    ...(servedShape(model, options) === model
      ? []
      : [`${options.engine} runs an encoder for embeddings, without its language head`]),
    ...(older === null || bytes === 0
      ? []
      : [
          `the cache has compressed rows; ${older.versions} keeps ${older.keeps}: ${formatExactCount(Math.round(bytes))} B per token`,
        ]),
    ...(!format.keepsWindows && attention.some(({ window }) => window > 0)
      ? [`${options.engine} has no attention window for this family, and caches all tokens`]
      : []),
  ];
}

function cacheTypeWords(options: ServeOptions): string {
  const { kvDType, valueDType = kvDType, engine } = options;
  const isLlamaCpp = engine === "llama.cpp";
  const [keys, values] = [kvDType, isLlamaCpp ? valueDType : kvDType]
    .map((type) => (type === "auto" ? autoCacheType(options) : type))
    .map((type) => (isLlamaCpp ? llamaNameOf(type) : type));
  return keys === values ? `${keys}` : `${keys} (keys) and ${values} (values)`;
}
