/**
 * How expert parallelism divides the experts of each layer, beside the tensor parallelism of all other matrices.
 *
 * | who divides | rule | one expert is on |
 * |---|---|---|
 * | vLLM | `--ep` is the devices of `--tp` times data-parallel copies of the rest (`EP_SIZE = TP_SIZE x DP_SIZE`) | 1 device |
 * | transformers, serving | the devices of `--tp` (`enable_expert_parallel` of DistributedConfig) | 1 device |
 * | SGLang | the devices of `--tp` in groups (`ep_size` divides `tp_size`) | tp / ep devices |
 * | training | data-parallel and context-parallel devices (Megatron, DeepSpeed-MoE, torchtitan) | those of `--tp` |
 * | training, where these are too few | the same and the devices of `--tp` (torchtitan with `expert_tensor_parallel_degree` 1) | 1 device |
 */
import { cannotDivide } from "../../model/errors/plan_errors.js";
import type { ExpertDivision } from "../blocks/rules.js";
import type { Engine, Parallelism, PlanOptions, ServeOptions } from "./options.js";

export function expertDivision(options: PlanOptions): ExpertDivision {
  return options.mode === "serve" ? servedExperts(options) : trainedExperts(options.parallelism);
}

function servedExperts({ engine, tensor, expert }: ServeOptions): ExpertDivision {
  if (expert === 1) {
    return { devices: 1, tensor, copies: 1 };
  }
  return engine === "sglang"
    ? { devices: expert, tensor: tensor / expert, copies: 1 }
    : { devices: expert, tensor: 1, copies: expert / tensor };
}

type Ranks = Pick<Parallelism, "tensor" | "context" | "expert"> & {
  readonly sharding: Pick<Parallelism["sharding"], "devices">;
};

function trainedExperts({ sharding, tensor, context, expert }: Ranks): ExpertDivision {
  const spansTensor = expert > 1 && (sharding.devices * context) % expert !== 0;
  return spansTensor
    ? { devices: expert, tensor: 1, copies: expert / tensor }
    : { devices: expert, tensor, copies: expert };
}

/** Whether the devices of the job can be grouped so. */
function canTrain({ sharding, tensor, context, expert }: Ranks): boolean {
  const copies = sharding.devices * context;
  return copies % expert === 0 || ((copies * tensor) % expert === 0 && expert % tensor === 0);
}

/** The fewest data-parallel devices over which so many experts' groups can be divided. */
export function fewestCopies(ranks: Omit<Ranks, "sharding">): number {
  let devices = 1;
  while (devices < ranks.expert && !canTrain({ ...ranks, sharding: { devices } })) {
    devices += 1;
  }
  return devices;
}

/** Engines without expert parallelism. */
export const HAVE_NONE: ReadonlySet<Engine> = new Set<Engine>(["tgi", "llama.cpp"]);

/** @throws TidemarkError TM-E086 where the devices of the job cannot hold all experts of the model */
export function requireExpertRanks(options: PlanOptions): void {
  const { tensor, expert } = options.mode === "serve" ? options : options.parallelism;
  if (expert === 1) {
    return;
  }
  if (options.mode === "train") {
    requireTrainingRanks(options.parallelism);
    return;
  }
  const { engine } = options;
  if (HAVE_NONE.has(engine)) {
    throw cannotDivide(
      `${engine} has no expert parallelism`,
      "leave --ep out, or name an engine that has it: transformers, vllm, sglang",
    );
  }
  if (engine === "vllm" && expert % tensor !== 0) {
    throw cannotDivide(
      `vllm divides experts over all devices of --tp ${tensor} and its data-parallel copies, which --ep ${expert} is not`,
      `use --ep ${tensor} or a multiple of it`,
    );
  }
  if (engine === "sglang" && tensor % expert !== 0) {
    throw cannotDivide(
      `sglang divides experts within the devices of --tp, and --tp ${tensor} has no ${expert} groups`,
      `use --tp ${expert}, or an --ep that divides --tp`,
    );
  }
  if (engine === "transformers" && tensor !== expert) {
    throw cannotDivide(
      `transformers divides experts over the devices of --tp, which is ${tensor} and not --ep ${expert}`,
      `use --tp ${expert} --ep ${expert}`,
    );
  }
}

function requireTrainingRanks(ranks: Parallelism): void {
  if (ranks.sharding.kind === "zero-3") {
    throw cannotDivide(
      "DeepSpeed has no expert parallelism in ZeRO-3 (its engine: MoE not supported with Stage 3)",
      "use --zero 2 or --fsdp, or leave --ep out",
    );
  }
  if (!canTrain(ranks)) {
    const { sharding, context, tensor, expert } = ranks;
    const copies = sharding.devices * context;
    throw cannotDivide(
      `--ep ${expert} divides experts over the ${copies} data-parallel and context-parallel devices of the job${tensor > 1 ? `, or over these and those of --tp ${tensor}` : ""}`,
      `use an --ep that divides ${copies}, or ${expert} data-parallel devices`,
    );
  }
}
