/** How each family of decoders differs from Llama. */
import type { AttentionShape } from "./attention_shape.js";
import type { Activation, TransformerLayer } from "./model_shape.js";

/** How a family differs from Llama; absent: as Llama. */
export interface FamilyFacts {
  readonly norm?: "rms" | "rms-plain" | "layer" | "layer-no-bias" | "layer-plain" | "layer-parts";
  readonly placement?: TransformerLayer["placement"];
  readonly parallel?: 1 | 2;
  readonly plainMlp?: true;
  readonly activation?: Activation;
  readonly attentionBias?: true;
  readonly outputBias?: true;
  readonly mlpBias?: true;
  readonly fusedQkv?: true;
  readonly fusedMlp?: true;
  readonly headNorm?: "head" | "row";
  /** Of norms of queries and keys that the configuration turns on (`use_qk_norm`, `qk_layernorm`). */
  readonly optionalNorm?: NonNullable<AttentionShape["headNorm"]>;
  readonly joinsRotation?: true;
  readonly positions?: "learned" | "alibi";
  readonly tied?: true;
  readonly dropout?: true;
  readonly headBias?: true;
  readonly softCap?: true;
  /** Rows that a table of positions has beyond the positions (OPT). */
  readonly extraPositions?: number;
  readonly sinks?: true;
  readonly contiguous?: true;
  readonly narrowSoftmax?: true;
  readonly wideNorm?: true;
  readonly alwaysMasked?: true;
  /** With one head of keys, values are copied out of the fused product. */
  readonly copiesValues?: true;
  readonly wideScores?: true;
  /** Norms of queries and keys have no weights. */
  readonly plainNorm?: true;
  /** Every expert computes all rows. */
  readonly runsAllExperts?: true;
  /** The router computes and weights in fp32. */
  readonly wideRouter?: true;
  /** One expert beside the routed ones, as wide as they are, although no figure names it. */
  readonly oneShared?: true;
  /** A bias of each expert, in the choice of experts or in the router itself. */
  readonly routerBias?: true;
  /** A small attention of its own chooses the tokens that each position sees (DeepSeek 3.2). */
  readonly indexer?: true;
  /** The result of attention is multiplied with a gate. */
  readonly gatedAttention?: true;
  /** A norm of the embeddings, as the layers' own. */
  readonly embeddingNorm?: true;
}

const GPT2: FamilyFacts = {
  norm: "layer",
  plainMlp: true,
  activation: "gelu_python",
  attentionBias: true,
  outputBias: true,
  mlpBias: true,
  fusedQkv: true,
  positions: "learned",
  tied: true,
  dropout: true,
  narrowSoftmax: true,
};

/** Gemma 3n and 4; their layers differ from each other (gemma.ts). */
const GEMMA_4: FamilyFacts = {
  tied: true,
  activation: "gelu",
  placement: "sandwich",
  headNorm: "head",
  wideNorm: true,
};

const FAMILIES: Readonly<Record<string, FamilyFacts>> = {
  llama: {},
  mistral: {},
  mixtral: {},
  qwen2: { attentionBias: true },
  qwen2_moe: { attentionBias: true },
  qwen3: { headNorm: "head" },
  qwen3_moe: { headNorm: "head" },
  qwen2_vl_text: { attentionBias: true },
  qwen2_5_vl_text: { attentionBias: true },
  qwen3_vl_text: { headNorm: "head" },
  qwen3_vl_moe_text: { headNorm: "head" },
  qwen3_next: { headNorm: "head", wideNorm: true, gatedAttention: true },
  qwen3_5_text: { headNorm: "head", wideNorm: true, gatedAttention: true },
  qwen3_5_moe_text: { headNorm: "head", wideNorm: true, gatedAttention: true },
  deepseek_v2: { wideRouter: true },
  deepseek_v3: { wideRouter: true },
  deepseek_v32: { wideRouter: true, indexer: true, alwaysMasked: true },
  glm_moe_dsa: { wideRouter: true, indexer: true, alwaysMasked: true },
  mistral4: {},
  llama4_text: { headNorm: "head", plainNorm: true, runsAllExperts: true, oneShared: true },
  granite: {},
  granitemoe: {},
  granitemoeshared: {},
  granitemoehybrid: {},
  falcon_h1: {},
  bamba: {},
  jamba: {},
  nemotron_h: { norm: "rms", plainMlp: true, activation: "relu2", wideRouter: true },
  helium: { wideNorm: true },
  ernie4_5: {},
  ernie4_5_moe: { wideRouter: true, routerBias: true },
  dots1: { headNorm: "head", wideRouter: true },
  exaone_moe: { headNorm: "head", wideRouter: true },
  hunyuan_v1_dense: { headNorm: "head" },
  hunyuan_v1_moe: { headNorm: "head", wideRouter: true, oneShared: true },
  hy_v3: { headNorm: "head", wideRouter: true },
  minimax_m2: { headNorm: "row", contiguous: true },
  mellum: { headNorm: "head" },
  solar_open: { wideRouter: true },
  lfm2: { norm: "rms", headNorm: "head", tied: true },
  lfm2_moe: { norm: "rms", headNorm: "head", tied: true },
  nanochat: {
    norm: "rms-plain",
    headNorm: "head",
    plainNorm: true,
    plainMlp: true,
    activation: "relu2",
    embeddingNorm: true,
  },
  nemotron: { norm: "layer", plainMlp: true, activation: "relu2" },
  jais2: {
    norm: "layer",
    plainMlp: true,
    activation: "relu2",
    attentionBias: true,
    outputBias: true,
    mlpBias: true,
  },
  cwm: {},
  ministral3: {},
  smollm3: {},
  seed_oss: { attentionBias: true },
  arcee: { plainMlp: true, activation: "relu2" },
  minicpm3: {},
  youtu: {},
  glm4v_text: { fusedMlp: true, attentionBias: true, placement: "sandwich" },
  glm_ocr_text: { fusedMlp: true, placement: "sandwich" },
  glm4v_moe_text: { attentionBias: true, wideRouter: true },
  glm4_moe: { attentionBias: true, wideRouter: true },
  gpt_oss: {
    attentionBias: true,
    outputBias: true,
    mlpBias: true,
    activation: "clamped",
    sinks: true,
    routerBias: true,
  },
  olmo: { norm: "layer-plain" },
  olmo2: { placement: "after", headNorm: "row", wideNorm: true },
  olmo3: { placement: "after", headNorm: "row", wideNorm: true },
  exaone4: { placement: "after", headNorm: "head" },
  flex_olmo: { placement: "after", headNorm: "row", wideNorm: true },
  olmoe: { headNorm: "row" },
  phi3: { fusedQkv: true, fusedMlp: true, contiguous: true },
  phimoe: { norm: "layer" },
  glm: { fusedMlp: true, attentionBias: true },
  glm4: { fusedMlp: true, attentionBias: true, placement: "sandwich" },
  gemma: { tied: true, activation: "gelu", wideNorm: true },
  gemma2: {
    tied: true,
    activation: "gelu",
    placement: "sandwich",
    softCap: true,
    wideNorm: true,
  },
  gemma3_text: {
    tied: true,
    activation: "gelu",
    placement: "sandwich",
    headNorm: "head",
    wideNorm: true,
  },
  gemma3n_text: GEMMA_4,
  gemma4_text: GEMMA_4,
  vaultgemma: { tied: true, activation: "gelu", softCap: true, wideNorm: true },
  cohere2: { norm: "layer-parts", parallel: 1, tied: true },
  cohere2_moe: { norm: "layer-parts", parallel: 1, tied: true },
  cohere: {
    norm: "layer-parts",
    parallel: 1,
    tied: true,
    optionalNorm: { kind: "layer-parts", bias: false, perHead: true },
  },
  stablelm: {
    norm: "layer",
    parallel: 1,
    joinsRotation: true,
    optionalNorm: { kind: "layer", bias: false, perHead: true },
  },
  starcoder2: {
    tied: true,
    norm: "layer",
    plainMlp: true,
    activation: "gelu",
    attentionBias: true,
    outputBias: true,
    mlpBias: true,
  },
  phi: {
    norm: "layer",
    parallel: 1,
    joinsRotation: true,
    optionalNorm: { kind: "layer", bias: true, perHead: false },
    plainMlp: true,
    activation: "gelu_python",
    attentionBias: true,
    outputBias: true,
    mlpBias: true,
    headBias: true,
  },
  gpt2: GPT2,
  gpt_bigcode: { ...GPT2, activation: "gelu" },
  gpt_neox: {
    ...omit(GPT2, "positions", "tied", "dropout", "narrowSoftmax"),
    activation: "gelu",
    parallel: 2,
    joinsRotation: true,
  },
  gptj: {
    ...omit(
      GPT2,
      "positions",
      "tied",
      "fusedQkv",
      "attentionBias",
      "outputBias",
      "dropout",
      "narrowSoftmax",
    ),
    parallel: 1,
    headBias: true,
    wideScores: true,
  },
  opt: { ...omit(GPT2, "fusedQkv", "narrowSoftmax"), activation: "relu", extraPositions: 2 },
  // Its GELU is an autograd function that keeps its input alone (modeling_bloom.py, GeLUFunction).
  bloom: {
    ...omit(GPT2, "dropout", "narrowSoftmax"),
    activation: "gelu",
    positions: "alibi",
    embeddingNorm: true,
  },
  falcon: {
    narrowSoftmax: true,
    alwaysMasked: true,
    copiesValues: true,
    norm: "layer",
    parallel: 1,
    plainMlp: true,
    activation: "gelu",
    fusedQkv: true,
    tied: true,
  },
  mpt: {
    norm: "layer-no-bias",
    plainMlp: true,
    activation: "gelu",
    fusedQkv: true,
    positions: "alibi",
    tied: true,
  },
};

/** null: the family has no reader. */
export function factsOf(family: string): FamilyFacts | null {
  return Object.hasOwn(FAMILIES, family) ? (FAMILIES[family] ?? null) : null;
}

function omit<Facts extends object, Key extends keyof Facts>(
  facts: Facts,
  ...keys: Key[]
): Omit<Facts, Key> {
  const rest = { ...facts };
  for (const key of keys) {
    delete rest[key];
  }
  return rest;
}
