/** Configurations of accelerate (YAML) and `fsdp_config` of transformers' Trainer. */
import { notAModel } from "../../model/errors/plan_errors.js";
import type { PlanRequest } from "../defaults.js";
import type { Sharding } from "../job/options.js";
import type { ModelConfig } from "../shape/config.js";

/** Stages below 3 ignore `offload_param` ("Only applicable with ZeRO Stage 3", DeepSpeedPlugin of accelerate). */
export function zeroOffload(stage: number, weights: boolean, states: boolean): Sharding["offload"] {
  return weights && stage === 3 ? "all" : states ? "optimizer" : "none";
}

/**
 * Keys and plain values of all levels: accelerate's keys are unique.
 * @throws TidemarkError TM-E085 for a line that YAML does not allow at the first level, or a tab as indentation
 */
export function flatYaml(path: string, text: string): ReadonlyMap<string, string> {
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

/** DistributedType of accelerate. */
const TYPES =
  /^(?:NO|XLA|DEEPSPEED|FSDP|MEGATRON_LM|MULTI_(?:CPU|GPU|NPU|MLU|SDAA|MUSA|XPU|HPU|NEURON))$/;

export function ofAccelerate(
  path: string,
  values: ReadonlyMap<string, string>,
): Partial<PlanRequest> {
  const type = (values.get("distributed_type") ?? "").toUpperCase();
  if (type === "") {
    throw notAModel(path, "it has no distributed_type, so it is not a configuration of accelerate");
  }
  if (!TYPES.test(type)) {
    throw notAModel(path, `accelerate has no distributed_type "${type.slice(0, 40)}"`);
  }
  const processes = wholeOf(values.get("num_processes"), 1);
  const precision = values.get("mixed_precision");
  const accumulation = wholeOf(values.get("gradient_accumulation_steps"), 1);
  const own: Partial<PlanRequest> = {
    ...(precision === "bf16" || precision === "fp16" ? { dtype: precision } : {}),
    train: {
      ...(accumulation > 1 ? { accumulation } : {}),
      ...(isTrue(values.get("fsdp_activation_checkpointing"))
        ? { checkpointing: "full" as const }
        : {}),
    },
  };
  return type === "MEGATRON_LM"
    ? ofMegatron(path, values, { own, processes })
    : ofMesh(path, values, { own, type, processes });
}

interface Accelerated {
  readonly own: Partial<PlanRequest>;
  readonly processes: number;
}

/** `megatron_lm_config`: the devices that tensors and stages leave are copies, whose optimizer may be divided. */
function ofMegatron(
  path: string,
  values: ReadonlyMap<string, string>,
  { own, processes }: Accelerated,
): Partial<PlanRequest> {
  const setting = (name: string): string | undefined => values.get(`megatron_lm_${name}`);
  const tensor = wholeOf(setting("tp_degree"), 1);
  const pipeline = wholeOf(setting("pp_degree"), 1);
  const expert = wholeOf(setting("expert_model_parallel_size"), 1);
  const batches = wholeOf(setting("num_micro_batches"), 1);
  const devices = copiesOf(path, processes, tensor * pipeline);
  return {
    ...own,
    ...(tensor > 1 ? { tensor } : {}),
    ...(tensor > 1 && isTrue(setting("sequence_parallelism")) ? { sequenceParallel: true } : {}),
    ...(pipeline > 1 ? { pipeline } : {}),
    ...(expert > 1 ? { expert } : {}),
    sharding: { kind: isTrue(setting("use_distributed_optimizer")) ? "zero-1" : "ddp", devices },
    train: {
      ...own.train,
      ...(batches > 1 ? { accumulation: batches } : {}),
      ...(isTrue(setting("recompute_activations")) ? { checkpointing: "selective" as const } : {}),
    },
  };
}

/**
 * `parallelism_config` of accelerate, beside FSDP, DDP or DeepSpeed. FSDP divides over `dp_shard_size`, whose groups are
 * copies; without one, HYBRID_SHARD divides over the devices of one machine.
 */
function ofMesh(
  path: string,
  values: ReadonlyMap<string, string>,
  { own, type, processes }: Accelerated & { readonly type: string },
): Partial<PlanRequest> {
  const sizeOf = (name: string): number =>
    wholeOf(values.get(`parallelism_config_${name}_size`), 1);
  const [tensor, context] = [sizeOf("tp"), sizeOf("cp") * sizeOf("sp")];
  const all = copiesOf(path, processes, tensor * context);
  const isHybrid = /^(?:HYBRID_SHARD|HYBRID_SHARD_ZERO2|4|5)$/i.test(
    values.get("fsdp_sharding_strategy") ?? "",
  );
  const shard = values.has("parallelism_config_dp_shard_size")
    ? sizeOf("dp_shard")
    : isHybrid
      ? copiesOf(path, all, wholeOf(values.get("num_machines"), 1))
      : all;
  const isDivided = type === "FSDP" && shard < all;
  return {
    ...own,
    ...(tensor > 1 ? { tensor } : {}),
    ...(context > 1 ? { contextParallel: context } : {}),
    sharding: shardingOf(type, values, isDivided ? shard : all),
    notes: [
      ...(isDivided
        ? [
            `${path} divides the model over ${shard} of ${all} devices: the plan is of one of ${all / shard} copies`,
          ]
        : []),
      ...(context > 1 && type === "FSDP"
        ? [
            `accelerate's FSDP divides weights, gradients and states over the ${context} devices of context parallelism, too, which the plan does not`,
          ]
        : []),
    ],
  };
}

/** @throws TidemarkError TM-E085 where the devices are no multiple of a group */
function copiesOf(path: string, devices: number, group: number): number {
  if (devices % group !== 0) {
    throw notAModel(
      path,
      `its ${devices} processes are not a multiple of ${group}, the devices of its groups`,
    );
  }
  return devices / group;
}

function isTrue(text: string | undefined): boolean {
  return text?.toLowerCase() === "true";
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
  "4": "fsdp",
  "5": "fsdp",
  SHARD_GRAD_OP: "fsdp",
  HYBRID_SHARD_ZERO2: "fsdp",
  "3": "ddp",
  NO_SHARD: "ddp",
};
const KEEPS_GATHERED: ReadonlySet<string> = new Set([
  "2",
  "5",
  "SHARD_GRAD_OP",
  "HYBRID_SHARD_ZERO2",
]);

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
export function ofTrainerFsdp(config: ModelConfig): Partial<PlanRequest> {
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

export const TRAINER_FSDP = [
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
