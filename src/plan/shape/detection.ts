/** Detectors whose objects are rows of a vision transformer (YOLOS; Fang et al. 2021). */
import { invalidModel, noReader } from "../../model/errors/plan_errors.js";
import type { ModelConfig } from "./config.js";
import { LAYER_NORM, labelsOf, plainAttention, plainLayer, plainMlp } from "./encoder.js";
import type { HeadShape, TowerShape } from "./model_shape.js";
import { NO_TEXT } from "./parts.js";
import { CLASS_HEAD } from "./vision.js";

export const DETECTION_FAMILIES: readonly string[] = ["yolos"];

/** Of a box: its center, width and height. */
const BOX = 4;
/** Of the published models. */
const SIDES = [512, 864];

/** @throws TidemarkError TM-E085 */
export function readDetector(config: ModelConfig): { tower: TowerShape; head: HeadShape } {
  const { architecture } = config;
  if (architecture !== "" && !architecture.endsWith("ForObjectDetection")) {
    throw noReader(config.source, `${architecture} has no reader`);
  }
  const hidden = config.size("hidden_size");
  const width = config.size("intermediate_size");
  const patch = config.size("patch_size");
  const [high = 0, wide = high] = config.has("image_size") ? config.sizes("image_size") : SIDES;
  const patches = Math.floor(high / patch) * Math.floor(wide / patch);
  if (patches === 0) {
    throw invalidModel(config.source, `patches of ${patch} in an image of ${high} x ${wide}`);
  }
  const objects = config.count(100, "num_detection_tokens");
  const positions = patches + objects + 1;
  const count = config.layers("num_hidden_layers");
  const layer = plainLayer(
    plainAttention(config.size("num_attention_heads"), hidden, {
      bias: config.flag(true, "qkv_bias"),
      narrowSoftmax: true,
    }),
    width,
    {
      dropout: config.fraction(0, "hidden_dropout_prob") > 0,
      attentionDropout: config.fraction(0, "attention_probs_dropout_prob") > 0,
      mlp: plainMlp(config, width),
    },
  );
  // Positions are added again after each layer.
  const again = config.flag(true, "use_mid_position_embeddings") ? count - 1 : 0;
  const square = hidden * hidden + hidden;
  return {
    tower: {
      ...NO_TEXT,
      name: "encoder",
      hidden,
      positions,
      embeddings: [
        { name: "position_embeddings", rows: positions, width: hidden },
        { name: "detection_tokens", rows: objects + 1, width: hidden },
      ],
      embeddingDropout: config.fraction(0, "hidden_dropout_prob") > 0,
      stems: [
        {
          name: "patch_embedding",
          input: config.count(3, "num_channels") * patch ** 2,
          output: hidden,
          bias: true,
          rows: patches,
        },
      ],
      layers: [{ count, layer }],
      finalNorm: LAYER_NORM,
      // Two layers before the classes, and three for the boxes.
      otherParameters: again * positions * hidden + 4 * square + BOX * (hidden + 1),
      // The inputs of these matrices.
      otherSaved: 5 * objects * hidden,
    },
    head: { ...CLASS_HEAD, outputs: labelsOf(config, 2) + 1, objects },
  };
}
