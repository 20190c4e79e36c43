/**
 * What a job's own files configure: adapter_config.json of PEFT, configurations of DeepSpeed, of accelerate, and of the
 * Trainer's FSDP. Options of the command line take precedence.
 */
import { badUsage } from "../../model/errors/errors.js";
import { asOtherFile, notAModel } from "../../model/errors/plan_errors.js";
import { type PlanRequest, withJobConfig } from "../defaults.js";
import type { OptimizerName } from "../job/optimizers.js";
import type { Sharding } from "../job/options.js";
import { type JsonObject, ModelConfig } from "../shape/config.js";
import { ofAdapter } from "./adapter_config.js";
import { readBounded, readJson } from "./bounded.js";

const LARGEST_YAML = 2 ** 20;

type Kind = "an adapter" | "DeepSpeed" | "accelerate" | "FSDP";

interface JobConfig {
  readonly kind: Kind;
  readonly request: Partial<PlanRequest>;
  /** What divides the model over devices. */
  readonly divides?: "DeepSpeed" | "FSDP";
  /** That its batches are of: train_batch_size / (micro-batch x accumulation). */
  readonly devices?: number;
}

/**
 * All files of a job; options of `words` take precedence.
 * @throws TidemarkError TM-E002 for two files of one kind, TM-E003, TM-E004, TM-E085 where a file is none of them
 */
export function withJobConfigs(words: PlanRequest, paths: readonly string[]): PlanRequest {
  const kinds = new Map<Kind, string>();
  let request = words;
  let divided: { by: string; path: string } | undefined;
  for (const path of paths) {
    const { kind, request: own, divides, devices } = jobConfig(path);
    const other = kinds.get(kind);
    if (other !== undefined) {
      throw badUsage(`${other} and ${path} both configure ${kind}`, "give one of them");
    }
    kinds.set(kind, path);
    if (divides !== undefined && divided !== undefined && divided.by !== divides) {
      throw badUsage(
        `${divided.path} configures ${divided.by}, and ${path} configures ${divides}: a job uses one of them`,
        "give one of the files",
      );
    }
    divided = divides === undefined ? divided : { by: divides, path };
    request = withJobConfig(request, own);
    const given = words.sharding?.devices;
    if (devices !== undefined && given === undefined && Number.isInteger(devices)) {
      request = withJobConfig(request, { sharding: { devices } });
    } else if (devices !== undefined && given !== devices) {
      const note = `${path} has a train_batch_size of ${Number(devices.toFixed(2))} devices${given === undefined ? "" : `, not ${given}`}: DeepSpeed stops unless it is train_micro_batch_size_per_gpu x gradient_accumulation_steps x devices`;
      request = withJobConfig(request, { notes: [note] });
    }
  }
  return request;
}

function jobConfig(path: string): JobConfig {
  try {
    return readJobConfig(path);
  } catch (error) {
    throw asOtherFile(
      error,
      "is not a configuration that --config reads",
      "give an adapter_config.json, or a configuration of DeepSpeed, accelerate or FSDP",
    );
  }
}

function readJobConfig(path: string): JobConfig {
  if (/\.ya?ml$/.test(path)) {
    const values = flatYaml(path, readBounded(path, LARGEST_YAML).toString("utf8"));
    const type = (values.get("distributed_type") ?? "").toUpperCase();
    const divides = type === "FSDP" ? type : type === "DEEPSPEED" ? "DeepSpeed" : undefined;
    return {
      kind: "accelerate",
      request: ofAccelerate(path, values),
      ...(divides === undefined ? {} : { divides }),
    };
  }
  const config = new ModelConfig(readJson(path), path);
  if (config.has("peft_type")) {
    return { kind: "an adapter", request: ofAdapter(config) };
  }
  if (config.has("zero_optimization", "train_micro_batch_size_per_gpu", "train_batch_size")) {
    const automatic: string[] = [];
    const values = withoutAuto(config.values, "", automatic);
    const plain = new ModelConfig(values, path);
    const request = ofDeepSpeed(plain, automatic.includes(BUCKET));
    const unused = withoutUse(plain);
    const left = automatic.filter((name) => !OF_HIDDEN_SIZE.has(name));
    const note = `${path} leaves "auto" values to the program, here to the other options: ${left.join(", ")}`;
    return {
      kind: "DeepSpeed",
      divides: "DeepSpeed",
      ...impliedDevices(plain),
      request: {
        ...request,
        notes: [
          ...(left.length === 0 ? [] : [note]),
          ...(unused.length === 0
            ? []
            : [`${path} sets ${unused.join(", ")}, on which no figure of the plan depends`]),
        ],
      },
    };
  }
  if (config.has(...TRAINER_FSDP)) {
    return { kind: "FSDP", divides: "FSDP", request: ofTrainerFsdp(config) };
  }
  throw notAModel(
    path,
    "it is neither an adapter_config.json nor a configuration of DeepSpeed, accelerate or FSDP",
  );
}

function impliedDevices(config: ModelConfig): Pick<JobConfig, "devices"> {
  const [total, micro, accumulation] = [
    "train_batch_size",
    "train_micro_batch_size_per_gpu",
    "gradient_accumulation_steps",
  ].map((name) => config.optionalSize(name));
  return total === undefined || micro === undefined || accumulation === undefined
    ? {}
    : { devices: total / (micro * accumulation) };
}

const BUCKET = "zero_optimization.reduce_bucket_size";
/** Sizes that the Trainer and accelerate compute from the hidden size; the last two take negligible memory. */
const OF_HIDDEN_SIZE: ReadonlySet<string> = new Set([
  BUCKET,
  "zero_optimization.stage3_prefetch_bucket_size",
  "zero_optimization.stage3_param_persistence_threshold",
]);

/** The Trainer and accelerate replace "auto" by their own settings. @param automatic gets the names of such values */
function withoutAuto(values: JsonObject, prefix: string, automatic: string[]): JsonObject {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => {
      if (value === "auto") {
        automatic.push(`${prefix}${name}`);
        return [];
      }
      const isPart = typeof value === "object" && value !== null && !Array.isArray(value);
      return [
        [
          name,
          isPart && prefix.length < 200
            ? withoutAuto(value as JsonObject, `${prefix}${name}.`, automatic)
            : value,
        ],
      ];
    }),
  );
}

const OPTIMIZERS: Readonly<Record<string, OptimizerName>> = {
  adam: "adam",
  adamw: "adamw",
  adamw8bit: "adamw8bit",
  lion: "lion",
  muon: "muon",
  sgd: "sgd-momentum",
};

function ofDeepSpeed(config: ModelConfig, automaticBucket: boolean): Partial<PlanRequest> {
  const zero = config.part("zero_optimization");
  const stage = zero?.count(0, "stage") ?? 0;
  if (stage > 3) {
    throw notAModel(config.source, `ZeRO has stages 0 to 3, not ${stage}`);
  }
  const isOffloaded = (name: string): boolean =>
    /cpu|nvme/.test(zero?.part(name)?.text("device") ?? "");
  const offload = zeroOffload(
    stage,
    isOffloaded("offload_param"),
    isOffloaded("offload_optimizer"),
  );
  const isOn = (name: string): boolean => config.part(name)?.flag(false, "enabled") === true;
  const optimizer = OPTIMIZERS[config.part("optimizer")?.text("type").toLowerCase() ?? ""];
  const batch = config.optionalSize("train_micro_batch_size_per_gpu");
  const accumulation = config.optionalSize("gradient_accumulation_steps");
  return {
    ...(isOn("bf16") ? { dtype: "bf16" as const } : isOn("fp16") ? { dtype: "fp16" as const } : {}),
    ...(stage === 0
      ? {}
      : {
          sharding: {
            kind: `zero-${stage as 1 | 2 | 3}`,
            offload,
            ...(zero === null ? {} : buffersOf(zero, stage, automaticBucket)),
          } as const,
        }),
    train: {
      ...(batch === undefined ? {} : { batch }),
      ...(accumulation === undefined ? {} : { accumulation }),
      ...(optimizer === undefined ? {} : { optimizer }),
    },
  };
}

/** Numbers of a model end here; those of DeepSpeed's buffers may be larger, as "all that there is". */
const MOST_OF_MODEL = 1e9;
const LARGEST_BUFFER = 1e12;

function buffersOf(
  zero: ModelConfig,
  stage: number,
  automaticBucket: boolean,
): Pick<Sharding, "deepSpeed"> {
  const count = (name: string): number | undefined => {
    const value = zero.values[name];
    const isLarge = typeof value === "number" && value > MOST_OF_MODEL && value <= LARGEST_BUFFER;
    return isLarge ? Math.floor(value) : zero.has(name) ? zero.count(0, name) : undefined;
  };
  const sizes = {
    reduceBucket: count("reduce_bucket_size"),
    ...(automaticBucket ? { automaticBucket } : {}),
    ...(zero.has("contiguous_gradients")
      ? { contiguous: zero.flag(true, "contiguous_gradients") }
      : {}),
    ...(zero.has("overlap_comm") ? { overlaps: zero.flag(true, "overlap_comm") } : {}),
    ...(stage === 3
      ? {
          liveParameters: count("stage3_max_live_parameters"),
          subGroup: count("sub_group_size"),
        }
      : {}),
  };
  const given = Object.fromEntries(
    Object.entries(sizes).filter(([, value]) => value !== undefined),
  ) as NonNullable<Sharding["deepSpeed"]>;
  return Object.keys(given).length === 0 ? {} : { deepSpeed: given };
}

/**
 * Sizes of DeepSpeed that the formulas do not have: weights are gathered into their own buffers in stages 1 and 2,
 * prefetched ones are among the live ones, and small weights that stay are negligible.
 */
function withoutUse(config: ModelConfig): string[] {
  const zero = config.part("zero_optimization");
  const isThird = zero?.count(0, "stage") === 3;
  const sizes = ["stage3_max_live_parameters", "sub_group_size"].filter(() => !isThird);
  const names = [
    "allgather_bucket_size",
    "stage3_prefetch_bucket_size",
    "stage3_param_persistence_threshold",
    ...sizes,
  ].filter((name) => zero?.has(name) === true);
  const partitions =
    config.part("activation_checkpointing")?.flag(false, "partition_activations") === true;
  return [...names, ...(partitions ? ["partition_activations"] : [])];
}

/** Stages below 3 ignore `offload_param` ("Only applicable with ZeRO Stage 3", DeepSpeedPlugin of accelerate). */
function zeroOffload(stage: number, weights: boolean, states: boolean): Sharding["offload"] {
  return weights && stage === 3 ? "all" : states ? "optimizer" : "none";
}

/**
 * Keys and plain values of all levels: accelerate's keys are unique.
 * @throws TidemarkError TM-E085 for a line that YAML does not allow at the first level, or a tab as indentation
 */
function flatYaml(path: string, text: string): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  for (const [index, line] of text.split("\n").slice(0, 10_000).entries()) {
    if (
      /^ *\t+ *[^\s#]/.test(line) ||
      !/^(?:[\s#%'"}\]-]|\.\.\.|[^\s:][^:]*:(?:\s|$)|$)/.test(line)
    ) {
      throw notAModel(path, `line ${index + 1} is not YAML`);
    }
    const [, key, value] = /^\s*([A-Za-z_]\w*):\s*([^#]*?)\s*(?:#.*)?$/.exec(line) ?? [];
    if (key !== undefined && value !== undefined) {
      values.set(key, value.replace(/^['"]|['"]$/g, ""));
    }
  }
  return values;
}

function ofAccelerate(path: string, values: ReadonlyMap<string, string>): Partial<PlanRequest> {
  const type = (values.get("distributed_type") ?? "").toUpperCase();
  if (type === "") {
    throw notAModel(path, "it has no distributed_type, so it is not a configuration of accelerate");
  }
  const devices = wholeOf(values.get("num_processes"), 1);
  const precision = values.get("mixed_precision");
  const accumulation = wholeOf(values.get("gradient_accumulation_steps"), 1);
  const sharding = shardingOf(type, values, devices);
  return {
    ...(precision === "bf16" || precision === "fp16" ? { dtype: precision } : {}),
    sharding,
    train: {
      ...(accumulation > 1 ? { accumulation } : {}),
      ...(values.get("fsdp_activation_checkpointing") === "true"
        ? { checkpointing: "full" as const }
        : {}),
    },
  };
}

function shardingOf(
  type: string,
  values: ReadonlyMap<string, string>,
  devices: number,
): Partial<Sharding> {
  if (type === "FSDP") {
    return fsdpSharding((name) => values.get(`fsdp_${name}`), devices);
  }
  const stage = wholeOf(values.get("zero_stage"), 0);
  if (type === "DEEPSPEED" && stage >= 1 && stage <= 3) {
    const offloads = (name: string): boolean => /cpu|nvme/.test(values.get(name) ?? "");
    return {
      kind: `zero-${stage as 1 | 2 | 3}`,
      devices,
      offload: zeroOffload(
        stage,
        offloads("offload_param_device"),
        offloads("offload_optimizer_device"),
      ),
    };
  }
  return { kind: "ddp", devices };
}

/** SHARD_GRAD_OP divides as FULL_SHARD does, and keeps gathered weights from the forward to the backward pass. */
const STRATEGIES: Readonly<Record<string, Sharding["kind"]>> = {
  "1": "fsdp",
  FULL_SHARD: "fsdp",
  HYBRID_SHARD: "fsdp",
  "2": "fsdp",
  SHARD_GRAD_OP: "fsdp",
  HYBRID_SHARD_ZERO2: "fsdp",
  "3": "ddp",
  NO_SHARD: "ddp",
};
const KEEPS_GATHERED: ReadonlySet<string> = new Set(["2", "SHARD_GRAD_OP", "HYBRID_SHARD_ZERO2"]);

/** accelerate's default is version 1. In version 2, `reshard_after_forward: false` replaces SHARD_GRAD_OP. */
function fsdpSharding(
  setting: (name: string) => string | undefined,
  devices?: number,
): Partial<Sharding> {
  const strategy = (setting("sharding_strategy") ?? "FULL_SHARD").toUpperCase();
  const keepsGathered =
    setting("reshard_after_forward")?.toLowerCase() === "false" || KEEPS_GATHERED.has(strategy);
  const kind = STRATEGIES[strategy] ?? "fsdp";
  const isOffloaded = setting("offload_params")?.toLowerCase() === "true";
  return {
    kind,
    ...(devices === undefined ? {} : { devices }),
    // NO_SHARD keeps whole weights on the device.
    offload: !isOffloaded ? "none" : kind === "fsdp" ? "all" : "optimizer",
    version: setting("version") === "2" ? 2 : 1,
    ...(keepsGathered && kind === "fsdp" ? { keepsGathered } : {}),
  };
}

/** `fsdp_config` of transformers' Trainer: the same names, with or without "fsdp_". It does not name the devices. */
function ofTrainerFsdp(config: ModelConfig): Partial<PlanRequest> {
  const setting = (name: string): string | undefined => {
    const value = config.values[`fsdp_${name}`] ?? config.values[name];
    return value === undefined || value === null || typeof value === "object"
      ? undefined
      : String(value);
  };
  return {
    sharding: fsdpSharding(setting),
    train: setting("activation_checkpointing") === "true" ? { checkpointing: "full" } : {},
  };
}

const TRAINER_FSDP = [
  "fsdp_transformer_layer_cls_to_wrap",
  "transformer_layer_cls_to_wrap",
  "fsdp_version",
  "fsdp_auto_wrap_policy",
  "fsdp_min_num_params",
  "min_num_params",
];

function wholeOf(text: string | undefined, otherwise: number): number {
  const value = Number(text);
  return Number.isInteger(value) && value >= 1 && value <= 1e6 ? value : otherwise;
}
