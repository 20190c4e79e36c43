/**
 * A model's layers as its configuration describes them, without any library's names. Every reader of a configuration
 * returns this, and every computation of memory starts from it.
 *
 * A model is a list of towers (a decoder; an encoder and a decoder; an image encoder and a text model). A tower is a
 * list of layers in their order, run length encoded.
 */

import type { AttentionShape } from "./attention_shape.js";
import type { KeptModules } from "./kept_modules.js";

/** `clamped`: the gate of gpt-oss, x * sigmoid(1.702 x) of clamped values, times the other half plus 1. */
export type Activation =
  | "silu"
  | "gelu"
  | "gelu_python"
  | "quick_gelu"
  | "relu"
  | "relu2"
  | "clamped";

export interface MlpShape {
  readonly width: number;
  /** Two parallel matrices, one through the activation (SwiGLU, GeGLU). */
  readonly gated: boolean;
  readonly activation: Activation;
  readonly bias: boolean;
  /** Both parallel matrices as one (Phi-3, GLM). */
  readonly fused: boolean;
  /** Between the activation and the second matrix (Wav2Vec2). */
  readonly dropout?: boolean;
  /** Before the activation, all rows but the largest of each token become 0 (Gemma 3n). */
  readonly sparse?: true;
}

export interface MoeShape {
  readonly experts: number;
  readonly perToken: number;
  readonly expert: MlpShape;
  /** Runs for every token beside the routed experts. */
  readonly shared: MlpShape | null;
  /** A gate before the shared expert (Qwen 2 MoE). */
  readonly sharedGate: boolean;
  readonly routerBias: boolean;
  /** The router computes in fp32, and what the experts made is weighted in fp32 (DeepSeek). */
  readonly wideRouter?: boolean;
  /** Every expert computes the rows of all tokens, which the router's weights have multiplied (Llama 4). */
  readonly runsAll?: true;
  /** The shared expert and the routed ones have norms of their own, and the latter read the layer's rows (Gemma 4). */
  readonly apart?: true;
  /** Width of the rows that experts read, between two matrices of the layer (Nemotron-H). */
  readonly latent?: number;
}

/**
 * A layer with a state of fixed size: Mamba 1 or 2; a gated delta rule (Qwen3-Next), whose `inner` is the width of all
 * values, `state` that of a key, and `groups` the heads of keys; or a short convolution between two gates (LFM2), which has
 * no state.
 */
export interface StateSpaceShape {
  readonly version: 1 | 2 | "delta" | "convolution";
  readonly inner: number;
  readonly state: number;
  readonly convolution: number;
  /** Rank of the time step (version 1). */
  readonly timeRank: number;
  readonly heads: number;
  readonly groups: number;
  /** Positions that are computed at once (version 2). */
  readonly chunk: number;
  readonly convolutionBias: boolean;
  readonly bias: boolean;
  /** The scan's output is multiplied with the gate, without a norm (Falcon-H1; version 2). */
  readonly plainGate?: true;
  /** `mamba_ssm_dtype` of the configuration has 16 bits. */
  readonly narrowState?: boolean;
  /** The same has 32 bits, which vLLM reads for Qwen 3.5. */
  readonly wideState?: boolean;
  /** One matrix for all rows but the two figures of each head, in the order of the heads of keys (Qwen3-Next). */
  readonly byKeyHead?: true;
}

export interface NormShape {
  /** `layer-parts`: a layer norm that is not torch's, but one kernel for each operation, in fp32 (Cohere). */
  readonly kind: "rms" | "layer" | "layer-parts";
  readonly bias: boolean;
  /** The factor multiplies the input itself, which is kept beside its fp32 copy (diffusers). */
  readonly keepsInput?: boolean;
  /** The factor of a row is a power of its mean square, and both are kept (Gemma 3n, Gemma 4). */
  readonly byPower?: true;
  /** Multiplied with the weights before it is converted back from fp32 (Gemma). */
  readonly wide?: boolean;
  /** False: without weights (OLMo 1, DiT). */
  readonly affine: boolean;
  /** Heads that have weights of their own; absent: one set of weights. */
  readonly heads?: number;
}

export interface TransformerLayer {
  readonly kind: "transformer";
  readonly norm: NormShape;
  /** `sandwich`: before and after each part (Gemma 2 and 3). `after`: the part's output alone (OLMo 2). */
  readonly placement: "before" | "after-residual" | "sandwich" | "after";
  /** Attention and MLP read the same input, of `parallelNorms` norms. */
  readonly parallel: boolean;
  readonly parallelNorms: 1 | 2;
  /** Attention reads the rows as they are, because they were normalized (the first layer of ModernBERT). */
  readonly readsNormed?: true;
  readonly attention: AttentionShape | null;
  /** Reads what attention reads, and is added to its result (Falcon-H1). */
  readonly beside?: StateSpaceShape;
  /** Attention to another tower's output (T5, Whisper). */
  readonly cross: AttentionShape | null;
  readonly mlp: MlpShape | MoeShape | null;
  /** Probability is irrelevant: a mask exists or not. */
  readonly dropout: boolean;
  /** The scores have a dropout of their own. */
  readonly attentionDropout: boolean;
  /** Scale vectors (LayerScale; ViT of DINO), of which each has `hidden` elements. */
  readonly scales: number;
  /** Shift, scale and gate computed from a condition (DiT): outputs of width `hidden` per layer. */
  readonly modulation: number;
  /** Width of rows of its own that the embedding makes for each layer, which gate a part at its end (Gemma 3n, Gemma 4). */
  readonly inputWidth?: number;
  /** Alternating updates (Baykal et al. 2023): streams of rows, of which the layer computes one (Gemma 3n). */
  readonly streams?: { readonly count: number; readonly lowRank: number };
}

export interface StateSpaceLayer {
  readonly kind: "state-space";
  readonly norm: NormShape;
  readonly mixer: StateSpaceShape;
}

/** Convolutions of a residual network or a UNet: their sizes do not follow from `hidden`. */
export interface ConvolutionLayer {
  readonly kind: "convolution";
  readonly name: string;
  readonly inputChannels: number;
  readonly outputChannels: number;
  /** Of the output, in elements along one side. */
  readonly outputSide: number;
  readonly inputSide: number;
  readonly block:
    | "resnet-bottleneck"
    | "resnet-basic"
    | "unet"
    | "resample"
    | "upsample"
    | "unet-output"
    | "stem";
  /** Of the time step's embedding (UNet). */
  readonly conditionSize: number;
}

/** The transformer inside a UNet level, or one attention over its positions. */
export interface UnetAttentionLayer {
  readonly kind: "unet-attention";
  readonly channels: number;
  readonly side: number;
  readonly heads: number;
  readonly depth: number;
  /** Width of the text's rows; 0: no text, and attention alone (UNet2DModel). */
  readonly contextSize: number;
}

/** A layer over patches of an image beside rows of a prompt (PixArt, SD3, Flux). */
export interface PatchLayer {
  readonly kind: "patches";
  /**
   * `prompt`: patches attend to a prompt that stays as it is. `double`: both attend to each other, with matrices of their
   * own; `last`: the same, without results for the prompt. `single`: both as one stream.
   */
  readonly streams: "prompt" | "double" | "last" | "single";
  readonly attention: AttentionShape;
  /** A second attention of the patches to themselves (SD 3.5). */
  readonly dual: boolean;
}

/**
 * A layer of an image model whose rows become fewer and wider from stage to stage (Swin, ConvNeXt): `side` rows along each
 * side, `hidden` elements in each.
 *
 * `patches`: a convolution of the image, and a norm. `windows`: a transformer's layer, whose attention sees the rows of one
 * window. `merging`: 2 x 2 rows as one, a norm and a matrix. `depthwise`: a convolution of each channel, then an MLP.
 * `reduction`: a norm and a convolution of 2 x 2 rows. `pool`: the mean of all rows.
 */
export interface StageLayer {
  readonly kind: "stage";
  readonly block: "patches" | "windows" | "merging" | "depthwise" | "reduction" | "pool";
  readonly side: number;
  readonly hidden: number;
  /** Side and width of the rows that it reads. */
  readonly inputSide: number;
  readonly inputHidden: number;
  /** Of `windows`, whose learned distances have a table of `tableRows`; of `depthwise`, the MLP and the scale alone. */
  readonly layer?: TransformerLayer;
  readonly window?: number;
  readonly tableRows?: number;
  /** The MLP's activations are normalized by their size in the whole image (ConvNeXt V2). */
  readonly responseNorm?: true;
}

/**
 * A layer of a speech encoder before its transformer (Wav2Vec2, HuBERT). `convolution`: of samples or frames, with a stride,
 * a norm and an activation. `projection`: a norm and a matrix. `positions`: a convolution in groups, whose weights are
 * normalized, that is added to its input.
 */
export interface FramesLayer {
  readonly kind: "frames";
  readonly block: "convolution" | "projection" | "positions";
  readonly inputs: number;
  readonly outputs: number;
  readonly kernel: number;
  readonly stride: number;
  readonly groups: number;
  readonly bias: boolean;
  /** `channels`: of each channel over all frames. */
  readonly norm: "none" | "channels" | "rows";
  /** Of the first layer: samples between two frames of the last one, and samples of one of these. */
  readonly samples?: { readonly step: number; readonly first: number };
}

/** A layer of a model without a reader: its matrices, and how many elements its other tensors have. */
export interface TensorLayer {
  readonly kind: "tensors";
  readonly matrices: readonly {
    readonly name: string;
    readonly inputs: number;
    readonly outputs: number;
  }[];
  readonly otherParameters: number;
}

export type LayerShape =
  | TransformerLayer
  | StateSpaceLayer
  | ConvolutionLayer
  | UnetAttentionLayer
  | PatchLayer
  | StageLayer
  | FramesLayer
  | TensorLayer;

export interface LayerRun {
  readonly count: number;
  readonly layer: LayerShape;
  /** Belongs to the layer before it (or the first one), as the configuration counts them: the MLP after a state space. */
  readonly isPart?: true;
}

/** Rows of learned vectors, or a projection of patches, before the first layer. */
export interface EmbeddingShape {
  readonly name: string;
  readonly rows: number;
  readonly width: number;
  /** Another tower's table: no parameters of its own. */
  readonly shared?: boolean;
}

export interface TowerShape {
  readonly name: string;
  readonly hidden: number;
  /** Positions: the sequence of the job, or a number that the model fixes (patches of an image, frames of audio). */
  readonly positions: "sequence" | number;
  readonly embeddings: readonly EmbeddingShape[];
  /** Norm of the embeddings (BERT, BLOOM). */
  readonly embeddingNorm: NormShape | null;
  /** A matrix from the embeddings' width to that of the layers, where they differ (ELECTRA, OPT 350m). */
  readonly embeddingProjection?: { readonly bias: boolean };
  readonly embeddingDropout: boolean;
  /** Convolution before the first layer (patches, audio), as a matrix: input size and outputs. */
  readonly stems: readonly {
    readonly name: string;
    readonly input: number;
    readonly output: number;
    readonly bias: boolean;
    /** Of each sample, where the tower also has many others. */
    readonly rows?: number;
  }[];
  readonly layers: readonly LayerRun[];
  readonly finalNorm: NormShape | null;
  /** Inputs and results of its matrices are clamped to ranges of the checkpoint (Gemma 4's images). */
  readonly clipsLinears?: true;
  /** A table of tokens whose rows have a share for each layer, and a matrix that adds to them (Gemma 3n, Gemma 4). */
  readonly layerInputs?: { readonly rows: number; readonly width: number };
  /** Parameters that no layer describes (projections, poolers); small. */
  readonly otherParameters: number;
  /** Weights that no operation of a planned step reads, so that they have no gradients. */
  readonly idleParameters?: number;
  /** Elements that these keep for the backward pass, of each sample. */
  readonly otherSaved?: number;
  /** Of these, biases. */
  readonly otherBiases?: number;
  /** Elements that lie with the weights without being parameters (SD3's table of positions). */
  readonly buffer?: number;
  /** An encoded prompt, of which one matrix (`linear`) or two make rows of the layers' width. */
  readonly prompt?: {
    readonly positions: number;
    readonly width: number;
    readonly projection: "linear" | "mlp";
  };
}

export interface HeadShape {
  /**
   * `language`: logits of each position; `class`: of each sample; `patches`: a modulated norm and a matrix, for regression
   * on each position (DiT); `pairs`: similarities of one row of each sample (CLIP); `none`: regression on the output itself.
   */
  readonly kind: "language" | "class" | "patches" | "pairs" | "none";
  readonly outputs: number;
  /** Of `class`: rows of each sample that have a class, copied out of all others (YOLOS). */
  readonly objects?: number;
  /** Shares the matrix of the token embedding. */
  readonly tied: boolean;
  readonly bias: boolean;
  /** The class computes its loss in the type of the logits, not in fp32 (BERT, T5, BART). */
  readonly narrowLoss?: boolean;
  /** Dense layer, activation and norm before the logits (BERT). */
  readonly transform: boolean;
  /** Of `patches`: the factors are a table, and no matrix computes them (PixArt). */
  readonly table?: boolean;
  /** False: neither that dense layer nor its norm has a bias (ModernBERT). */
  readonly transformBias?: boolean;
  /** Outputs of that dense layer where they differ from its inputs (ELECTRA). */
  readonly transformWidth?: number;
  /** Logits pass through tanh (Gemma 2). */
  readonly softCap: boolean;
}

export type DType = "fp32" | "bf16" | "fp16" | "fp8" | "int8" | "int4" | "nf4";

export interface QuantizedWeights {
  /** `quant_method` of the checkpoint. */
  readonly method?: string;
  readonly dtype: DType;
  /** Scales and zero points included. */
  readonly bytesPerWeight: number;
  /** Codebooks of each matrix, however large it is. */
  readonly bytesPerMatrix?: number;
  /** Nothing but the matrices of experts (mxfp4 of gpt-oss). */
  readonly expertsAlone?: boolean;
  /** All but the matrices of experts, which bitsandbytes leaves as they are. */
  readonly keepsExperts?: boolean;
  /** Modules that are not quantized. */
  readonly kept?: KeptModules;
  /** transformers' Trainer refuses adapters beside it, with this configuration of its method. */
  readonly untrained?: boolean;
}

/** How the checkpoint stores the weights of its linear layers. */
export interface StoredWeights {
  /** Of everything that is not quantized; null if the configuration does not specify it. */
  readonly dtype: "fp32" | "bf16" | "fp16" | null;
  readonly quantization: QuantizedWeights | null;
  /** `quant_method` whose sizes the plan does not read: weights count in 16 bits. */
  readonly unread?: string;
  /** Of a GGUF file: bytes of all its tensors, in their own types. Only inference engines use them as they are. */
  readonly fileBytes?: number;
  readonly fileParts?: FileParts;
}

/** Bytes of a GGUF file that llama.cpp can leave in host memory. */
export interface FileParts {
  /** The table of tokens, which stays there. */
  readonly embeddingBytes: number;
  readonly layerBytes: readonly number[];
  /** Of latent attention: whether the matrices are there with which it is computed on compressed rows (`attn_k_b`). */
  readonly hasLatentRows: boolean;
}

/** One tensor of a safetensors or GGUF header. */
export interface TensorHeader {
  readonly name: string;
  readonly elements: number;
  readonly bytes: number;
}

export interface ModelShape {
  /** `model_type` of the configuration. */
  readonly family: string;
  readonly name: string;
  /** False: nothing but tensors is known, or the family has no reader; intervals are wider. */
  readonly known: boolean;
  readonly towers: readonly TowerShape[];
  readonly head: HeadShape;
  readonly stored: StoredWeights;
  /** Longest sequence the model was made for; 0: not known. */
  readonly longestSequence: number;
  /** By `model_max_length`, which some engines read instead (Command-R). */
  readonly declaredLongest?: number;
  /** Of its weight files; absent if there are none. */
  readonly weightFiles?: { readonly parameters: number; readonly bytes: number };
  /** Sentences about what was assumed. */
  readonly remarks: readonly string[];
}
