/** Defaults for everything that the command line, a page or a job's own files do not set. */
import { badUsage } from "../model/errors/errors.js";
import { NO_DETAILS } from "./blocks/adapter_details.js";
import type { AttentionImplementation } from "./blocks/rules.js";
import { type Gpu, USUAL_GPU } from "./device/gpus.js";
import { batchLimits } from "./job/batch_limits.js";
import { BLOCK_CACHE_TYPES, type CacheType } from "./job/cache_types.js";
import { usualShare } from "./job/engine_share.js";
import { fewestCopies } from "./job/experts.js";
import { loadsWide, requireLoadable } from "./job/loading.js";
import type {
  ComputeDType,
  Engine,
  Library,
  Method,
  Parallelism,
  PlanOptions,
  Quantization,
  Schedule,
  ServeOptions,
  Sharding,
  TrainOptions,
} from "./job/options.js";
import { canDequantize, convertsFile } from "./job/options.js";
import { servedType } from "./job/served_type.js";
import { generates } from "./serve/served_by.js";
import type { ModelShape, QuantizedWeights } from "./shape/model_shape.js";

/** All options; absent ones get their defaults here. */
export interface PlanRequest {
  readonly mode: "train" | "serve";
  readonly method?: Method;
  readonly dtype?: ComputeDType;
  readonly weights?: "fp32" | "16bit";
  readonly quantize?: Quantization;
  readonly gpu?: Gpu;
  readonly attention?: AttentionImplementation;
  readonly padded?: boolean;
  readonly tensor?: number;
  readonly pipeline?: number;
  readonly expert?: number;
  readonly train?: Partial<TrainOptions>;
  readonly sharding?: Partial<Sharding>;
  readonly sequenceParallel?: boolean;
  readonly contextParallel?: number;
  readonly schedule?: Schedule;
  readonly virtualStages?: number;
  readonly serve?: Partial<ServeOptions>;
  /** Sentences about what the files of the job leave open. */
  readonly notes?: readonly string[];
}

export function libraryOf({ train }: PlanRequest): Library {
  return train?.library ?? "transformers";
}

export function engineOf({ stored }: ModelShape, { serve }: PlanRequest): Engine {
  return serve?.engine ?? (stored.fileBytes === undefined ? "transformers" : "llama.cpp");
}

const USUAL_SEQUENCE = 2048;
/** Configurations of DeepSpeed and of the Trainer's FSDP do not name their devices. */
const USUAL_SHARDED_DEVICES = 8;

export function planOptions(model: ModelShape, request: PlanRequest): PlanOptions {
  const gpu = request.gpu ?? USUAL_GPU;
  const dtype = request.dtype ?? storedCompute(model, gpu);
  return request.mode === "train"
    ? trainOptions(model, request, { gpu, dtype })
    : serveOptions(model, request, { gpu, dtype });
}

/** Computes in the checkpoint's type; a V100 or T4 has no bf16. */
function storedCompute({ stored }: ModelShape, gpu: Gpu): ComputeDType {
  const dtype = stored.dtype ?? (stored.quantization === null ? "fp32" : "bf16");
  return dtype === "bf16" && gpu.old ? "fp16" : dtype;
}

type Chosen = Pick<TrainOptions, "gpu" | "dtype">;

/** Formats beside which `prepare_model_for_kbit_training` of PEFT converts nothing to fp32. */
const KEEPS_REST = /^(?:gptq|aqlm|eetq|hqq|torchao)$/;

function trainOptions(
  model: ModelShape,
  request: PlanRequest,
  { gpu, dtype }: Chosen,
): TrainOptions {
  const stored = convertsFile(model, { mode: "train" }) ? null : model.stored.quantization;
  const library = libraryOf(request);
  const loaded = { mode: "train", gpu, library, quantize: request.quantize } as const;
  const isWide = loadsWide(model, loaded);
  const isQuantized = request.quantize !== undefined || stored !== null;
  const quantizes = isQuantized && isWide === null;
  const method = request.method ?? (quantizes ? "qlora" : isQuantized ? "lora" : "full");
  requireOneQuantization(request, stored);
  requireLoadable(model, loaded);
  if (method === "qlora" && isWide !== null) {
    throw badUsage(isWide, "use --method lora");
  }
  if (method === "full" && request.quantize !== undefined) {
    throw badUsage(
      "quantized weights cannot be trained",
      `${isWide === null ? "use --method qlora, or " : ""}leave --quantize out`,
    );
  }
  if (method === "full" && stored !== null && !canDequantize(stored)) {
    throw badUsage(
      `the checkpoint has quantized weights (${stored.dtype}${stored.method ? ` of ${stored.method}` : ""}), which cannot be trained`,
      "use --method lora or qlora, or plan the checkpoint before its quantization",
    );
  }
  if (request.train?.optimizerInBackward === true && request.sharding?.kind?.startsWith("zero")) {
    throw badUsage(
      "DeepSpeed steps after the backward pass, in an optimizer of its own: --optimizer-in-backward needs the gradients that it takes over",
      "leave --optimizer-in-backward out, or use --fsdp",
    );
  }
  const microbatches = request.train?.accumulation ?? usualMicrobatches(request);
  if (request.train?.optimizerInBackward === true && microbatches > 1) {
    const isGiven = request.train.accumulation !== undefined;
    throw badUsage(
      `--optimizer-in-backward cannot accumulate gradients${isGiven ? "" : " of the microbatches of --pp"}, because it consumes each one in the backward pass`,
      isGiven ? "leave --accumulation out" : "leave --optimizer-in-backward out",
    );
  }
  const kind = request.sharding?.kind ?? "ddp";
  const ranks = {
    tensor: request.tensor ?? 1,
    context: request.contextParallel ?? 1,
    expert: request.expert ?? 1,
  };
  const devices = kind === "ddp" ? fewestCopies(ranks) : USUAL_SHARDED_DEVICES;
  const sharding: Sharding = withBucket(model, {
    kind: "ddp",
    devices,
    offload: "none",
    version: 2,
    ...request.sharding,
  });
  requireOffload(sharding);
  const sharded = sharding.kind !== "ddp";
  // A checkpoint in fp32 stays so, and 16-bit products are autocast's; FSDP and DeepSpeed keep fp32 copies of what they train.
  // prepare_model_for_kbit_training of PEFT converts everything that is not quantized to fp32, but not beside every format.
  // FSDP divides weights before they are on the device, for which TRL leaves that out (is_sharded_qlora).
  const isPrepared =
    method === "qlora" &&
    library === "transformers" &&
    kind !== "fsdp" &&
    !KEEPS_REST.test(stored?.method ?? "");
  const keepsWide = isPrepared || ((model.stored.dtype ?? "fp32") === "fp32" && !quantizes);
  const wide =
    request.weights === undefined
      ? keepsWide || (sharded && method === "full")
      : request.weights === "fp32";
  return {
    mode: "train",
    method,
    library,
    optimizer: "adamw",
    optimizerInBackward: false,
    batch: 1,
    sequence: usualSequence(model),
    accumulation: usualMicrobatches(request),
    // prepare_model_for_kbit_training of PEFT switches checkpointing on.
    checkpointing: method === "qlora" ? "full" : "none",
    activationOffload: false,
    quantize: quantizeOf(model, request, { method, library }),
    dtype,
    fp32Weights: wide,
    attention: attentionOf(model, request, library),
    padded: request.padded ?? true,
    loss: library === "torchtune" || library === "litgpt" ? "chunked" : "full",
    compiled: false,
    dropout: true,
    adapterRank: 8,
    adapterTargets: method === "qlora" ? "all" : "attention",
    // lora_dropout of litgpt is 0.05, that of the others 0.
    adapterDropout: library === "litgpt",
    adapterDetails: NO_DETAILS,
    imbalance: 1.25,
    gpu,
    workers: 0,
    ...request.train,
    parallelism: {
      ...ranks,
      ...pipelineOf(request),
      sharding,
      sequenceParallel: request.sequenceParallel ?? false,
    },
  };
}

function withBucket({ towers }: ModelShape, sharding: Sharding): Sharding {
  const { automaticBucket, ...deepSpeed } = sharding.deepSpeed ?? {};
  return automaticBucket === true
    ? { ...sharding, deepSpeed: { ...deepSpeed, reduceBucket: (towers.at(-1)?.hidden ?? 0) ** 2 } }
    : sharding;
}

/**
 * transformers falls back to eager attention where a class has no other (`_supports_sdpa`): scores with sinks (gpt-oss),
 * with products of distances (DeBERTa), and capped ones (Gemma 2), for which sdpa existed up to 5.20.
 * @throws TidemarkError TM-E002 where `sdpa` is asked for, as transformers refuses it
 */
function attentionOf(
  { towers, family }: ModelShape,
  { attention }: PlanRequest,
  library: Library | Engine,
): AttentionImplementation {
  const needsEager = towers.some(({ layers }) =>
    layers.some(
      ({ layer: { kind, ...layer } }) =>
        kind === "transformer" &&
        "attention" in layer &&
        (layer.attention?.sinks === true || layer.attention?.relativeRows !== undefined),
    ),
  );
  if (library !== "transformers" || !needsEager) {
    const isCapped = library === "transformers" && towers.some(capsScores);
    return attention ?? (isCapped ? "eager" : "sdpa");
  }
  if (attention === "sdpa") {
    throw badUsage(
      `transformers has no sdpa attention for ${family} (_supports_sdpa of its class is False)`,
      "use --attention eager, or leave --attention out",
    );
  }
  return attention ?? "eager";
}

/** Soft caps of scores (Gemma 2), which torch's fused kernels do not have. */
export function capsScores({ layers }: ModelShape["towers"][number]): boolean {
  return layers.some(
    ({ layer }) => layer.kind === "transformer" && layer.attention?.softCap === true,
  );
}

/** @throws TidemarkError TM-E002: DeepSpeed moves weights in stage 3 alone, where each device has a part of them */
function requireOffload({ kind, offload }: Sharding): void {
  if (offload === "all" && (kind === "zero-1" || kind === "zero-2")) {
    throw badUsage(
      `${kind.replace("zero", "ZeRO")} keeps all weights on each device: --offload all (offload_param of DeepSpeed) needs stage 3`,
      "use --zero 3, or --offload optimizer",
    );
  }
}

/** @throws TidemarkError TM-E002: libraries read a quantized checkpoint as it is */
function requireOneQuantization({ quantize }: PlanRequest, stored: QuantizedWeights | null): void {
  if (quantize !== undefined && stored !== null) {
    throw badUsage(
      `--quantize ${quantize} cannot be applied to a checkpoint that is quantized already (${stored.dtype})`,
      "leave --quantize out, or plan the checkpoint before its quantization",
    );
  }
}

const USUAL_PIECES = 2;

/** As few microbatches as keep all stages of a pipeline busy; interleaved schedules start more before the first one ends. */
function usualMicrobatches(request: PlanRequest): number {
  const { pipeline, schedule } = pipelineOf(request);
  return pipeline === 1 || schedule !== "interleaved" ? pipeline : 2 * pipeline;
}

function pipelineOf({
  pipeline = 1,
  schedule,
  virtualStages,
}: PlanRequest): Pick<Parallelism, "pipeline" | "schedule" | "virtualStages"> {
  const chosen = schedule ?? ((virtualStages ?? 1) > 1 ? "interleaved" : "1f1b");
  const pieces = chosen === "interleaved" ? (virtualStages ?? USUAL_PIECES) : 1;
  return { pipeline, schedule: chosen, virtualStages: pieces };
}

function quantizeOf(
  model: ModelShape,
  { quantize }: PlanRequest,
  { method, library }: Pick<TrainOptions, "method" | "library">,
): Quantization | null {
  const keepsStored = model.stored.quantization !== null && !convertsFile(model, { mode: "train" });
  const wanted = method === "qlora" && !keepsStored ? "nf4" : null;
  const chosen = quantize ?? wanted;
  // torchao's NF4Tensor, which torchtune uses, always quantizes the scales, too.
  return chosen === "nf4" && library === "torchtune" ? "nf4-dq" : chosen;
}

/** 2,048 positions, or fewer where the model has fewer (512 of BERT). */
function usualSequence({ longestSequence }: ModelShape): number {
  return longestSequence === 0 ? USUAL_SEQUENCE : Math.min(USUAL_SEQUENCE, longestSequence);
}

function serveOptions(
  model: ModelShape,
  request: PlanRequest,
  { gpu, dtype }: Chosen,
): ServeOptions {
  const engine = engineOf(model, request);
  requireOneQuantization(
    request,
    convertsFile(model, { mode: "serve", engine }) ? null : model.stored.quantization,
  );
  requireCacheTypes(engine, request.serve);
  requireLoadable(model, { mode: "serve", gpu, engine, quantize: request.quantize });
  const context = request.serve?.context ?? usualSequence(model);
  const { tensor = 1, pipeline = 1 } = request;
  const limits = batchLimits(
    { engine, gpu },
    { context, isWhole: !generates(model) },
    request.serve,
  );
  return {
    mode: "serve",
    engine,
    context,
    concurrency: 1,
    quantize: request.quantize ?? null,
    dtype: servedType(model, { engine, gpu, dtype, given: request.dtype }),
    kvDType: "auto",
    utilization: usualShare(model, { engine, gpu, tensor, pipeline, ...limits }),
    ...limits,
    cudaGraphs: true,
    attention: attentionOf(model, request, engine),
    padded: request.padded ?? true,
    tensor,
    pipeline,
    expert: request.expert ?? 1,
    gpu,
    ...request.serve,
  };
}

/** Types of a cache that an engine does not have. */
export const NO_CACHE_TYPE: Readonly<Record<Engine, readonly CacheType[]>> = {
  transformers: BLOCK_CACHE_TYPES,
  vllm: ["int8", ...BLOCK_CACHE_TYPES],
  sglang: ["int8", ...BLOCK_CACHE_TYPES],
  tgi: ["int8", ...BLOCK_CACHE_TYPES],
  "llama.cpp": ["fp8", "int8"],
};

/** @throws TidemarkError TM-E002 for a cache that the engine does not start with */
function requireCacheTypes(
  engine: Engine,
  { kvDType, valueDType }: Partial<ServeOptions> = {},
): void {
  const isLlamaCpp = engine === "llama.cpp";
  if (!isLlamaCpp && valueDType !== undefined && valueDType !== kvDType) {
    throw badUsage(
      `--cache-type-k and --cache-type-v belong to llama.cpp: ${engine} has one type for keys and values`,
      "use --kv-dtype, or add --engine llama.cpp",
    );
  }
  const missing = [kvDType, valueDType].find(
    (type) => type !== undefined && NO_CACHE_TYPE[engine].includes(type),
  );
  if (missing !== undefined) {
    throw badUsage(
      `${engine} has no cache in ${missing}`,
      isLlamaCpp
        ? "use --kv-dtype q8_0, or leave --kv-dtype out"
        : "use --kv-dtype fp8, or leave --kv-dtype out",
    );
  }
}

/** Options of the command line take precedence over a file's values. */
export function withJobConfig(request: PlanRequest, config: Partial<PlanRequest>): PlanRequest {
  const merged = <Values extends object>(
    theirs: Values | undefined,
    ours: Values | undefined,
  ): Values | undefined =>
    theirs === undefined ? ours : ours === undefined ? theirs : { ...theirs, ...ours };
  const train = merged(config.train, request.train);
  const serve = merged(config.serve, request.serve);
  const sharding = merged(config.sharding, request.sharding);
  const notes = [...(config.notes ?? []), ...(request.notes ?? [])];
  return {
    ...config,
    ...request,
    ...(train === undefined ? {} : { train }),
    ...(serve === undefined ? {} : { serve }),
    ...(sharding === undefined ? {} : { sharding }),
    ...(notes.length === 0 ? {} : { notes }),
  };
}
