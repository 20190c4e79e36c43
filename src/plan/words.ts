/** The options of `tidemark plan` by their names, as a request. Pure: what would save memory is stated in the same words. */
import { badUsage } from "../model/errors/errors.js";
import type { PlanRequest } from "./defaults.js";
import { type Gpu, USUAL_GPU } from "./device/gpus.js";
import { type CacheType, cacheTypeOf, type LlamaCacheType } from "./job/cache_types.js";
import type { OptimizerName } from "./job/optimizers.js";
import type {
  ComputeDType,
  Engine,
  Library,
  Method,
  Quantization,
  Schedule,
  TrainOptions,
} from "./job/options.js";

export interface PlanWords {
  readonly train?: boolean;
  readonly serve?: boolean;
  readonly method?: Method;
  readonly optimizer?: OptimizerName;
  readonly optimizerInBackward?: boolean;
  readonly batch?: number;
  readonly seq?: number;
  readonly accumulation?: number;
  readonly checkpointing?: TrainOptions["checkpointing"];
  readonly offloadActivations?: boolean;
  readonly quantize?: Quantization;
  readonly dtype?: ComputeDType;
  readonly weights?: "fp32" | "16bit";
  readonly attention?: TrainOptions["attention"];
  readonly padding?: boolean;
  readonly loss?: TrainOptions["loss"];
  readonly library?: Library;
  readonly compile?: boolean;
  readonly loraRank?: number;
  readonly loraTargets?: string;
  readonly loraDropout?: boolean;
  readonly ddp?: number;
  readonly fsdp?: number;
  readonly fsdpVersion?: "1" | "2";
  readonly zero?: number;
  readonly devices?: number;
  readonly offload?: "optimizer" | "all";
  readonly tp?: number;
  readonly sequenceParallel?: boolean;
  readonly cp?: number;
  readonly pp?: number;
  readonly schedule?: Schedule;
  readonly virtualStages?: number;
  readonly ep?: number;
  readonly workers?: number;
  readonly gpu?: Gpu;
  readonly cudaContext?: number;
  readonly config?: readonly string[];
  readonly engine?: Engine;
  readonly context?: number;
  readonly concurrency?: number;
  readonly kvDtype?: CacheType;
  readonly cacheTypeK?: LlamaCacheType;
  readonly cacheTypeV?: LlamaCacheType;
  readonly gpuLayers?: number;
  readonly utilization?: number;
  readonly batchedTokens?: number;
  readonly maxNumSeqs?: number;
  readonly cudaGraphs?: boolean;
}

/** Without the keys whose value is undefined. */
function given<Values extends object>(
  values: Values,
): { [Key in keyof Values]?: Exclude<Values[Key], undefined> } {
  return Object.fromEntries(
    Object.entries(values).filter(([, value]) => value !== undefined),
  ) as never;
}

const ONLY_SERVING = [
  "engine",
  "context",
  "concurrency",
  "kvDtype",
  "cacheTypeK",
  "cacheTypeV",
  "gpuLayers",
  "utilization",
  "batchedTokens",
  "maxNumSeqs",
] as const satisfies readonly (keyof PlanWords)[];
const ONLY_TRAINING = [
  "method",
  "optimizer",
  "checkpointing",
  "accumulation",
  "loss",
  "zero",
  "fsdp",
  "ddp",
  "batch",
  "seq",
  "devices",
  "offload",
  "offloadActivations",
  "optimizerInBackward",
  "weights",
  "library",
  "compile",
  "loraRank",
  "loraTargets",
  "loraDropout",
  "sequenceParallel",
  "cp",
  "schedule",
  "virtualStages",
  "workers",
  "config",
] as const satisfies readonly (keyof PlanWords)[];

/** @throws TidemarkError TM-E002 for options that contradict each other */
export function requestOf(words: PlanWords): PlanRequest {
  const serves = words.serve === true;
  if (serves && words.train === true) {
    throw badUsage("--train and --serve are different plans", "choose one");
  }
  const stray = (serves ? ONLY_TRAINING : ONLY_SERVING).find((name) => words[name] !== undefined);
  if (stray !== undefined) {
    const flag = `--${stray.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    throw badUsage(
      `${flag} belongs to ${serves ? "training" : "--serve"}`,
      serves ? servingWord(stray) : "add --serve",
    );
  }
  if (!serves && words.cudaGraphs === false) {
    throw badUsage("--no-cuda-graphs belongs to --serve", "add --serve");
  }
  requireParallel(words);
  return {
    mode: serves ? "serve" : "train",
    ...given({
      method: words.method,
      dtype: words.dtype,
      weights: words.weights,
      quantize: words.quantize,
      gpu: gpuOf(words),
      attention: words.attention,
      padded: words.padding,
      tensor: words.tp,
      pipeline: words.pp,
      expert: words.ep,
      sequenceParallel: words.sequenceParallel,
      contextParallel: words.cp,
      schedule: words.schedule,
      virtualStages: words.virtualStages,
    }),
    ...(serves
      ? { serve: servingOf(words) }
      : { train: trainingOf(words), ...given({ sharding: shardingOf(words) }) }),
  };
}

/** @throws TidemarkError TM-E002 for options that refine a division that was not asked for */
function requireParallel(words: PlanWords): void {
  const { tp = 1, pp = 1, schedule, virtualStages } = words;
  if (words.sequenceParallel === true && tp === 1) {
    throw badUsage("--sequence-parallel divides over the devices of --tp", "add --tp N");
  }
  if (pp === 1 && (schedule !== undefined || virtualStages !== undefined)) {
    const flags = [
      ...(schedule === undefined ? [] : ["--schedule"]),
      ...(virtualStages === undefined ? [] : ["--virtual-stages"]),
    ];
    const verb = flags.length === 1 ? "belongs" : "belong";
    throw badUsage(`${flags.join(" and ")} ${verb} to a pipeline`, "add --pp N");
  }
  if (virtualStages !== undefined && schedule !== undefined && schedule !== "interleaved") {
    throw badUsage(
      `--virtual-stages has no effect with --schedule ${schedule}`,
      "use --schedule interleaved",
    );
  }
  if (words.fsdpVersion !== undefined && words.fsdp === undefined && words.config === undefined) {
    throw badUsage("--fsdp-version belongs to --fsdp", "add --fsdp N");
  }
}

function gpuOf({ gpu, cudaContext }: PlanWords): Gpu | undefined {
  return cudaContext === undefined
    ? gpu
    : { ...(gpu ?? USUAL_GPU), contextBytes: cudaContext, contextMeasured: true };
}

function servingWord(stray: string): string {
  return stray === "batch"
    ? "use --concurrency"
    : stray === "seq"
      ? "use --context"
      : "leave it out";
}

function trainingOf(words: PlanWords): NonNullable<PlanRequest["train"]> {
  const targets = words.loraTargets;
  return given({
    optimizer: words.optimizer,
    optimizerInBackward: words.optimizerInBackward,
    batch: words.batch,
    sequence: words.seq,
    accumulation: words.accumulation,
    checkpointing: words.checkpointing,
    activationOffload: words.offloadActivations,
    loss: words.loss,
    library: words.library,
    compiled: words.compile,
    adapterRank: words.loraRank,
    adapterTargets:
      targets === undefined || targets === "attention" || targets === "all"
        ? targets
        : targets.split(","),
    adapterDropout: words.loraDropout,
    workers: words.workers,
  });
}

function shardingOf(words: PlanWords): PlanRequest["sharding"] {
  const kinds = (["ddp", "fsdp", "zero"] as const).filter((name) => words[name] !== undefined);
  if (kinds.length > 1) {
    throw badUsage(`--${kinds[0]} and --${kinds[1]} divide the same job twice`, "choose one");
  }
  const version =
    words.fsdpVersion === undefined ? undefined : (Number(words.fsdpVersion) as 1 | 2);
  const rest = given({ devices: words.devices, offload: words.offload, version });
  const [kind] = kinds;
  if (words.devices !== undefined && (kind === "fsdp" || kind === "ddp")) {
    throw badUsage(
      `--${kind} ${words[kind]} is a number of devices already`,
      "leave --devices out, which belongs to --zero and --config",
    );
  }
  if (words.offload !== undefined && kind === "ddp") {
    throw badUsage("--offload belongs to --fsdp and --zero", "use one of them instead of --ddp");
  }
  if (words.fsdp !== undefined) {
    return { ...rest, kind: "fsdp", devices: words.fsdp };
  }
  if (words.zero !== undefined) {
    return { ...rest, kind: `zero-${words.zero as 1 | 2 | 3}` };
  }
  if (words.ddp !== undefined) {
    return { kind: "ddp", devices: words.ddp };
  }
  if (Object.keys(rest).length === 0) {
    return undefined;
  }
  if (words.config === undefined) {
    const flags = (["devices", "offload"] as const).filter((name) => words[name] !== undefined);
    const names = flags.map((name) => `--${name}`).join(" and ");
    const needs = flags.includes("devices") ? "--zero" : "--fsdp or --zero";
    throw badUsage(
      `${names} ${flags.length === 1 ? "belongs" : "belong"} to ${needs}`,
      `add ${needs}`,
    );
  }
  return rest;
}

/** @throws TidemarkError TM-E002 for two types of one cache */
function servingOf(words: PlanWords): NonNullable<PlanRequest["serve"]> {
  const { kvDtype, cacheTypeK, cacheTypeV } = words;
  if (kvDtype !== undefined && (cacheTypeK !== undefined || cacheTypeV !== undefined)) {
    throw badUsage(
      "--kv-dtype and --cache-type-k or --cache-type-v name the same cache",
      "use --kv-dtype alone if both have one type",
    );
  }
  return given({
    engine: words.engine,
    context: words.context,
    concurrency: words.concurrency,
    kvDType: cacheTypeK === undefined ? kvDtype : cacheTypeOf(cacheTypeK),
    valueDType:
      cacheTypeV !== undefined
        ? cacheTypeOf(cacheTypeV)
        : cacheTypeK !== undefined
          ? ("auto" as const)
          : undefined,
    gpuLayers: words.gpuLayers,
    utilization: words.utilization,
    batchedTokens: words.batchedTokens,
    maxSequences: words.maxNumSeqs,
    cudaGraphs: words.cudaGraphs,
  });
}

/** As they are typed: "--fsdp 2 --weights 16bit". */
export function flagsOf(words: PlanWords): string {
  return Object.entries(words)
    .map(([name, value]) => {
      const flag = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
      return value === true
        ? `--${flag}`
        : value === false
          ? `--no-${flag}`
          : `--${flag} ${String(value)}`;
    })
    .join(" ");
}
