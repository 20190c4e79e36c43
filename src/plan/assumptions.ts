/** The assumptions of a plan in words; an option corrects each one that is wrong. */
import { formatBytes, formatExactCount } from "../model/base/numbers.js";
import { capsScores, type PlanRequest, planOptions } from "./defaults.js";
import { supportsFlash } from "./device/gpus.js";
import { expertsOf } from "./divisible.js";
import { type BatchLimits, isLargeForVllm, offlineTokens } from "./job/batch_limits.js";
import { llamaNameOf } from "./job/cache_types.js";
import { shareWords } from "./job/engine_share.js";
import { expertDivision } from "./job/experts.js";
import { keptExperts, loadsWide, refusedByOlder } from "./job/loading.js";
import { longestFor } from "./job/longest.js";
import { OPTIMIZER_FACTS } from "./job/optimizers.js";
import type { PlanOptions, ServeOptions, TrainOptions } from "./job/options.js";
import { convertsFile } from "./job/options.js";
import { olderFp8Cache } from "./job/served_type.js";
import { hasWholeTable, WITHOUT_PLAN, wholeWords } from "./job/tensor_plan.js";
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
import { isOfDiffusers, mixerOf, readsText } from "./shape/layers.js";
import type { ModelShape, TowerShape } from "./shape/model_shape.js";
import { hasMasterWeights, keepsWholeGradients } from "./train/states.js";
import { withoutEffect } from "./without_effect.js";

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
  const weights =
    isWide && !hasMaster ? "fp32 weights, matrix products in" : "weights and matrix products in";
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

/** What the reader must know before believing the plan: what the model was read from, and what no library would run. */
export function limitsOf(
  model: ModelShape,
  request: PlanRequest,
  notes: readonly string[],
): string[] {
  const options = planOptions(model, request);
  const longest = longestFor(model, options);
  const [length, flag] =
    options.mode === "train"
      ? ([options.sequence, "--seq"] as const)
      : ([options.context, "--context"] as const);
  return [
    ...model.remarks,
    ...(request.notes ?? []),
    ...notes,
    ...(longest > 0 && length > longest && readsText(model)
      ? [
          `${flag} ${length} is longer than the ${longest} positions that the model was made for, RoPE scaling included`,
        ]
      : []),
    ...(options.attention === "flash" && !supportsFlash(options)
      ? [
          options.gpu.old
            ? `FlashAttention has no kernels for ${options.gpu.name}, which is older than Ampere`
            : "FlashAttention has no kernels for fp32: add --dtype bf16",
        ]
      : []),
    ...(options.attention === "sdpa" &&
    (options.mode === "train" ? options.library : options.engine) === "transformers" &&
    model.towers.some(capsScores)
      ? [
          "sdpa of transformers leaves out the soft cap of this model's attention scores, and versions from 5.21 on refuse it (_supports_sdpa): --attention eager has it, with scores in memory, and --attention flash without them",
        ]
      : []),
    ...(options.attention === "eager" && model.towers.some(isAlwaysFused)
      ? [`diffusers has no eager attention for this class: planned as --attention sdpa`]
      : []),
    ...withoutEffect(model, options, request),
    ...unevenExperts(model, options),
    ...dequantized(model, options),
    ...refusedByOlder(model, options),
    ...keptExperts(model, options),
    ...(options.mode === "train"
      ? [...unscaled(options), ...unevenTokens(options), ...pagedStates(options)]
      : []),
    ...multipliedChunks(model, options),
    ...(options.mode === "serve"
      ? [...olderFp8Cache(options), ...queued(model, options), ...softCapped(model, options)]
      : []),
    ...whole(model, options),
    ...(convertsFile(model, options) && model.stored.quantization !== null
      ? [
          "transformers converts the quantized tensors of a GGUF file to the compute type when it loads them",
        ]
      : []),
  ];
}

/** A full training of a quantized checkpoint that libraries can convert. */
function dequantized(model: ModelShape, options: PlanOptions): string[] {
  const { stored } = model;
  const wide =
    options.mode === "train" && options.method === "full" ? null : loadsWide(model, options);
  if (wide !== null) {
    return [wide];
  }
  return options.mode === "train" &&
    options.method === "full" &&
    stored.quantization !== null &&
    stored.fileBytes === undefined
    ? [
        `quantized weights cannot be trained: the plan is of a checkpoint that is converted to ${options.dtype} when it is loaded (dequantize=True in its quantization_config); --method lora trains adapters beside them`,
      ]
    : [];
}

/** What transformers' plan of a family leaves whole on each device, in this version and in older ones. */
function whole({ family, head }: ModelShape, options: PlanOptions): string[] {
  const isServed = options.mode === "serve";
  const library = isServed ? options.engine : options.library;
  const { tensor } = isServed ? options : options.parallelism;
  if (
    library !== "transformers" ||
    tensor === 1 ||
    (!isServed && options.parallelism.sequenceParallel)
  ) {
    return [];
  }
  if (!isServed && WITHOUT_PLAN.test(family)) {
    return [
      `transformers has no plan for --tp of ${family} (base_model_tp_plan): the plan is of a library that divides all matrices`,
    ];
  }
  const words = wholeWords(family);
  return [
    ...(words === "" ? [] : [`--tp leaves ${words} whole on each device (base_model_tp_plan)`]),
    ...(hasWholeTable(family) || head.tied
      ? []
      : [
          "--tp divides the table of tokens, as transformers does from 5.21 on; before, each device has all of it unless it is tied to the head",
        ]),
  ];
}

/** Sequences that wait because vLLM runs fewer at once. */
function queued(
  model: ModelShape,
  { engine, concurrency, maxSequences, batchedTokens }: ServeOptions,
): string[] {
  return engine === "vllm" && generates(model) && concurrency > maxSequences
    ? [
        `vllm runs at most ${maxSequences} sequences at once, and the others of --concurrency ${concurrency} wait: add --max-num-seqs ${concurrency}${concurrency > batchedTokens ? ` --batched-tokens ${concurrency}` : ""}`,
      ]
    : [];
}

/** Scores of attention that pass through tanh (Gemma 2), where kernels leave that out or refuse it. */
function softCapped({ towers }: ModelShape, { engine, gpu }: ServeOptions): string[] {
  const isCapped = towers.some(({ layers }) =>
    layers.some(({ layer }) => layer.kind === "transformer" && layer.attention?.softCap === true),
  );
  if (!isCapped) {
    return [];
  }
  return engine === "vllm" && gpu.old
    ? [
        `vllm's FlashAttention, which has the soft cap of this model's scores, needs Ampere or later; on ${gpu.name} versions stop with "XFormers does not support attention logits soft capping" (issue 9922 of vLLM)`,
      ]
    : [];
}

/** GradScaler, which the Trainer and accelerate use for fp16, refuses gradients in fp16. */
function unscaled({ dtype, method, fp32Weights, library, parallelism }: TrainOptions): string[] {
  const isScaled = library === "transformers" && !parallelism.sharding.kind.startsWith("zero");
  return isScaled && method === "full" && dtype === "fp16" && !fp32Weights
    ? [
        'the Trainer does not train 16-bit weights with --dtype fp16: its GradScaler stops with "Attempting to unscale FP16 gradients"; use --weights fp32, or --dtype bf16',
      ]
    : [];
}

/** Unified memory: pages move to the host only when the device is short of memory. */
function pagedStates({ optimizer }: TrainOptions): string[] {
  return OPTIMIZER_FACTS[optimizer].paged
    ? [
        `the driver keeps the states of ${optimizer} on the device as long as there is room: nvidia-smi then shows up to their size more than this plan, which counts them as host memory`,
      ]
    : [];
}

/**
 * The reference code of Mamba 2 multiplies out every pair of positions of a chunk with every state, up to version 5.17 at
 * least, and 5.24 has einsum in its place (modeling_mamba2.py, `mamba2_chunk_scan`).
 */
function multipliedChunks({ towers }: ModelShape, options: PlanOptions): string[] {
  const isServed = options.mode === "serve";
  if (
    options.attention !== "eager" ||
    (isServed ? options.engine : options.library) !== "transformers"
  ) {
    return [];
  }
  const [sequences, length] = isServed
    ? [options.concurrency, options.context]
    : [options.batch, options.sequence];
  const bytes = towers
    .flatMap(({ layers }) => layers)
    .map(({ layer }) => mixerOf(layer))
    .filter((mixer) => mixer?.version === 2)
    .map((mixer) =>
      mixer === null
        ? 0
        : sequences *
          Math.ceil(length / mixer.chunk) *
          mixer.chunk ** 2 *
          mixer.heads *
          mixer.state *
          4,
    );
  const most = Math.max(0, ...bytes) * (isServed ? 1 : 2);
  return most === 0
    ? []
    : [
        `the reference code of Mamba 2 is that of transformers 5.24; versions up to 5.17, at least, need ${formatBytes(most)} more at the peak of a layer: install mamba_ssm`,
      ];
}

function unevenTokens({ sequence, parallelism: { context } }: TrainOptions): string[] {
  return sequence % context === 0
    ? []
    : [
        `--seq ${sequence} is not a multiple of --cp ${context}: the plan is of ${Math.ceil(sequence / context)} tokens on each device, and libraries refuse such a length or pad it`,
      ];
}

/** vLLM's ranks have whole experts each; the plan is of one of those with most. */
function unevenExperts(model: ModelShape, options: PlanOptions): string[] {
  const expert = options.mode === "serve" ? options.expert : 1;
  const counts = model.towers.flatMap(({ layers }) => layers.map(({ layer }) => expertsOf(layer)));
  return [...new Set(counts)]
    .filter((count) => count % expert !== 0)
    .map(
      (count) =>
        `${count} experts are not a multiple of --ep ${expert}: the plan is of a rank with ${Math.ceil(count / expert)}, others have fewer`,
    );
}

function isAlwaysFused({ layers }: TowerShape): boolean {
  return layers.some(
    ({ layer }) =>
      (layer.kind === "transformer" || layer.kind === "patches") &&
      layer.attention?.alwaysFused === true,
  );
}
