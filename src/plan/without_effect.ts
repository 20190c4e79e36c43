/**
 * Options that were given and change no figure of the plan: the plan of the same job without them is the same. Each is a
 * caution that names it and the reason.
 */
import { TidemarkError } from "../model/errors/errors.js";
import { type PlanRequest, planOptions } from "./defaults.js";
import {
  convertsFile,
  type PlanOptions,
  type ServeOptions,
  type TrainOptions,
} from "./job/options.js";
import { bytesOfSequence, cachedTower, cacheFormat, cacheShape } from "./serve/attention_cache.js";
import { planServing } from "./serve/plan_serving.js";
import { fillsShare, servedShape } from "./serve/served_by.js";
import { readsText } from "./shape/layers.js";
import type { ModelShape } from "./shape/model_shape.js";
import { hostParts } from "./train/host.js";
import { trainingPeak } from "./train/plan_training.js";
import { hasMasterWeights } from "./train/states.js";

interface Setting<Options> {
  readonly flag: string;
  /** Where the request has it. */
  readonly group?: "train" | "serve";
  readonly key: string;
  /** The first that holds is printed. */
  readonly reasons?: readonly (readonly [
    when: (model: ModelShape, job: Options) => boolean,
    why: string,
  ])[];
}

const NO_TEXT = [(model: ModelShape) => !readsText(model), "the model reads no text"] as const;
const WHOLE = [
  (_: ModelShape, { method }: TrainOptions) => method === "full",
  "all weights are trained; add --method lora",
] as const;

const TRAINING: readonly Setting<TrainOptions>[] = [
  { flag: "--seq", group: "train", key: "sequence", reasons: [NO_TEXT] },
  {
    flag: "--loss",
    group: "train",
    key: "loss",
    reasons: [[({ head }) => head.kind !== "language", "the model has no logits of tokens"]],
  },
  { flag: "--checkpointing", group: "train", key: "checkpointing" },
  {
    flag: "--offload-activations",
    group: "train",
    key: "activationOffload",
    reasons: [
      [
        (_, { checkpointing }) => checkpointing === "none",
        "it moves the inputs of checkpointed layers; add --checkpointing full",
      ],
    ],
  },
  { flag: "--compile", group: "train", key: "compiled" },
  { flag: "--optimizer-in-backward", group: "train", key: "optimizerInBackward" },
  { flag: "--lora-rank", group: "train", key: "adapterRank", reasons: [WHOLE] },
  { flag: "--lora-targets", group: "train", key: "adapterTargets", reasons: [WHOLE] },
  { flag: "--lora-dropout", group: "train", key: "adapterDropout", reasons: [WHOLE] },
  { flag: "--sequence-parallel", key: "sequenceParallel" },
  {
    flag: "--weights",
    key: "weights",
    reasons: [
      [(_, { dtype }) => dtype === "fp32", "products in fp32 read fp32 weights"],
      [(_, job) => hasMasterWeights(job), "DeepSpeed keeps fp32 master weights of 16-bit weights"],
    ],
  },
  {
    flag: "--no-padding",
    key: "padded",
    reasons: [
      NO_TEXT,
      [(_, { batch }) => batch === 1, "a batch of one sequence has no padding"],
      [(_, { attention }) => attention === "flash", "FlashAttention takes lengths and no mask"],
      [(_, { attention }) => attention === "eager", "eager attention always adds a mask"],
    ],
  },
];

const OWN_KERNELS = [
  (_: ModelShape, { engine }: ServeOptions) => engine !== "transformers",
  "the engine computes attention with kernels of its own",
] as const;
const NO_CACHE = [
  (model: ModelShape) => cachedTower(model) === undefined,
  "the model keeps no cache",
] as const;

const SERVING: readonly Setting<ServeOptions>[] = [
  { flag: "--context", group: "serve", key: "context", reasons: [NO_TEXT] },
  {
    flag: "--concurrency",
    group: "serve",
    key: "concurrency",
    reasons: [
      [
        NO_CACHE[0],
        "the engine computes --batched-tokens tokens at once, of any number of sequences",
      ],
    ],
  },
  { flag: "--kv-dtype", group: "serve", key: "kvDType", reasons: [NO_CACHE] },
  {
    flag: "--cache-type-v",
    group: "serve",
    key: "valueDType",
    reasons: [NO_CACHE, [hasLatentRows, "latent attention keeps one row, in the type of the keys"]],
  },
  {
    flag: "--gpu-layers",
    group: "serve",
    key: "gpuLayers",
    reasons: [
      [(_, { engine }) => engine !== "llama.cpp", "the engine keeps all layers on the device"],
      [() => true, "all layers and the output are on the device"],
    ],
  },
  {
    flag: "--utilization",
    group: "serve",
    key: "utilization",
    reasons: [
      [(model, { engine }) => !fillsShare(model, engine), "the engine allocates what it needs"],
    ],
  },
  {
    flag: "--batched-tokens",
    group: "serve",
    key: "batchedTokens",
    reasons: [
      [(_, { engine }) => engine === "transformers", "transformers computes whole prompts"],
      [(_, { engine }) => engine === "llama.cpp", "llama.cpp computes 512 tokens per pass"],
    ],
  },
  {
    flag: "--max-num-seqs",
    group: "serve",
    key: "maxSequences",
    reasons: [
      [(_, { engine }) => engine !== "vllm", "vllm alone is planned with this limit"],
      [() => true, "a pass takes more memory than sampling for so many sequences"],
    ],
  },
  {
    flag: "--no-cuda-graphs",
    group: "serve",
    key: "cudaGraphs",
    reasons: [[() => true, "the engine captures no CUDA graphs"]],
  },
  { flag: "--no-padding", key: "padded", reasons: [NO_TEXT, OWN_KERNELS] },
];

/** Between sdpa and flash, equal figures are usual: only engines without a choice ignore it. */
const ENGINE_ATTENTION: Setting<ServeOptions> = {
  flag: "--attention",
  key: "attention",
  reasons: [OWN_KERNELS],
};

/** Types of one width have equal figures: only a file whose types stay ignores it. */
const FILE_TYPE: Setting<ServeOptions> = {
  flag: "--dtype",
  key: "dtype",
  reasons: [[() => true, "each tensor keeps the type of the file"]],
};

function servingSettings(
  model: ModelShape,
  options: ServeOptions,
): readonly Setting<ServeOptions>[] {
  return [
    ...SERVING,
    ...(options.engine === "transformers" ? [] : [ENGINE_ATTENTION]),
    ...(model.stored.fileBytes === undefined || convertsFile(model, options) ? [] : [FILE_TYPE]),
  ];
}

function hasLatentRows({ towers }: ModelShape): boolean {
  return towers.some(({ layers }) =>
    layers.some(
      ({ layer }) => layer.kind === "transformer" && layer.attention?.latent !== undefined,
    ),
  );
}

export function withoutEffect(
  model: ModelShape,
  options: PlanOptions,
  request: PlanRequest,
): string[] {
  return options.mode === "train"
    ? ineffective(TRAINING, { model, job: options, request })
    : ineffective(servingSettings(model, options), { model, job: options, request });
}

interface Given<Options> {
  readonly model: ModelShape;
  readonly job: Options;
  readonly request: PlanRequest;
}

/** One sentence for all options that have the same reason. */
function ineffective<Options extends PlanOptions>(
  settings: readonly Setting<Options>[],
  { model, job, request }: Given<Options>,
): string[] {
  const figures = once(() => figuresOf(model, job));
  const flags = new Map<string, string[]>();
  for (const setting of settings) {
    const { flag, reasons = [] } = setting;
    const less = without(request, setting);
    if (less !== null && isSame(model, job, less, figures)) {
      const why =
        reasons.find(([when]) => when(model, job))?.[1] ?? "no figure of this plan depends on it";
      flags.set(why, [...(flags.get(why) ?? []), flag]);
    }
  }
  return [...flags].map(([why, names]) => {
    const last = names.pop() ?? "";
    const all = names.length === 0 ? last : `${names.join(", ")} and ${last}`;
    return `${all} ${names.length === 0 ? "has" : "have"} no effect: ${why}`;
  });
}

function once<Value>(make: () => Value): () => Value {
  let made: { value: Value } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/** null: it was not given. */
function without<Options>(
  request: PlanRequest,
  { group, key }: Setting<Options>,
): PlanRequest | null {
  const values = (group === undefined ? request : (request[group] ?? {})) as Record<
    string,
    unknown
  >;
  const value = values[key];
  // One type for keys and values, or given for the keys alone, is no type of the values.
  const isKeys = key === "valueDType" && (value === "auto" || value === values.kvDType);
  if (value === undefined || isKeys) {
    return null;
  }
  const { [key]: _, ...rest } = values;
  return group === undefined
    ? ({ ...rest, mode: request.mode } as PlanRequest)
    : { ...request, [group]: rest };
}

/** Whether the job is another one without the option, and its figures are not. */
function isSame(
  model: ModelShape,
  job: PlanOptions,
  request: PlanRequest,
  figures: () => string,
): boolean {
  try {
    const other = planOptions(model, request);
    return JSON.stringify(other) !== JSON.stringify(job) && figuresOf(model, other) === figures();
  } catch (error) {
    if (error instanceof TidemarkError) {
      return false;
    }
    throw error;
  }
}

/** All figures of a job, before anything is rounded, searched, or cut to the device. */
function figuresOf(model: ModelShape, options: PlanOptions): string {
  if (options.mode === "serve") {
    const { parts, hostBytes, room, kvBytesPerToken, bytesPerSequence } = planServing(
      model,
      options,
    );
    const sizes = parts.map(({ part, bytes }) => [part, bytes]);
    // The rows of the plan are in whole blocks, and cut to the room of the device.
    const cache = cacheShape(servedShape(model, options), cacheFormat(model, options));
    const needed = bytesOfSequence(cache, options.context) * options.concurrency;
    return JSON.stringify([
      [sizes, hostBytes, room?.left, needed],
      [kvBytesPerToken, bytesPerSequence],
    ]);
  }
  const peak = trainingPeak(model, options);
  const { simulation, states, allocatedBytes, inFlight } = peak;
  const { weights, adapters, gradients, optimizer, master } = states;
  return JSON.stringify([
    [allocatedBytes, inFlight, weights, adapters, gradients, optimizer, master],
    [...simulation.savedAfterForward],
    hostParts(model, options, peak),
  ]);
}
