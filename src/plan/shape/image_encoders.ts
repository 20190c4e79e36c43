/** The image encoders of models that read images and text, by the `model_type` of their part of the configuration. */
import { noReader } from "../../model/errors/plan_errors.js";
import type { AttentionShape } from "./attention_shape.js";
import type { ModelConfig } from "./config.js";
import { LAYER_NORM } from "./encoder.js";
import type { LayerRun, NormShape, TowerShape, TransformerLayer } from "./model_shape.js";
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
