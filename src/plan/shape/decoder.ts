/** Decoders: Llama and its relatives, and the families that differ from it in more than sizes. */
import { notAModel } from "../../model/errors/plan_errors.js";
import type { ModelConfig } from "./config.js";
import type {
  Activation,
  AttentionShape,
  EmbeddingShape,
  HeadShape,
  LayerRun,
  MlpShape,
  MoeShape,
  NormShape,
  TowerShape,
  TransformerLayer,
} from "./model_shape.js";

/** How a family differs from Llama; absent: as Llama. */
interface FamilyFacts {
  readonly norm?: "layer" | "layer-plain" | "layer-parts";
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
  readonly positions?: "learned" | "alibi";
  readonly tied?: true;
  readonly dropout?: true;
  readonly headBias?: true;
  readonly embeddingNorm?: true;
  readonly softCap?: true;
  /** Rows that a table of positions has beyond the positions (OPT). */
  readonly extraPositions?: number;
  readonly sinks?: true;
  readonly contiguous?: true;
  readonly narrowSoftmax?: true;
  readonly wideNorm?: true;
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

const FAMILIES: Readonly<Record<string, FamilyFacts>> = {
  llama: {},
  mistral: {},
  mixtral: {},
  qwen2: { attentionBias: true },
  qwen2_moe: { attentionBias: true },
  qwen3: { headNorm: "head" },
  qwen3_moe: { headNorm: "head" },
  deepseek_v2: {},
  deepseek_v3: {},
  granite: {},
  granitemoe: {},
  gpt_oss: {
    attentionBias: true,
    outputBias: true,
    mlpBias: true,
    activation: "clamped",
    sinks: true,
  },
  olmo: { norm: "layer-plain" },
  olmo2: { placement: "after", headNorm: "row", wideNorm: true },
  olmoe: { headNorm: "row" },
  phi3: { fusedQkv: true, fusedMlp: true, contiguous: true },
  phimoe: { norm: "layer" },
  glm: { fusedMlp: true, attentionBias: true },
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
  cohere: { norm: "layer-parts", parallel: 1, tied: true },
  stablelm: { norm: "layer" },
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
  },
  gptj: {
    ...omit(GPT2, "positions", "tied", "fusedQkv", "attentionBias", "outputBias", "dropout"),
    parallel: 1,
    headBias: true,
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
    norm: "layer",
    parallel: 1,
    plainMlp: true,
    activation: "gelu",
    fusedQkv: true,
    tied: true,
  },
  mpt: {
    norm: "layer",
    plainMlp: true,
    activation: "gelu",
    fusedQkv: true,
    positions: "alibi",
    tied: true,
  },
};

export const DECODER_FAMILIES: readonly string[] = Object.keys(FAMILIES);

/** What a decoder's reader returns: its tower and head. */
export interface DecoderShape {
  readonly tower: TowerShape;
  readonly head: HeadShape;
  readonly longest: number;
  readonly known: boolean;
}

/** @param family another name than the configuration's own `model_type` where its facts apply */
export function readDecoder(config: ModelConfig, family = config.family): DecoderShape {
  const facts = FAMILIES[family] ?? {};
  const hidden = config.size("hidden_size", "n_embd", "d_model", "model_dim");
  const layers = config.layers("num_hidden_layers", "n_layer", "n_layers", "num_layers");
  const vocabulary = config.size("vocab_size");
  const norm = normOf(config, facts);
  const longest = config.count(
    0,
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
  );
  const embedded = config.optionalSize("word_embed_proj_dim") ?? hidden;
  const embeddings: EmbeddingShape[] = [
    { name: "embed_tokens", rows: vocabulary, width: embedded },
  ];
  if (facts.positions === "learned") {
    embeddings.push({
      name: "embed_positions",
      rows: (longest === 0 ? 1024 : longest) + (facts.extraPositions ?? 0),
      width: hidden,
    });
  }
  const tied = config.flag(facts.tied === true, "tie_word_embeddings");
  return {
    tower: {
      name: "decoder",
      hidden,
      positions: "sequence",
      embeddings,
      embeddingNorm: facts.embeddingNorm === true ? norm : null,
      embeddingDropout: facts.dropout === true,
      stems: [],
      layers: layerRuns(config, facts, { hidden, layers, norm }),
      finalNorm:
        family === "opt" && config.flag(true, "do_layer_norm_before") === false ? null : norm,
      // OPT 350m projects between two widths.
      otherParameters: embedded === hidden ? 0 : 2 * embedded * hidden,
    },
    head: {
      kind: "language",
      outputs: vocabulary,
      tied,
      bias: facts.headBias === true,
      transform: false,
      softCap: config.fraction(0, "final_logit_softcapping") > 0,
    },
    longest,
    known: family in FAMILIES,
  };
}

function normOf(config: ModelConfig, facts: FamilyFacts): NormShape {
  const kind =
    facts.norm === undefined && !config.has("layer_norm_eps", "layer_norm_epsilon")
      ? "rms"
      : "layer";
  const isLayer = facts.norm !== undefined || (kind === "layer" && !config.has("rms_norm_eps"));
  return isLayer
    ? {
        kind: facts.norm === "layer-parts" ? "layer-parts" : "layer",
        bias: facts.norm !== "layer-plain" && facts.norm !== "layer-parts",
        affine: facts.norm !== "layer-plain",
      }
    : { kind: "rms", bias: false, affine: true, wide: facts.wideNorm === true };
}

interface Sizes {
  readonly hidden: number;
  readonly layers: number;
  readonly norm: NormShape;
}

function layerRuns(config: ModelConfig, facts: FamilyFacts, sizes: Sizes): LayerRun[] {
  const windows = windowsOf(config, sizes.layers);
  const dense = denseLayers(config, sizes.layers);
  const runs: { count: number; layer: TransformerLayer; key: string }[] = [];
  for (let index = 0; index < sizes.layers; index++) {
    const window = windows[index] ?? 0;
    const isDense = dense[index] === true;
    const key = `${window} ${isDense}`;
    const last = runs.at(-1);
    if (last?.key === key) {
      last.count += 1;
    } else {
      runs.push({ count: 1, layer: layerOf(config, facts, sizes, { window, isDense }), key });
    }
  }
  return runs.map(({ count, layer }) => ({ count, layer }));
}

function layerOf(
  config: ModelConfig,
  facts: FamilyFacts,
  { hidden, norm }: Sizes,
  { window, isDense }: { window: number; isDense: boolean },
): TransformerLayer {
  const parallelDefault = config.family === "gpt_neox" ? "use_parallel_residual" : "parallel_attn";
  const parallel = facts.parallel !== undefined && config.flag(true, parallelDefault);
  const twoNorms = facts.parallel === 2 || config.flag(false, "new_decoder_architecture");
  const mlp = mlpOf(config, facts, hidden);
  return {
    kind: "transformer",
    norm,
    placement:
      config.family === "opt" && !config.flag(true, "do_layer_norm_before")
        ? "after-residual"
        : (facts.placement ?? "before"),
    parallel,
    parallelNorms: twoNorms ? 2 : 1,
    attention: attentionOf(config, facts, hidden, window),
    cross: null,
    mlp: isDense ? mlp : moeOf(config, mlp),
    dropout:
      config.fraction(
        facts.dropout === true ? 0.1 : 0,
        "resid_pdrop",
        "dropout",
        "hidden_dropout",
      ) > 0,
    attentionDropout: config.fraction(0, "attn_pdrop", "attention_dropout") > 0,
    scales: 0,
    modulation: 0,
  };
}

export function attentionOf(
  config: ModelConfig,
  facts: FamilyFacts,
  hidden: number,
  window: number,
): AttentionShape {
  const heads = config.size("num_attention_heads", "n_head", "n_heads", "num_heads");
  const headSize =
    config.optionalSize("head_dim", "attention_head_dim", "kv_channels") ?? hidden / heads;
  if (!Number.isInteger(headSize)) {
    throw notAModel(config.source, `${heads} heads do not divide a hidden size of ${hidden}`);
  }
  const latentRank = config.optionalSize("kv_lora_rank");
  const base = {
    heads,
    kvHeads: kvHeadsOf(config, heads),
    bias: config.flag(
      facts.attentionBias === true,
      "attention_bias",
      "qkv_bias",
      "bias",
      "use_bias",
    ),
    outputBias: outputBiasOf(config, facts),
    fused: facts.fusedQkv === true,
    rotary: facts.positions === undefined && !config.flag(false, "alibi"),
    rotaryShare: config.fraction(1, "partial_rotary_factor", "rotary_pct"),
    queryKeyNorm: config.flag(false, "use_qk_norm", "qk_layernorm")
      ? "head"
      : (facts.headNorm ?? "none"),
    window,
    softCap: facts.softCap === true && config.fraction(0, "attn_logit_softcapping") > 0,
    scoreBias: facts.positions === "alibi" || config.flag(false, "alibi") ? "alibi" : "none",
    bidirectional: false,
    ...(facts.sinks === true ? { sinks: true } : {}),
    ...(facts.wideNorm === true ? { wideNorm: true } : {}),
    ...(facts.narrowSoftmax === true ? { narrowSoftmax: true } : {}),
    ...(facts.contiguous === true ? { contiguous: true } : {}),
    ...(isOneHead(config) ? { copiesValues: true } : {}),
  } as const;
  if (latentRank === undefined) {
    return { ...base, headSize };
  }
  const rotarySize = config.size("qk_rope_head_dim");
  return {
    ...base,
    headSize: config.size("qk_nope_head_dim") + rotarySize,
    valueHeadSize: config.size("v_head_dim"),
    rotary: true,
    latent: { queryRank: config.count(0, "q_lora_rank"), kvRank: latentRank, rotarySize },
  };
}

function outputBiasOf(config: ModelConfig, facts: FamilyFacts): boolean {
  // Llama's `attention_bias` gives the output a bias, too; that of Qwen 2 does not.
  const fromConfig = facts.attentionBias !== true && config.flag(false, "attention_bias");
  return config.flag(facts.outputBias === true || fromConfig, "use_bias", "bias");
}

function kvHeadsOf(config: ModelConfig, heads: number): number {
  const found = config.optionalSize("num_key_value_heads", "num_kv_heads", "n_head_kv");
  const kvHeads = isOneHead(config) ? 1 : (found ?? heads);
  if (kvHeads > heads || heads % kvHeads !== 0) {
    throw notAModel(config.source, `${kvHeads} key-value heads do not divide ${heads} heads`);
  }
  return kvHeads;
}

/** Falcon with one head of keys and values for all queries. */
function isOneHead(config: ModelConfig): boolean {
  return config.flag(false, "multi_query") && !config.flag(false, "new_decoder_architecture");
}

const ACTIVATIONS: Readonly<Record<string, Activation>> = {
  silu: "silu",
  swish: "silu",
  gelu: "gelu",
  gelu_pytorch_tanh: "gelu",
  gelu_new: "gelu_python",
  gelu_fast: "gelu_python",
  quick_gelu: "quick_gelu",
  relu: "relu",
  relu2: "relu2",
};

export function activationOf(config: ModelConfig, otherwise: Activation): Activation {
  const name = config.text(
    "hidden_activation",
    "hidden_act",
    "activation_function",
    "dense_act_fn",
  );
  return ACTIVATIONS[name] ?? otherwise;
}

function mlpOf(config: ModelConfig, facts: FamilyFacts, hidden: number): MlpShape {
  const width =
    config.optionalSize(
      "intermediate_size",
      "n_inner",
      "ffn_dim",
      "ffn_hidden_size",
      "d_ff",
      "inner_dim",
    ) ?? 4 * hidden;
  const wanted = activationOf(config, facts.activation ?? "silu");
  // Gemma's configuration says "gelu" and runs the fused tanh approximation.
  return {
    width,
    gated: facts.plainMlp !== true,
    activation:
      facts.activation === "clamped" || (facts.activation === "gelu" && wanted === "gelu_python")
        ? facts.activation
        : wanted,
    bias: config.flag(facts.mlpBias === true, "mlp_bias", "use_bias"),
    fused: facts.fusedMlp === true,
  };
}

function moeOf(config: ModelConfig, dense: MlpShape): MlpShape | MoeShape {
  const experts = config.optionalSize(
    "num_local_experts",
    "num_experts",
    "n_routed_experts",
    "moe_num_experts",
  );
  if (experts === undefined) {
    return dense;
  }
  const perToken =
    config.optionalSize("num_experts_per_tok", "num_experts_per_token", "moe_top_k") ?? 2;
  if (perToken > experts) {
    throw notAModel(config.source, `${perToken} experts for each token of ${experts}`);
  }
  const width = config.optionalSize("moe_intermediate_size") ?? dense.width;
  const sharedCount = config.count(0, "n_shared_experts");
  const sharedWidth = config.count(0, "shared_expert_intermediate_size") || sharedCount * width;
  return {
    experts,
    perToken,
    expert: { ...dense, width, fused: dense.gated },
    shared: sharedWidth > 0 ? { ...dense, width: sharedWidth } : null,
    sharedGate: config.has("shared_expert_intermediate_size"),
    routerBias: config.family === "gpt_oss",
    wideRouter: config.family.startsWith("deepseek"),
  };
}

/** Layers of a mixture that are dense: the first ones (DeepSeek), those that a step leaves out (Qwen), listed ones. */
function denseLayers(config: ModelConfig, layers: number): boolean[] {
  const first = config.count(0, "first_k_dense_replace");
  const step = config.optionalSize("decoder_sparse_step", "moe_layer_freq") ?? 1;
  const listed = new Set(config.sizes("mlp_only_layers"));
  const isQwen = config.has("decoder_sparse_step");
  return Array.from({ length: layers }, (_, index) => {
    const inStep = isQwen ? (index + 1) % step === 0 : index % step === 0;
    return index < first || listed.has(index) || !inStep;
  });
}

/** Tokens that each layer sees; 0: all. */
function windowsOf(config: ModelConfig, layers: number): number[] {
  const window = config.count(0, "sliding_window");
  if (window === 0 || !config.flag(true, "use_sliding_window")) {
    return Array.from({ length: layers }, () => 0);
  }
  const types = config.words("layer_types");
  if (types.length === layers) {
    return types.map((type) => (type === "sliding_attention" ? window : 0));
  }
  const { family } = config;
  const pattern =
    config.optionalSize("sliding_window_pattern") ??
    (family === "gemma2" || family === "gpt_oss" ? 2 : family.startsWith("gemma3") ? 6 : 0);
  const from = config.count(0, "max_window_layers");
  return Array.from({ length: layers }, (_, index) => {
    if (pattern > 0) {
      return (index + 1) % pattern === 0 ? 0 : window;
    }
    return index >= from || family === "mistral" ? window : 0;
  });
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
