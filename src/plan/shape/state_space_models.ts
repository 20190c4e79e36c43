/** Mamba, Mamba 2, Falcon Mamba, and the state spaces of decoders that also have attention. */
import { invalidModel } from "../../model/errors/plan_errors.js";
import type { ModelConfig } from "./config.js";
import type { HeadShape, NormShape, StateSpaceShape, TowerShape } from "./model_shape.js";

export const STATE_SPACE_FAMILIES: readonly string[] = ["mamba", "mamba2", "falcon_mamba"];

export const RMS: NormShape = { kind: "rms", bias: false, affine: true };

export function readStateSpace(config: ModelConfig): { tower: TowerShape; head: HeadShape } {
  const hidden = config.size("hidden_size", "d_model");
  const vocabulary = config.size("vocab_size");
  const mixer = mixerOf(config, hidden);
  return {
    tower: {
      name: "decoder",
      hidden,
      positions: "sequence",
      embeddings: [{ name: "embeddings", rows: vocabulary, width: hidden }],
      embeddingNorm: null,
      embeddingDropout: false,
      stems: [],
      layers: [
        {
          count: config.layers("num_hidden_layers", "n_layer"),
          layer: { kind: "state-space", norm: RMS, mixer },
        },
      ],
      finalNorm: RMS,
      otherParameters: 0,
    },
    head: {
      kind: "language",
      outputs: vocabulary,
      tied: config.flag(
        config.family !== "mamba2" && config.family !== "falcon_mamba",
        "tie_word_embeddings",
      ),
      bias: false,
      transform: false,
      softCap: false,
    },
  };
}

/** Families with Mamba 1; all others have Mamba 2. */
const FIRST: readonly string[] = ["mamba", "falcon_mamba", "jamba"];

export function mixerOf(config: ModelConfig, hidden: number): StateSpaceShape {
  if (config.family.startsWith("lfm2")) {
    return shortConvolution(config, hidden);
  }
  if (config.has("linear_num_value_heads")) {
    return deltaRule(config);
  }
  const version = FIRST.includes(config.family) ? 1 : 2;
  const inner = innerOf(config, hidden, version);
  if (!Number.isSafeInteger(inner) || inner < 1) {
    throw invalidModel(config.source, `its state spaces are ${inner} wide`);
  }
  const rank = config.values.time_step_rank ?? config.values.mamba_dt_rank;
  return {
    version,
    inner,
    state: config.count(
      version === 2 ? 128 : 16,
      "state_size",
      "d_state",
      "mamba_d_state",
      "ssm_state_size",
    ),
    convolution: config.count(4, "conv_kernel", "d_conv", "mamba_d_conv"),
    timeRank:
      typeof rank === "number"
        ? config.size("time_step_rank", "mamba_dt_rank")
        : Math.ceil(hidden / 16),
    heads:
      version === 1
        ? 0
        : (headsOf(config) ?? Math.round(inner / config.count(64, ...headSizes(config)))),
    groups: config.count(
      config.family === "mamba2" || version === 1 ? 8 : 1,
      "mamba_n_groups",
      "n_groups",
    ),
    chunk: config.optionalSize("chunk_size", "mamba_chunk_size") ?? 256,
    convolutionBias: config.flag(true, "use_conv_bias", "mamba_conv_bias"),
    bias: config.flag(false, "use_bias", "mamba_proj_bias"),
    ...(config.values.mamba_rms_norm === false ? { plainGate: true as const } : {}),
    ...(/^b?float16$/.test(config.text("mamba_ssm_dtype")) ? { narrowState: true } : {}),
  };
}

/** Yang et al. 2025, "Gated Delta Networks"; heads of values read in groups what one head of keys has. */
function deltaRule(config: ModelConfig): StateSpaceShape {
  const heads = config.size("linear_num_value_heads");
  const groups = config.size("linear_num_key_heads");
  if (heads % groups !== 0) {
    throw invalidModel(config.source, `${groups} heads of keys do not divide ${heads} of values`);
  }
  return {
    version: "delta",
    inner: heads * config.size("linear_value_head_dim"),
    state: config.size("linear_key_head_dim"),
    convolution: config.count(4, "linear_conv_kernel_dim"),
    timeRank: 0,
    heads,
    groups,
    chunk: 64,
    convolutionBias: false,
    bias: false,
    ...(config.family === "qwen3_next" ? { byKeyHead: true as const } : {}),
    ...(config.text("mamba_ssm_dtype") === "float32" ? { wideState: true } : {}),
  };
}

function shortConvolution(config: ModelConfig, hidden: number): StateSpaceShape {
  const bias = config.flag(false, "conv_bias");
  return {
    version: "convolution",
    inner: hidden,
    state: 0,
    convolution: config.count(3, "conv_L_cache"),
    timeRank: 0,
    heads: 0,
    groups: 0,
    chunk: 1,
    convolutionBias: bias,
    bias,
  };
}

function headsOf(config: ModelConfig): number | undefined {
  return config.optionalSize("mamba_n_heads", "mamba_num_heads", "num_heads");
}

/** "auto" stands for the width divided by the heads. */
function headSizes(config: ModelConfig): string[] {
  return [
    "mamba_d_head",
    "mamba_head_dim",
    ...(config.family === "mamba2" ? ["head_dim"] : []),
  ].filter((name) => typeof config.values[name] === "number");
}

function innerOf(config: ModelConfig, hidden: number, version: 1 | 2): number {
  const expanded = Math.round(config.fraction(2, "expand", "mamba_expand") * hidden);
  if (version === 1) {
    return config.optionalSize("intermediate_size_mamba", "d_inner") ?? expanded;
  }
  const headSize = config.optionalSize("mamba_head_dim");
  const heads = headsOf(config);
  return headSize !== undefined && heads !== undefined
    ? heads * headSize
    : (config.optionalSize("mamba_d_ssm") ?? expanded);
}
