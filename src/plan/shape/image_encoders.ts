/** The image encoders of models that read images and text, by the `model_type` of their part of the configuration. */
import { invalidModel, noReader } from "../../model/errors/plan_errors.js";
import type { AttentionShape } from "./attention_shape.js";
import type { ModelConfig } from "./config.js";
import { LAYER_NORM, plainAttention, plainLayer } from "./encoder.js";
import type { LayerRun, NormShape, TowerShape, TransformerLayer } from "./model_shape.js";
import { NO_TEXT } from "./parts.js";
import { imageTower, withPooler } from "./vision.js";

export interface ImageEncoder {
  readonly tower: TowerShape;
  /** A sentence about the image that is planned. */
  readonly remark?: string;
}

/** Pixels on one side of an image whose size the configuration does not fix. */
export const UNFIXED_SIDE = 448;

const UNFIXED_REMARK = `one image of ${UNFIXED_SIDE} x ${UNFIXED_SIDE} pixels a sequence; its rows count as tokens of the sequence`;

const RMS: NormShape = { kind: "rms", bias: false, affine: true };

const ENCODERS: Readonly<Record<string, (config: ModelConfig) => ImageEncoder>> = {
  clip_vision_model: (config) => {
    const tower = imageTower(config, "image", 1, "quick_gelu");
    return { tower: { ...tower, embeddingNorm: LAYER_NORM } };
  },
  siglip_vision_model: (config) => {
    return { tower: withPooler(config, imageTower(config, "image", 0, "gelu")) };
  },
  idefics3_vision: (config) => ({ tower: imageTower(config, "image", 0, "gelu") }),
  smolvlm_vision: (config) => ({ tower: imageTower(config, "image", 0, "gelu") }),
  internvl_vision: readInternVl,
  llama4_vision_model: readLlama4,
  gemma4_vision: readGemma4,
  glm4v_vision: readGlm,
  glm4v_moe_vision: readGlm,
  pixtral: readPixtral,
};

/** @throws TidemarkError TM-E085 for an encoder without a reader */
export function readImageEncoder(config: ModelConfig): ImageEncoder {
  const read = Object.hasOwn(ENCODERS, config.family) ? ENCODERS[config.family] : undefined;
  if (read === undefined) {
    throw noReader(config.source, `model_type "${config.family}" has no reader`);
  }
  return read(config);
}

/** The same change of each layer. */
function withLayers(
  tower: TowerShape,
  change: (layer: TransformerLayer, attention: AttentionShape) => TransformerLayer,
): LayerRun[] {
  return tower.layers.map((run) =>
    run.layer.kind === "transformer" && run.layer.attention !== null
      ? { ...run, layer: change(run.layer, run.layer.attention) }
      : run,
  );
}

/** As BEiT: a class, two vectors that scale each layer's parts, no norm at the end. Its side is a list of two. */
function readInternVl(config: ModelConfig): ImageEncoder {
  const [image = 448] = config.sizes("image_size");
  const [patch = 14] = config.sizes("patch_size");
  const own = config.with({ image_size: image, patch_size: patch });
  const tower = imageTower(own, "image", 1, "gelu");
  const bias = config.flag(false, "attention_bias");
  const norm = config.text("norm_type") === "rms_norm" ? RMS : LAYER_NORM;
  return {
    tower: {
      ...tower,
      embeddings: config.flag(true, "use_absolute_position_embeddings")
        ? tower.embeddings
        : tower.embeddings.slice(1),
      layers: withLayers(tower, (layer, attention) => ({
        ...layer,
        norm,
        scales: 2,
        attention: {
          ...attention,
          bias,
          outputBias: true,
          queryKeyNorm: config.flag(false, "use_qk_norm") ? "row" : "none",
        },
      })),
      finalNorm: config.flag(true, "use_mean_pooling") ? null : LAYER_NORM,
    },
  };
}

/** As CLIP, with rotated queries and keys. */
function readLlama4(config: ModelConfig): ImageEncoder {
  const tower = imageTower(config, "image", 1, "gelu");
  return {
    tower: {
      ...tower,
      embeddingNorm: LAYER_NORM,
      stems: tower.stems.map((stem) => ({ ...stem, bias: false })),
      layers: withLayers(tower, (layer, attention) => ({
        ...layer,
        attention: { ...attention, rotary: true, rotaryShare: 1 },
      })),
    },
  };
}

/** Rows of a text that one image of Gemma 4 becomes, as its processor makes them, and the rows that become one of these. */
const GEMMA_ROWS = 280;

/** Built like the layers of its text, for images of any shape: a table of positions of each axis, and rows are pooled. */
function readGemma4(config: ModelConfig): ImageEncoder {
  const hidden = config.size("hidden_size");
  const heads = config.size("num_attention_heads");
  const kvHeads = config.optionalSize("num_key_value_heads") ?? heads;
  const width = config.size("intermediate_size");
  const patch = config.size("patch_size");
  const positions = GEMMA_ROWS * config.size("pooling_kernel_size") ** 2;
  if (heads % kvHeads !== 0) {
    throw invalidModel(config.source, `${kvHeads} key-value heads do not divide ${heads} heads`);
  }
  const bias = config.flag(false, "attention_bias");
  const attention = plainAttention(heads, hidden, {
    kvHeads,
    headSize: config.optionalSize("head_dim") ?? hidden / heads,
    bias,
    outputBias: bias,
    rotary: true,
    rotaryShare: 1,
    queryKeyNorm: "head",
    wideNorm: true,
    valueNorm: true,
  });
  const layer = plainLayer(attention, width, {
    norm: { ...RMS, wide: true, byPower: true },
    placement: "sandwich",
    mlp: { width, gated: true, activation: "gelu", bias: false, fused: false },
  });
  return {
    tower: {
      ...NO_TEXT,
      name: "image",
      hidden,
      positions,
      embeddings: [
        {
          name: "position_embeddings",
          rows: 2 * config.size("position_embedding_size"),
          width: hidden,
        },
      ],
      stems: [{ name: "patch_embedding", input: 3 * patch ** 2, output: hidden, bias: false }],
      layers: [{ count: config.layers("num_hidden_layers"), layer }],
      otherParameters: 0,
      // Weights of the pooled rows, in fp32 beside layers of 16 bits.
      otherSaved: 2 * positions * GEMMA_ROWS,
      ...(config.flag(false, "use_clipped_linears") ? { clipsLinears: true as const } : {}),
    },
    remark: `one image of ${GEMMA_ROWS} rows a sequence, which count as tokens of the sequence; no audio`,
  };
}

/** Images of any size; after the layers a convolution joins squares of rows, and an MLP follows (GLM-4.1V, 4.5V, 4.6V). */
function readGlm(config: ModelConfig): ImageEncoder {
  const hidden = config.size("hidden_size");
  const heads = config.size("num_heads", "num_attention_heads");
  const output = config.size("out_hidden_size");
  const inner = config.size("intermediate_size");
  const patch = config.size("patch_size");
  const merged = config.count(2, "spatial_merge_size") ** 2 || 1;
  const table = Math.floor(config.size("image_size") / patch) ** 2;
  const positions = Math.floor(UNFIXED_SIDE / patch) ** 2;
  const rows = positions / merged;
  const attention = plainAttention(heads, hidden, {
    fused: true,
    bias: config.flag(false, "attention_bias"),
    outputBias: false,
    rotary: true,
    rotaryShare: 1,
  });
  const layer = plainLayer(attention, output, {
    norm: RMS,
    mlp: { width: output, gated: true, activation: "silu", bias: false, fused: false },
  });
  return {
    tower: {
      ...NO_TEXT,
      name: "image",
      hidden,
      positions,
      embeddings: [{ name: "position_embeddings", rows: table, width: hidden }],
      embeddingNorm: RMS,
      stems: [
        {
          name: "patch_embedding",
          input:
            config.count(3, "in_channels") * config.count(2, "temporal_patch_size") * patch ** 2,
          output: hidden,
          bias: true,
        },
      ],
      layers: [{ count: config.layers("depth", "num_hidden_layers"), layer }],
      finalNorm: RMS,
      otherParameters:
        hidden * output * merged + output + output * output + 2 * output + 3 * output * inner,
      // The convolution's input; inputs of its matrices, the norm and both activations.
      otherSaved: positions * hidden + 4 * rows * (output + inner),
    },
    remark: UNFIXED_REMARK,
  };
}

/** Built like Llama, without a table of positions, for images of any size. */
function readPixtral(config: ModelConfig): ImageEncoder {
  const tower = imageTower(config.with({ image_size: UNFIXED_SIDE }), "image", 0, "gelu");
  return {
    tower: {
      ...tower,
      embeddings: [],
      embeddingNorm: RMS,
      finalNorm: null,
      stems: tower.stems.map((stem) => ({ ...stem, bias: false })),
      layers: withLayers(tower, (layer, attention) => ({
        ...layer,
        norm: RMS,
        mlp: layer.mlp === null ? null : { ...layer.mlp, gated: true, bias: false },
        attention: {
          ...attention,
          bias: false,
          outputBias: false,
          rotary: true,
          rotaryShare: 1,
          joinsBatch: true,
        },
      })),
    },
    remark: UNFIXED_REMARK,
  };
}
