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
import {
  flatYaml,
  ofAccelerate,
  ofTrainerFsdp,
  TRAINER_FSDP,
  zeroOffload,
} from "./accelerate_config.js";
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
    const named = plain.part("optimizer")?.text("type") ?? "";
    const isUnread = named !== "" && OPTIMIZERS[named.toLowerCase()] === undefined;
    const note = `${path} leaves "auto" values to the program, here to the other options: ${left.join(", ")}`;
    return {
      kind: "DeepSpeed",
      divides: "DeepSpeed",
      ...impliedDevices(plain),
      request: {
        ...request,
        notes: [
          ...(left.length === 0 ? [] : [note]),
          ...(isUnread
            ? [
                `${path} names the optimizer ${named.slice(0, 40)}, of which the plan has no formula: it plans that of --optimizer, adamw unless given`,
              ]
            : []),
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
  // `true` is the format of its first versions, for stage 1 (read_zero_config_deprecated).
  const stage = zero?.count(0, "stage") ?? (config.values.zero_optimization === true ? 1 : 0);
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
  // Read by deepspeed.checkpointing.checkpoint alone, which a program has to call.
  const recomputes = ["partition_activations", "cpu_checkpointing"].filter(
    (name) => config.part("activation_checkpointing")?.flag(false, name) === true,
  );
  return [...names, ...recomputes];
}
