/** How attention is computed: the part of a layer's shape with most variants. */

/** How attention is computed from the layer's input. */
export interface AttentionShape {
  readonly heads: number;
  readonly kvHeads: number;
  readonly headSize: number;
  /** Size of a head of the values where it differs (MLA). */
  readonly valueHeadSize?: number;
  readonly bias: boolean;
  readonly outputBias: boolean;
  /** Where it differs from that of queries and values (Whisper). */
  readonly keyBias?: boolean;
  /** A learned score of each head beside those of the keys (gpt-oss): no fused kernel of torch has it. */
  readonly sinks?: boolean;
  /** Scores are normalized in the compute type, not in fp32 (T5, BERT, GPT-2); autocast takes fp32 all the same. */
  readonly narrowSoftmax?: boolean;
  /** Queries and keys are multiplied in fp32, in the class's own code alone (GPT-J). */
  readonly wideScores?: boolean;
  /** Queries are copied into the kernel's own layout (Phi-3, Whisper), so that the output matrix needs a copy, too. */
  readonly contiguous?: boolean;
  /** Values are copied out of the fused product (Falcon with one head of keys). */
  readonly copiesValues?: boolean;
  /** Keys and values are copied for each head of their group before the kernel (Falcon's new architecture). */
  readonly expandsGroups?: boolean;
  /** The model gives its kernel a mask of scores for each layer, even if nothing is padded (Falcon). */
  readonly alwaysMasked?: boolean;
  /** The model gives `sdpa` a mask of zeros for each head (T5 where it reads its encoder). */
  readonly headMask?: boolean;
  /** One matrix for queries, keys and values (GPT-2, NeoX, Falcon, Phi-3): their slices keep the whole product alive. */
  readonly fused: boolean;
  readonly rotary: boolean;
  /** Share of the head that is rotated (Phi, NeoX). */
  readonly rotaryShare: number;
  /** Norms of the queries and the keys: of each head (Qwen 3, Gemma 3), of the whole row (OLMo 2), or none. */
  readonly queryKeyNorm: "none" | "head" | "row";
  /** Norms of queries and keys that are no RMS norms. `perHead`: each head has weights of its own. */
  readonly headNorm?: {
    readonly kind: "layer" | "layer-parts";
    readonly bias: boolean;
    readonly perHead: boolean;
  };
  /** The rotated part of a head and the rest are joined, even if there is no rest (NeoX, Phi, StableLM). */
  readonly joinsRotation?: true;
  /** A matrix of the queries' size makes a gate of the result (Qwen3-Next). */
  readonly gated?: boolean;
  /** The library has no eager implementation: sdpa runs whatever is asked for (DiT, SD3 and Flux of diffusers). */
  readonly alwaysFused?: boolean;
  /** How norms of queries and keys are computed: one kernel (torch.nn.RMSNorm), or parts that keep the input, too. */
  readonly normKernel?: "torch" | "diffusers";
  /** Norms of queries and keys have no weights (Llama 4, NanoChat). */
  readonly plainNorm?: boolean;
  /** Values have a norm without weights (Gemma 3n, Gemma 4). */
  readonly valueNorm?: true;
  /** Values are the product that makes the keys, before its norm (Gemma 4). */
  readonly keysAsValues?: true;
  /**
   * `shared`: keys and values are those of the last layer before it with the same window that is `stored`; neither matrices
   * nor a cache of its own (Gemma 3n, Gemma 4).
   */
  readonly keys?: "stored" | "shared";
  /** Norms of queries and keys are multiplied in fp32, as the layer's own (Gemma 3, OLMo 2). */
  readonly wideNorm?: boolean;
  /** Tokens that a position can see; 0: all before it. */
  readonly window: number;
  /** Rows that see only each other, with a product of their own, and whose results are joined (windows of Qwen's images). */
  readonly blockRows?: number;
  /** The rows of all samples of a batch are one sequence, with a mask between them (Pixtral). */
  readonly joinsBatch?: true;
  /** Scores pass through tanh (Gemma 2): FlashAttention does so itself, and sdpa of transformers leaves it out. */
  readonly softCap: boolean;
  /**
   * Learned or fixed additive bias of the scores (T5, ALiBi): needs a mask of scores. `gated`: one bias for all layers, times
   * a gate that each row computes from itself (WavLM, which has no fused kernel).
   */
  readonly scoreBias: "none" | "relative" | "alibi" | "gated";
  /** On a GPU, sdpa runs one kernel with the learned bias as its mask, even while the bias is trained (measured for Swin). */
  readonly fusesBias?: true;
  /** Rows of learned distances that give keys and queries of their own (DeBERTa), repeated for each sequence. */
  readonly relativeRows?: number;
  /** Sees later tokens, too. */
  readonly bidirectional: boolean;
  /** Multi-head latent attention (DeepSeek): ranks of the compressed queries (0: not compressed) and keys and values. */
  readonly latent?: {
    readonly queryRank: number;
    readonly kvRank: number;
    readonly rotarySize: number;
  };
}
