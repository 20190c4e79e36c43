/** The complete options of a plan, from the command line or the page. */
import type { Bytes } from "../../model/base/units.js";
import type { AdapterDetails } from "../blocks/adapter_details.js";
import type { AttentionImplementation, LossImplementation } from "../blocks/rules.js";
import type { Gpu } from "../device/gpus.js";
import type { ModelShape, QuantizedWeights } from "../shape/model_shape.js";
import type { Checkpointing } from "../tape/checkpoints.js";
import type { CacheType } from "./cache_types.js";
import type { OptimizerName } from "./optimizers.js";

export type Method = "full" | "lora" | "qlora";
export const METHODS: readonly Method[] = ["full", "lora", "qlora"];
export const COMPUTE_DTYPES = ["bf16", "fp16", "fp32"] as const;
export type ComputeDType = (typeof COMPUTE_DTYPES)[number];
export const QUANTIZATIONS = ["nf4", "nf4-dq", "int8", "int4", "fp8"] as const;
export type Quantization = (typeof QUANTIZATIONS)[number];

/** Where weights, gradients and states lie. */
export interface Sharding {
  /** `ddp`: copies; `fsdp`: all divided; zero-N: DeepSpeed's stage. */
  readonly kind: "ddp" | "fsdp" | "zero-1" | "zero-2" | "zero-3";
  readonly devices: number;
  readonly offload: "none" | "optimizer" | "all";
  /** Of FSDP: 1 has one flat parameter for each layer, 2 divides each parameter. */
  readonly version: 1 | 2;
  /** Of FSDP: gathered weights stay for the backward pass (SHARD_GRAD_OP, `reshard_after_forward: false`). */
  readonly keepsGathered?: boolean;
  readonly deepSpeed?: DeepSpeedBuffers;
}

/** Elements, by the names of DeepSpeed's configuration; absent ones have its defaults. */
export interface DeepSpeedBuffers {
  readonly reduceBucket?: number;
  /** The Trainer and accelerate set the bucket to the square of the hidden size ("auto"). */
  readonly automaticBucket?: boolean;
  readonly overlaps?: boolean;
  /** `contiguous_gradients`, on by default: gradients are copied to the bucket as they appear. */
  readonly contiguous?: boolean;
  readonly liveParameters?: number;
  readonly subGroup?: number;
}

export const SCHEDULES = ["gpipe", "1f1b", "interleaved"] as const;
export type Schedule = (typeof SCHEDULES)[number];

export interface Parallelism {
  readonly sharding: Sharding;
  readonly tensor: number;
  /** Norms and residuals are divided over the tensor-parallel ranks, too. */
  readonly sequenceParallel: boolean;
  readonly context: number;
  readonly pipeline: number;
  readonly schedule: Schedule;
  /** Pieces of the model on one pipeline rank (interleaved 1F1B). */
  readonly virtualStages: number;
  readonly expert: number;
}

/** The library that trains the model: libraries implement the same layer with more or fewer kernels. */
export const LIBRARIES = ["transformers", "torchtune", "torchtitan", "litgpt"] as const;
export type Library = (typeof LIBRARIES)[number];

export interface TrainOptions {
  readonly mode: "train";
  readonly library: Library;
  readonly method: Method;
  readonly optimizer: OptimizerName;
  /** The optimizer consumes each gradient in the backward pass. */
  readonly optimizerInBackward: boolean;
  readonly batch: number;
  readonly sequence: number;
  readonly accumulation: number;
  readonly checkpointing: Checkpointing;
  /** Saved layer inputs lie in host memory. */
  readonly activationOffload: boolean;
  readonly quantize: Quantization | null;
  readonly dtype: ComputeDType;
  /** Weights in fp32 where products are 16 bit. */
  readonly fp32Weights: boolean;
  readonly attention: AttentionImplementation;
  /** Sequences of a batch have different lengths, so that attention gets a mask. */
  readonly padded: boolean;
  readonly loss: LossImplementation;
  readonly compiled: boolean;
  readonly dropout: boolean;
  readonly adapterRank: number;
  readonly adapterTargets: "attention" | "all" | readonly string[];
  readonly adapterDropout: boolean;
  readonly adapterDetails: AdapterDetails;
  readonly parallelism: Parallelism;
  readonly imbalance: number;
  readonly gpu: Gpu;
  readonly workers: number;
}

export const ENGINES = ["transformers", "vllm", "sglang", "tgi", "llama.cpp"] as const;
export type Engine = (typeof ENGINES)[number];

export interface ServeOptions {
  readonly mode: "serve";
  readonly engine: Engine;
  /** Tokens of one sequence, prompt and answer. */
  readonly context: number;
  readonly concurrency: number;
  readonly quantize: Quantization | null;
  readonly dtype: ComputeDType;
  readonly kvDType: CacheType;
  /** Of values, where it differs from that of keys (llama.cpp). */
  readonly valueDType?: CacheType;
  /** Layers that llama.cpp puts on the device, the output counted as one more; absent: all. */
  readonly gpuLayers?: number;
  /** Share of the device that the engine takes. */
  readonly utilization: number;
  /** Tokens of one forward pass (chunked prefill). */
  readonly batchedTokens: number;
  /** That the engine runs at once: vLLM profiles its sampler with so many (`max_num_seqs`). */
  readonly maxSequences: number;
  readonly cudaGraphs: boolean;
  readonly attention: AttentionImplementation;
  readonly padded: boolean;
  readonly tensor: number;
  readonly pipeline: number;
  readonly expert: number;
  readonly gpu: Gpu;
}

export type PlanOptions = TrainOptions | ServeOptions;

/** Of linear layers that are quantized at loading, scales included. */
export const QUANTIZED_BYTES: Readonly<Record<Quantization, number>> = {
  // 4 bit and an fp32 scale for 64 weights: bitsandbytes without bnb_4bit_use_double_quant.
  nf4: 0.5 + 4 / 64,
  // An int8 scale for 64 weights, an fp32 scale for 256 scales (QLoRA, section 3: double quantization).
  "nf4-dq": 0.5 + 1 / 64 + 4 / (64 * 256),
  // One fp32 scale for each row.
  int8: 1 + 4 / 4096,
  // Groups of 128 with an fp16 scale and a 4-bit zero point (GPTQ, AWQ).
  int4: 0.5 + 2.5 / 128,
  fp8: 1 + 4 / 16384,
};

export function bytesOfCompute(dtype: ComputeDType): 2 | 4 {
  return dtype === "fp32" ? 4 : 2;
}

/**
 * Whether transformers loads the checkpoint in 16 bits instead, to train all of it: `dequantize=True` of
 * FineGrainedFP8Config and Mxfp4Config. GPTQ, AWQ, bitsandbytes, and FP8 of other methods have no such option.
 */
export function canDequantize({ method }: QuantizedWeights): boolean {
  return method === "fp8" || method === "mxfp4";
}

/** transformers converts the tensors of a GGUF file to a type of torch when it loads them. */
export function convertsFile(
  { stored }: ModelShape,
  { mode, engine }: { readonly mode: PlanOptions["mode"]; readonly engine?: Engine | undefined },
): boolean {
  return stored.fileBytes !== undefined && (mode === "train" || engine === "transformers");
}

/** Devices of the whole job. */
export function deviceCount(options: PlanOptions): number {
  if (options.mode === "serve") {
    return options.pipeline * Math.max(options.tensor, options.expert);
  }
  const { sharding, tensor, context, pipeline } = options.parallelism;
  return sharding.devices * tensor * context * pipeline;
}

export type { Bytes };
