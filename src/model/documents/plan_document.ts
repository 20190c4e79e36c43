/** The document of `tidemark plan`. All bytes are of one device unless a field says otherwise. */
import type { Bytes } from "../base/units.js";

/** A figure, and the interval that should contain a measurement. */
export interface PlanFigureJson {
  bytes: Bytes;
  low: Bytes;
  high: Bytes;
}

export type PlanPartName =
  | "weights"
  | "adapters"
  | "gradients"
  | "optimizer"
  | "activations"
  | "head and loss"
  | "temporaries"
  | "communication"
  | "nccl"
  | "workspace"
  | "kv cache"
  | "unused kv cache"
  | "fragmentation"
  | "cuda graphs"
  | "cuda context";

export interface PlanPartJson {
  part: PlanPartName;
  bytes: Bytes;
  low: Bytes;
  high: Bytes;
  /** With the numbers of this plan: "32 layers x 4,096 tokens x ...". */
  formula: string;
  /** The source of the formula. */
  source: string;
  /**
   * allocated: by tensors, as torch.cuda.max_memory_allocated counts. reserved: held by the caching allocator
   * in addition. device: outside the allocator; nvidia-smi shows it.
   */
  where: "allocated" | "reserved" | "device";
}

export interface PlanSavingJson {
  technique: string;
  /** Reduction of `perDeviceBytes`. */
  bytes: Bytes;
  /** Of engines that give their cache all that is left: tokens, and sequences of the plan's context, that it gains. */
  addedTokens?: number;
  addedSequences?: number;
  /** In time or quality. */
  cost: string;
  /** The options that plan it: added to the command line, they give exactly this figure. */
  change: string;
  /** The line to change in the program; "" if there is none. */
  program: string;
}

export interface PlanFitJson {
  device: string;
  deviceBytes: Bytes;
  method: string;
  fits: boolean;
  /** Sequences on one device at the plan's length; 0: not one. Of serving: concurrent sequences. */
  maxBatch: number;
  /** Longest sequence at the plan's batch; 0: none fits, or the model reads no text. */
  maxSequence: number;
}

export interface PlanComparisonJson {
  /** The snapshot or log from which the figure is. */
  file: string;
  /**
   * Which figures are compared: `allocated` or `reserved` as torch.cuda counts them, `device` as the device shows them;
   * of vLLM's log the part of `parts` ("KV cache").
   */
  kind: string;
  parts: { part: string; plannedBytes: Bytes; measuredBytes: Bytes; differenceBytes: Bytes }[];
  plannedBytes: Bytes;
  measuredBytes: Bytes;
  /** Of the measurement: 0.05 is 5 % more planned than measured. */
  error: number;
  within: boolean;
  /** What explains the largest deviation. */
  explanation: string;
}

/** Groups of layers that take blocks from one pool. */
export interface PlanBlocksJson {
  /** Tokens of a block; 0: of states alone. */
  tokens: number;
  /** One block in all layers of a group. */
  bytes: Bytes;
  /** Tokens of a pass, which layers with a window hold beside it. */
  batchedTokens: number;
  /** Layers with a window, positions that they read from an encoder, or a state; otherwise they keep all tokens. */
  groups: { count: number; window?: number; source?: number; state?: boolean }[];
}

/** `tidemark.plan/1` */
export interface PlanJson {
  schema: "tidemark.plan/1";
  model: {
    name: string;
    family: string;
    /** False: its type has no reader; sizes come from the configuration alone, and intervals are wider. */
    known: boolean;
    parameters: number;
    /** Parameters that each token uses; fewer than `parameters` in a mixture of experts. */
    activeParameters: number;
    trainableParameters: number;
    /** Of all towers. */
    layers: number;
    /** Of a model with several: an encoder and a decoder, or images and text. */
    towers?: { name: string; layers: number }[];
    hidden: number;
    heads: number;
    kvHeads: number;
    vocabulary: number;
    longestSequence: number;
    /** False: images or latents of a fixed size, so that a batch counts them and there is no longest sequence. */
    readsText: boolean;
    /** Of one token in all layers, before any division. */
    kvBytesPerToken: Bytes;
  };
  mode: "train" | "serve";
  /** Assumptions in addition to the command line. */
  assumptions: string[];
  devices: {
    count: number;
    name: string;
    memoryBytes: Bytes;
    /** The rank that needs most, if ranks differ; otherwise "". */
    worstRank: string;
  };
  /** They add up to perDeviceBytes. */
  parts: PlanPartJson[];
  /** What a saved-tensor hook would count at the end of the forward pass, by kind of layer. */
  savedActivations: { part: string; bytes: Bytes }[];
  /** The moment of the peak: "backward pass of decoder.31". */
  peak: string;
  totalBytes: Bytes;
  /** What nvidia-smi shows for the process; `low` and `high` are its interval. */
  perDeviceBytes: Bytes;
  low: Bytes;
  high: Bytes;
  memory: {
    /** torch.cuda.max_memory_allocated */
    allocated: PlanFigureJson;
    /** torch.cuda.max_memory_reserved */
    reserved: PlanFigureJson;
    /** nvidia-smi, of this process. */
    device: PlanFigureJson;
  };
  host: { part: string; bytes: Bytes; formula: string }[];
  savings: PlanSavingJson[];
  fits: {
    deviceBytes: Bytes;
    fits: boolean;
    maxBatch: number;
    maxSequence: number;
    /** Of a server whose cache is too small although its weights fit on the device: what is left for it, and what it must hold. */
    reason?: string;
    /** Sizes that fit although smaller ones above the most do not. */
    beyond?: string;
  };
  /** With `--fit`: methods and devices. */
  fitTable?: PlanFitJson[];
  /** Of serving. */
  serving?: {
    engine: string;
    /** In all layers, also those with a window. */
    kvBytesPerToken: Bytes;
    /** Layers with an attention window: how many tokens they keep, and the bytes of one, which `kvBytesPerToken` includes. */
    windows?: { tokens: number; bytesPerToken: Bytes }[];
    /** Cache of each sequence at any length: states of state-space layers, keys and values of an encoder. */
    bytesPerSequence?: Bytes;
    /**
     * Tokens for which there is room. Of an engine that gives its cache all that is left: if each layer kept each token, as
     * vLLM's log counts them. Of others: those of the most sequences of this context, or of the longest one.
     */
    kvTokens: number;
    maxConcurrency: number;
    longestContext: number;
    utilization: number;
    /** How vLLM groups its layers. */
    blocks?: PlanBlocksJson;
    /** "Maximum concurrency" of vLLM's log, for requests of this context. */
    logConcurrency?: number;
  };
  comparison?: PlanComparisonJson;
  limits: string[];
}
