/** Attention, MLP and experts of one layer of a decoder. */
import { invalidModel } from "../../model/errors/plan_errors.js";
import type { AttentionShape } from "./attention_shape.js";
import type { ModelConfig } from "./config.js";
import type { FamilyFacts } from "./decoder_families.js";
import type { Activation, MlpShape, MoeShape } from "./model_shape.js";

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
    throw invalidModel(config.source, `${heads} heads do not divide a hidden size of ${hidden}`);
  }
  if (headSize % 2 === 1 && facts.positions === undefined && !config.has("kv_lora_rank")) {
    throw invalidModel(
      config.source,
      `heads of ${headSize} do not have the halves that RoPE turns`,
    );
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
    rotaryShare: rotaryShare(config),
    queryKeyNorm: config.flag(false, "use_qk_norm", "qk_layernorm")
      ? "head"
      : (facts.headNorm ?? "none"),
    window,
    softCap: facts.softCap === true && config.fraction(0, "attn_logit_softcapping") > 0,
    scoreBias: facts.positions === "alibi" || config.flag(false, "alibi") ? "alibi" : "none",
    bidirectional: false,
    ...(facts.optionalNorm === undefined ? {} : { headNorm: facts.optionalNorm }),
    ...(facts.joinsRotation === true ? { joinsRotation: true as const } : {}),
    ...(facts.sinks === true ? { sinks: true } : {}),
    ...(facts.gatedAttention === true ? { gated: true } : {}),
    ...(facts.plainNorm === true ? { plainNorm: true } : {}),
    ...(facts.wideNorm === true ? { wideNorm: true } : {}),
    ...(facts.narrowSoftmax === true ? { narrowSoftmax: true } : {}),
    ...(facts.contiguous === true ? { contiguous: true } : {}),
    ...(facts.copiesValues === true && isOneHead(config) ? { copiesValues: true } : {}),
    ...(facts.wideScores === true ? { wideScores: true } : {}),
    ...(config.flag(false, "new_decoder_architecture") ? { expandsGroups: true } : {}),
    ...(facts.alwaysMasked === true ? { alwaysMasked: true } : {}),
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

/** Of the head; transformers 5 writes it among the parameters of RoPE. */
function rotaryShare(config: ModelConfig): number {
  const nested = config.part("rope_parameters")?.fraction(1, "partial_rotary_factor") ?? 1;
  return config.fraction(nested, "partial_rotary_factor", "rotary_pct");
}

function outputBiasOf(config: ModelConfig, facts: FamilyFacts): boolean {
  if (config.has("attention_out_bias")) {
    return config.flag(false, "attention_out_bias");
  }
  // That of NeoX and gpt-oss is of all four matrices.
  if (facts.attentionBias === true && facts.outputBias === true && config.has("attention_bias")) {
    return config.flag(true, "attention_bias");
  }
  // Llama's `attention_bias` gives the output a bias, too; that of Qwen 2 does not.
  const fromConfig = facts.attentionBias !== true && config.flag(false, "attention_bias");
  return config.flag(facts.outputBias === true || fromConfig, "use_bias", "bias");
}

function kvHeadsOf(config: ModelConfig, heads: number): number {
  const found = config.optionalSize("num_key_value_heads", "num_kv_heads", "n_head_kv");
  const kvHeads = isOneHead(config) ? 1 : (found ?? heads);
  if (kvHeads > heads || heads % kvHeads !== 0) {
    throw invalidModel(config.source, `${kvHeads} key-value heads do not divide ${heads} heads`);
  }
  return kvHeads;
}

/** One head of keys and values for all queries (Falcon, GPT-BigCode). */
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
    "mlp_hidden_act",
    "activation_function",
    "dense_act_fn",
  );
  return ACTIVATIONS[name] ?? otherwise;
}

export function mlpOf(config: ModelConfig, facts: FamilyFacts, hidden: number): MlpShape {
  const named =
    config.optionalSize(
      "intermediate_size",
      "n_inner",
      "ffn_dim",
      "ffn_hidden_size",
      "block_ff_dim",
      "d_ff",
      "inner_dim",
    ) ?? 4 * hidden;
  const width = config.flag(config.family === "lfm2", "block_auto_adjust_ff_dim")
    ? adjusted(config, named)
    : named;
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

/** LFM2: two thirds, times a factor, in whole multiples. */
function adjusted(config: ModelConfig, named: number): number {
  const factor = config.fraction(1, "block_ffn_dim_multiplier");
  const multiple = config.count(256, "block_multiple_of") || 1;
  return multiple * Math.ceil(Math.floor(factor * Math.floor((2 * named) / 3)) / multiple);
}

export function moeOf(
  config: ModelConfig,
  facts: FamilyFacts,
  dense: MlpShape,
): MlpShape | MoeShape {
  const experts = config.optionalSize(
    "num_local_experts",
    "num_experts",
    "n_routed_experts",
    "moe_num_experts",
    "num_moe_experts",
  );
  if (experts === undefined) {
    return dense;
  }
  const perToken =
    config.optionalSize(
      "num_experts_per_tok",
      "num_experts_per_token",
      "moe_top_k",
      "moe_topk",
      "moe_k",
    ) ?? 2;
  if (perToken > experts) {
    throw invalidModel(config.source, `${perToken} experts for each token of ${experts}`);
  }
  const width = config.optionalSize("moe_intermediate_size") ?? dense.width;
  const sharedCount = config.count(
    facts.oneShared === true ? 1 : 0,
    "n_shared_experts",
    "num_shared_experts",
    "num_shared_expert",
    "moe_num_shared_experts",
  );
  const sharedWidth =
    config.count(
      0,
      "shared_expert_intermediate_size",
      "shared_intermediate_size",
      "moe_shared_expert_intermediate_size",
    ) || sharedCount * width;
  const latent = config.optionalSize("moe_latent_size");
  return {
    experts,
    perToken,
    expert: { ...dense, width, fused: dense.gated },
    shared: sharedWidth > 0 ? { ...dense, width: sharedWidth } : null,
    sharedGate: config.has("shared_expert_intermediate_size"),
    routerBias: facts.routerBias === true,
    wideRouter: facts.wideRouter === true,
    ...(facts.runsAllExperts === true ? { runsAll: true as const } : {}),
    ...(latent === undefined ? {} : { latent }),
  };
}
