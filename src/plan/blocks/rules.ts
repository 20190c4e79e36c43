/** How a job runs a model: what every block needs to determine which tensors it makes and saves. */

import type { QuantizedWeights } from "../shape/model_shape.js";
import type { AdapterDetails } from "./adapter_details.js";

export type AttentionImplementation = "eager" | "sdpa" | "flash";
export type LossImplementation = "full" | "chunked" | "fused";

export interface AdapterRules {
  readonly rank: number;
  /** Which matrices get an adapter: those of attention, all linear layers, or named ones (`q_proj`). */
  readonly targets: "attention" | "all" | readonly string[];
  /** Of the model: it decides what the targets' names mean. */
  readonly family: string;
  readonly itemBytes: number;
  readonly dropout: boolean;
  readonly details: AdapterDetails;
  /**
   * Each adapter casts its input to its own type, and autocast to the compute type: it keeps a copy of its own where
   * others share one (peft.tuners.lora.layer, `_cast_input_dtype`).
   */
  readonly copiesInput: boolean;
}

export interface ExpertDivision {
  /** Devices over which the experts are divided; 1: no expert parallelism. */
  readonly devices: number;
  /** Devices that share each matrix of an expert. */
  readonly tensor: number;
  /** Of `devices`, those that have tokens of their own: copies of the rest of the model. */
  readonly copies: number;
}

/**
 * Parts that tensor parallelism does not divide as usual: `whole` on each device, or matrices divided and results gathered.
 * `tower`: all towers but the last one.
 */
export type Undivided = Readonly<
  Partial<
    Record<"attention" | "state space" | "MLP" | "shared experts" | "tower", "whole" | "gathered">
  >
>;

export interface BlockRules {
  readonly training: boolean;
  /** Sequences on one device, and their length there (context parallelism shortens it). */
  readonly batch: number;
  readonly sequence: number;
  /** Positions that attention reads: `sequence`, or more if it is divided or cached. */
  readonly context: number;
  /** Of activations that matrix products make. */
  readonly computeBytes: 2 | 4;
  /** Of parameters that are not quantized, as operations read them. */
  readonly weightBytes: 2 | 4;
  /** torch.autocast: products in the compute type copy an input or weight that is wider, norms compute in fp32. */
  readonly autocast: boolean;
  readonly quantization: QuantizedWeights | null;
  readonly trainBase: boolean;
  readonly adapter: AdapterRules | null;
  /** The embedding's output needs a gradient although nothing before it is trained (enable_input_require_grads). */
  readonly inputNeedsGradient: boolean;
  readonly attention: AttentionImplementation;
  /**
   * Which layers of `sdpa` get a mask of scores: all of a padded batch, those with a window, or none (FlashAttention has
   * lengths and windows as parameters).
   */
  readonly masks: "all" | "windows" | "none";
  /** torch's kernels for the CPU: others are fused, and others keep more (attention_kernels.ts). */
  readonly onCpu: boolean;
  /** Fused kernels read groups of keys: FlashAttention, which needs 16 bit and an Ampere device. */
  readonly fusesGroups: boolean;
  /** Key and value tensors of causal layers stay, as copies (generation). */
  readonly cachesKeys: boolean;
  /** Keys and values are repeated for each head of their group even without a mask (libraries that call repeat_kv). */
  readonly repeatsGroups: boolean;
  /** Rows of a prefill that get logits: the last one of each sequence, or all. */
  readonly headRows: "last" | "all";
  /** Variables of the model's forward pass hold the embeddings and the masks until it ends. */
  readonly holdsInputs: boolean;
  readonly loss: LossImplementation;
  readonly compiled: boolean;
  /** The loss is part of what is compiled; layers that are compiled one by one leave it out (FSDP). */
  readonly lossCompiled: boolean;
  /** One kernel for each GELU, whatever the configuration names. */
  readonly fusedGelu: boolean;
  /** Queries, keys and values come from one matrix in every model. */
  readonly fusedProjection: boolean;
  /** Rows of one chunk of a chunked loss; null: an eighth of all rows. */
  readonly lossChunkRows: number | null;
  /** Which logits a variable of the training loop holds until the step ends: as the head made them, or in fp32. */
  readonly holdsLogits: "made" | "fp32" | "none";
  /** Products with quantized matrices keep their input for the backward pass (bitsandbytes before 0.42). */
  readonly quantizedKeepsInput: boolean;
  /** False: layers of p = 0, as an evaluation and most language models have them. */
  readonly dropout: boolean;
  /** Layers cast their inputs to the compute type (FSDP's mixed precision). */
  readonly castsInputs: boolean;
  /** Frozen parameters share a flat one with adapters, so that autograd takes them for trained ones (FSDP, version 1). */
  readonly flatGradients: boolean;
  readonly tensorParallel: number;
  /** Absent: it divides all parts. */
  readonly undivided?: Undivided;
  /** Devices that have a share of each matrix, whose results are gathered; absent: 1. */
  readonly gathered?: number;
  /** With tensor parallelism, each rank gathers the logits of all. */
  readonly gathersLogits: boolean;
  /** With tensor parallelism, each rank has the whole tables of tokens and positions. */
  readonly wholeTables: boolean;
  /** Norms and residuals have a share of the tokens on each tensor-parallel rank. */
  readonly sequenceParallel: boolean;
  readonly experts: ExpertDivision;
  /** Devices on which the same tokens are routed, each to its own experts: each gets its share of the rows. */
  readonly routedOver: number;
  /** One kernel runs all experts of a layer, with workspaces of its own: vLLM, SGLang, TGI. */
  readonly fusedExperts?: true;
  /** Tokens of the busiest rank's experts, as a multiple of the mean. */
  readonly imbalance: number;
}
