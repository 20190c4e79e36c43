/** Cautions: what would make a plan misleading, of this model, these options and the versions of libraries. */
import { formatBytes } from "../model/base/numbers.js";
import { capsScores, type PlanRequest, planOptions } from "./defaults.js";
import { supportsFlash } from "./device/gpus.js";
import { expertsOf } from "./divisible.js";
import { keptExperts, loadsWide, refusedByOlder } from "./job/loading.js";
import { longestFor } from "./job/longest.js";
import { OPTIMIZER_FACTS } from "./job/optimizers.js";
import type { PlanOptions, ServeOptions, TrainOptions } from "./job/options.js";
import { convertsFile } from "./job/options.js";
import { olderFp8Cache } from "./job/served_type.js";
import { hasWholeTable, WITHOUT_PLAN, wholeWords } from "./job/tensor_plan.js";
import { expertParameters } from "./model_facts.js";
import { generates } from "./serve/served_by.js";
import { mixerOf, readsText } from "./shape/layers.js";
import type { ModelShape, TowerShape } from "./shape/model_shape.js";
import { withoutEffect } from "./without_effect.js";

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
    ...keptExperts(model, options, () => expertParameters(model)),
    ...(options.mode === "train"
      ? [
          ...unscaled(options),
          ...unevenTokens(options),
          ...undividedAttention(options),
          ...pagedStates(options),
        ]
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

/** Context parallelism of torch divides `scaled_dot_product_attention` alone; the Trainer (trainer.py) refuses other kernels. */
function undividedAttention({
  library,
  attention,
  parallelism: { context },
}: TrainOptions): string[] {
  return context > 1 && attention !== "sdpa" && library === "transformers"
    ? [
        `the Trainer stops with "Context parallelism is supported only with SDPA attention" for --cp with --attention ${attention}: use sdpa`,
      ]
    : [];
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
