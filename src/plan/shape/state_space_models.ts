/** Mamba, Mamba 2, Falcon Mamba; Jamba and Bamba, which mix state-space layers with attention. */
import { invalidModel } from "../../model/errors/plan_errors.js";
import type { ModelConfig } from "./config.js";
import { type DecoderShape, readDecoder } from "./decoder.js";
import type { HeadShape, LayerRun, NormShape, StateSpaceShape, TowerShape } from "./model_shape.js";

export const STATE_SPACE_FAMILIES: readonly string[] = ["mamba", "mamba2", "falcon_mamba"];

const RMS: NormShape = { kind: "rms", bias: false, affine: true };

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

function mixerOf(config: ModelConfig, hidden: number): StateSpaceShape {
  const version = config.family === "mamba2" || config.family === "bamba" ? 2 : 1;
  const expand = config.fraction(2, "expand", "mamba_expand");
  const inner =
    version === 2
      ? Math.round(expand * hidden)
      : (config.optionalSize("intermediate_size_mamba", "d_inner") ?? Math.round(expand * hidden));
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
    heads: config.count(
      version === 2 ? Math.round(inner / config.count(64, "mamba_d_head", "head_dim")) : 0,
      "mamba_n_heads",
      "num_heads",
    ),
    groups: config.count(config.family === "bamba" ? 1 : 8, "mamba_n_groups", "n_groups"),
    chunk: config.optionalSize("chunk_size", "mamba_chunk_size") ?? 256,
    convolutionBias: config.flag(true, "use_conv_bias", "mamba_conv_bias"),
    bias: config.flag(false, "use_bias", "mamba_proj_bias"),
    ...(/^b?float16$/.test(config.text("mamba_ssm_dtype")) ? { narrowState: true } : {}),
  };
}

/** Jamba: of each period one layer has attention, the others a state space; each has an MLP or experts after it. */
export function readJamba(config: ModelConfig): DecoderShape {
  const decoder = readDecoder(config);
  const hidden = decoder.tower.hidden;
  const mixer = mixerOf(config, hidden);
  const period = config.size("attn_layer_period");
  const offset = config.count(0, "attn_layer_offset");
  const expertPeriod = config.count(2, "expert_layer_period");
  const expertOffset = config.count(1, "expert_layer_offset");
  const withExperts = decoder.tower.layers[0]?.layer;
  const { layer: dense } = readDecoder(config.without("num_experts")).tower.layers[0] as LayerRun;
  const layers: LayerRun[] = [];
  const count = config.layers("num_hidden_layers");
  for (let index = 0; index < count; index++) {
    const shape =
      (expertPeriod > 0 && index % expertPeriod === expertOffset ? withExperts : dense) ?? dense;
    if (shape.kind !== "transformer") {
      continue;
    }
    const attends = index % period === offset;
    const attention = shape.attention === null ? null : { ...shape.attention, rotary: false };
    if (attends) {
      layers.push({ count: 1, layer: { ...shape, attention } });
    } else {
      layers.push({ count: 1, layer: { kind: "state-space", norm: RMS, mixer } });
      layers.push({ count: 1, layer: { ...shape, attention: null } });
    }
  }
  // Norms of the time step, B and C in each state-space layer.
  const spaces = layers.filter(({ layer }) => layer.kind === "state-space").length;
  return {
    ...decoder,
    known: true,
    tower: {
      ...decoder.tower,
      layers,
      otherParameters: spaces * (mixer.timeRank + 2 * mixer.state),
    },
  };
}

/** Bamba: Mamba 2 in all layers but the listed ones, which attend; an MLP after each. */
export function readBamba(config: ModelConfig): DecoderShape {
  const decoder = readDecoder(config);
  const { layer } = decoder.tower.layers[0] as LayerRun;
  if (layer.kind !== "transformer") {
    return decoder;
  }
  const mixer = mixerOf(config, decoder.tower.hidden);
  const attends = new Set(config.sizes("attn_layer_indices"));
  const layers = Array.from(
    { length: config.layers("num_hidden_layers") },
    (_, index): LayerRun[] =>
      attends.has(index)
        ? [{ count: 1, layer }]
        : [
            { count: 1, layer: { kind: "state-space", norm: RMS, mixer } },
            { count: 1, layer: { ...layer, attention: null } },
          ],
  );
  return { ...decoder, known: true, tower: { ...decoder.tower, layers: layers.flat() } };
}
