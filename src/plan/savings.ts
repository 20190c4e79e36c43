/** What each technique would save: the plan is recomputed with it, so that the figure includes interactions. */
import type { Bytes } from "../model/base/units.js";
import type { PlanSavingJson } from "../model/documents/plan_document.js";
import type { Measure } from "./fit.js";
import type { PlanOptions, ServeOptions, TrainOptions } from "./job/options.js";
import type { ModelShape } from "./shape/model_shape.js";

interface Technique<Options> {
  readonly technique: string;
  readonly cost: string;
  readonly change: string;
  /** null if it is already in use or does not apply. */
  readonly applied: (options: Options) => Options | null;
}

const TRAINING: readonly Technique<TrainOptions>[] = [
  {
    technique: "activation checkpointing",
    cost: "about a third more computation",
    change: "--checkpointing full; model.gradient_checkpointing_enable()",
    applied: (job) => (job.checkpointing === "full" ? null : { ...job, checkpointing: "full" }),
  },
  {
    technique: "selective checkpointing",
    cost: "about 10 % more computation",
    change: "--checkpointing selective; torch.utils.checkpoint with a context_fn",
    applied: (job) =>
      job.checkpointing === "none" ? { ...job, checkpointing: "selective" } : null,
  },
  {
    technique: "activation offloading",
    cost: "host memory, PCIe traffic in both passes",
    change: "--checkpointing full --offload-activations",
    applied: (job) =>
      job.activationOffload ? null : { ...job, checkpointing: "full", activationOffload: true },
  },
  {
    technique: "FlashAttention kernel",
    cost: "none",
    change: '--attention flash; attn_implementation="flash_attention_2"',
    applied: (job) =>
      job.attention === "flash" || job.gpu.old ? null : { ...job, attention: "flash" },
  },
  {
    technique: "fused linear cross entropy",
    cost: "none known; needs a fused kernel",
    change: "--loss fused; Liger's LigerFusedLinearCrossEntropyLoss, Cut Cross-Entropy",
    applied: (job) => (job.loss === "fused" ? null : { ...job, loss: "fused" }),
  },
  {
    technique: "chunked cross entropy",
    cost: "none",
    change: "--loss chunked; torchtune's CEWithChunkedOutputLoss",
    applied: (job) => (job.loss === "full" ? { ...job, loss: "chunked" } : null),
  },
  {
    technique: "torch.compile",
    cost: "compiles for minutes; recompiles for new shapes",
    change: "--compile; torch.compile(model)",
    applied: (job) => (job.compiled ? null : { ...job, compiled: true }),
  },
  {
    technique: "8-bit AdamW",
    cost: "slightly noisier updates",
    change: '--optimizer adamw8bit; optim="adamw_bnb_8bit"',
    applied: (job) =>
      job.optimizer.startsWith("adam") && !job.optimizer.includes("8")
        ? { ...job, optimizer: "adamw8bit" }
        : null,
  },
  {
    technique: "paged 8-bit AdamW",
    cost: "slower when pages move; uses host memory",
    change: '--optimizer paged-adamw8bit; optim="paged_adamw_8bit"',
    applied: (job) =>
      job.optimizer.startsWith("adam") ? { ...job, optimizer: "paged-adamw8bit" } : null,
  },
  {
    technique: "optimizer step in the backward pass",
    cost: "no gradient accumulation, no clipping by global norm",
    change: "--optimizer-in-backward; register_post_accumulate_grad_hook",
    applied: (job) =>
      job.optimizerInBackward || job.accumulation > 1
        ? null
        : { ...job, optimizerInBackward: true },
  },
  {
    technique: "16-bit weights without an fp32 copy",
    cost: "small updates may be rounded away",
    change: "--dtype bf16 --weights 16bit; torch_dtype=torch.bfloat16",
    applied: (job) =>
      job.fp32Weights && job.dtype !== "fp32" ? { ...job, fp32Weights: false } : null,
  },
  {
    technique: "LoRA",
    cost: "trains only a small share of the weights",
    change: "--method lora",
    applied: (job) => (job.method === "full" ? { ...job, method: "lora" } : null),
  },
  {
    technique: "QLoRA, nf4",
    cost: "weights rounded to 4 bits; dequantized in each pass",
    change: "--method qlora --quantize nf4",
    applied: (job) =>
      job.method === "qlora" ? null : { ...job, method: "qlora", quantize: "nf4" },
  },
  {
    technique: "half the batch, twice the accumulation",
    cost: "more and smaller kernels",
    change: "--batch, --accumulation",
    applied: (job) =>
      job.batch > 1
        ? { ...job, batch: Math.ceil(job.batch / 2), accumulation: job.accumulation * 2 }
        : null,
  },
  {
    technique: "twice as many FSDP devices",
    cost: "more communication",
    change: "--fsdp N",
    applied: (job) => {
      const { sharding } = job.parallelism;
      return {
        ...job,
        parallelism: {
          ...job.parallelism,
          sharding: {
            ...sharding,
            kind: sharding.kind === "ddp" ? "fsdp" : sharding.kind,
            devices: sharding.devices * 2,
          },
        },
      };
    },
  },
];

const SERVING: readonly Technique<ServeOptions>[] = [
  {
    technique: "cache in fp8",
    cost: "slightly lower quality in long contexts",
    change: "--kv-dtype fp8; --kv-cache-dtype fp8",
    applied: (job) =>
      job.kvDType === "fp8" || job.kvDType === "int8" ? null : { ...job, kvDType: "fp8" },
  },
  {
    technique: "weights in fp8",
    cost: "faster only on Ada, Hopper and later",
    change: "--quantize fp8; --quantization fp8",
    applied: (job) => (job.quantize === null ? { ...job, quantize: "fp8" } : null),
  },
  {
    technique: "weights in int4 (AWQ, GPTQ)",
    cost: "lower quality; needs a quantized checkpoint",
    change: "--quantize int4",
    applied: (job) =>
      job.quantize === "int4" || job.quantize?.startsWith("nf4") === true
        ? null
        : { ...job, quantize: "int4" },
  },
  {
    technique: "twice the tensor parallelism",
    cost: "communication in each layer",
    change: "--tp N",
    applied: (job) => ({ ...job, tensor: job.tensor * 2 }),
  },
  {
    technique: "no CUDA graphs",
    cost: "slower decoding",
    change: "--no-cuda-graphs; --enforce-eager",
    applied: (job) => (job.cudaGraphs ? { ...job, cudaGraphs: false } : null),
  },
];

/** Largest saving first; techniques that save nothing are left out. */
export function savingsOf(
  model: ModelShape,
  options: PlanOptions,
  now: Bytes,
  measure: Measure,
): PlanSavingJson[] {
  const growing = (job: ServeOptions): ServeOptions => ({ ...job, cacheAsNeeded: true });
  const before = options.mode === "serve" ? measure(model, growing(options)) : now;
  const rows =
    options.mode === "train"
      ? TRAINING.map((each) => ({ ...each, after: each.applied(options) as PlanOptions | null }))
      : SERVING.map((each) => ({
          ...each,
          after: each.applied(growing(options)) as PlanOptions | null,
        }));
  const least = before / 1000;
  return rows
    .flatMap(({ technique, cost, change, after }) => {
      if (after === null) {
        return [];
      }
      const bytes = before - measureOrNothing(model, after, measure, before);
      return bytes > least ? [{ technique, bytes: Math.round(bytes), cost, change }] : [];
    })
    .sort((a, b) => b.bytes - a.bytes);
}

/** A technique that cannot be applied to this model saves nothing. */
function measureOrNothing(
  model: ModelShape,
  options: PlanOptions,
  measure: Measure,
  now: Bytes,
): Bytes {
  const heads = model.towers.flatMap(({ layers }) => layers).map(({ layer }) => layer);
  const tensor = options.mode === "serve" ? options.tensor : options.parallelism.tensor;
  const divides = heads.every(
    (layer) => layer.kind !== "transformer" || (layer.attention?.heads ?? tensor) % tensor === 0,
  );
  return divides ? measure(model, options) : now;
}
