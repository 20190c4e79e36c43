/** Images: ViT and its relatives, CLIP's two towers, an image encoder before a decoder, ResNet. */
import { notAModel } from "../../model/errors/plan_errors.js";
import type { ModelConfig } from "./config.js";
import { activationOf, readDecoder } from "./decoder.js";
import { LAYER_NORM, labelsOf, plainAttention, plainLayer } from "./encoder.js";
import type {
  Activation,
  ConvolutionLayer,
  HeadShape,
  LayerRun,
  TowerShape,
} from "./model_shape.js";

export const VISION_FAMILIES: readonly string[] = ["vit", "deit", "dinov2", "beit", "vit_mae"];
export const TWO_TOWER_FAMILIES: readonly string[] = ["clip", "siglip", "chinese_clip"];

const CLASS_HEAD = {
  kind: "class",
  tied: false,
  bias: true,
  transform: false,
  softCap: false,
} as const;

/** @param extra rows of tokens beside the patches: class, distillation, registers */
export function imageTower(
  config: ModelConfig,
  name: string,
  extra: number,
  activation: Activation = "gelu",
): TowerShape {
  const hidden = config.size("hidden_size", "embed_dim");
  const heads = config.size("num_attention_heads", "num_heads");
  const image = config.optionalSize("image_size") ?? 224;
  const patch = config.size("patch_size", "spatial_patch_size");
  const channels = config.optionalSize("num_channels", "in_channels") ?? 3;
  if (patch > image) {
    throw notAModel(config.source, `patches of ${patch} in an image of ${image}`);
  }
  const positions = Math.floor(image / patch) ** 2 + extra;
  const width =
    config.optionalSize("intermediate_size") ??
    Math.round(hidden * config.fraction(4, "mlp_ratio"));
  const scaled = config.family === "dinov2" ? 2 : 0;
  const layer = plainLayer(plainAttention(heads, hidden), width, {
    mlp: {
      width,
      gated: false,
      activation: activationOf(config, activation),
      bias: true,
      fused: false,
    },
    scales: scaled,
  });
  return {
    name,
    hidden,
    positions,
    embeddings: [
      { name: "position_embeddings", rows: positions, width: hidden },
      ...(extra > 0 ? [{ name: "class_token", rows: extra, width: hidden }] : []),
    ],
    embeddingNorm: null,
    embeddingDropout: false,
    stems: [
      {
        name: "patch_embedding",
        input: channels * patch ** 2,
        output: hidden,
        bias: !/clip/.test(config.family),
      },
    ],
    layers: [{ count: config.layers("num_hidden_layers", "depth"), layer }],
    finalNorm: LAYER_NORM,
    otherParameters: 0,
  };
}

export function readImageClassifier(config: ModelConfig): { tower: TowerShape; head: HeadShape } {
  const extra = config.family === "deit" ? 2 : 1;
  return {
    tower: imageTower(config, "encoder", extra),
    head: { ...CLASS_HEAD, outputs: labelsOf(config, 2) },
  };
}

/** CLIP and SigLIP: an image and a text for each sample. */
export function readTwoTowers(config: ModelConfig): { towers: TowerShape[]; longest: number } {
  const vision = config.part("vision_config");
  const text = config.part("text_config");
  if (vision === null || text === null) {
    throw notAModel(config.source, "vision_config or text_config is missing");
  }
  const projection = config.count(512, "projection_dim");
  const defaults = {
    hidden_size: 512,
    num_attention_heads: 8,
    num_hidden_layers: 12,
    intermediate_size: 2048,
    vocab_size: 49408,
  };
  const own = text.filledFrom(defaults);
  const hidden = own.size("hidden_size");
  const isClip = config.family !== "siglip";
  const eyes = vision.filledFrom({
    hidden_size: 768,
    num_attention_heads: 12,
    num_hidden_layers: 12,
    intermediate_size: 3072,
    patch_size: 32,
  });
  const image = imageTower(
    eyes.named(isClip ? "clip_vision" : "siglip_vision"),
    "image",
    isClip ? 1 : 0,
    "quick_gelu",
  );
  const positions = own.optionalSize("max_position_embeddings") ?? (isClip ? 77 : 64);
  return {
    towers: [
      {
        ...image,
        embeddingNorm: isClip ? LAYER_NORM : null,
        otherParameters: isClip ? projection * image.hidden : 0,
      },
      {
        name: "text",
        hidden,
        positions,
        embeddings: [
          { name: "token_embedding", rows: own.size("vocab_size"), width: hidden },
          { name: "position_embedding", rows: positions, width: hidden },
        ],
        embeddingNorm: null,
        embeddingDropout: false,
        stems: [],
        layers: [
          {
            count: own.layers("num_hidden_layers"),
            layer: plainLayer(
              plainAttention(own.size("num_attention_heads"), hidden, { bidirectional: !isClip }),
              own.size("intermediate_size"),
              {
                mlp: {
                  width: own.size("intermediate_size"),
                  gated: false,
                  activation: activationOf(own, "quick_gelu"),
                  bias: true,
                  fused: false,
                },
              },
            ),
          },
        ],
        finalNorm: LAYER_NORM,
        otherParameters: isClip ? projection * hidden + 1 : 0,
      },
    ],
    longest: positions,
  };
}

/** An image encoder whose rows enter a decoder (LLaVA, Gemma 3, PaliGemma, Idefics): both towers, one image a sequence. */
export function readImageAndText(config: ModelConfig) {
  const vision = config.part("vision_config") as ModelConfig;
  const text = config.part("text_config") as ModelConfig;
  const decoder = readDecoder(text);
  const eyes = vision.filledFrom({ patch_size: 14 });
  const image = imageTower(
    eyes.named(vision.family === "" ? "clip_vision" : vision.family),
    "image",
    1,
  );
  const projector =
    image.hidden * decoder.tower.hidden + decoder.tower.hidden * (decoder.tower.hidden + 2);
  return {
    ...decoder,
    towers: [{ ...image, otherParameters: projector }, decoder.tower],
    family: text.family,
  };
}

/** ResNet of transformers: a stem and stages of bottlenecks; the first block of a stage halves the image. */
export function readResnet(config: ModelConfig): { tower: TowerShape; head: HeadShape } {
  const sizes = config.sizes("hidden_sizes");
  const depths = config.sizes("depths");
  if (sizes.length === 0 || sizes.length !== depths.length || depths.some((depth) => depth > 200)) {
    throw notAModel(config.source, "hidden_sizes and depths do not match");
  }
  const channels = config.count(64, "embedding_size");
  const block = config.text("layer_type") === "basic" ? "resnet-basic" : "resnet-bottleneck";
  const image = config.optionalSize("image_size") ?? 224;
  const layer = (changes: Partial<ConvolutionLayer>): ConvolutionLayer => ({
    kind: "convolution",
    name: "block",
    inputChannels: channels,
    outputChannels: channels,
    inputSide: image / 4,
    outputSide: image / 4,
    block,
    conditionSize: 0,
    ...changes,
  });
  const layers: LayerRun[] = [
    {
      count: 1,
      layer: layer({ block: "stem", inputChannels: 3, inputSide: image, outputSide: image / 2 }),
    },
  ];
  let before = channels;
  let side = image / 4;
  for (const [stage, size] of sizes.entries()) {
    const halves = stage > 0 || config.flag(false, "downsample_in_first_stage");
    const after = halves ? side / 2 : side;
    layers.push({
      count: 1,
      layer: layer({
        inputChannels: before,
        outputChannels: size,
        inputSide: side,
        outputSide: after,
      }),
    });
    const rest = (depths[stage] ?? 1) - 1;
    if (rest > 0) {
      layers.push({
        count: rest,
        layer: layer({
          inputChannels: size,
          outputChannels: size,
          inputSide: after,
          outputSide: after,
        }),
      });
    }
    before = size;
    side = after;
  }
  return {
    tower: {
      name: "encoder",
      hidden: before,
      positions: 1,
      embeddings: [],
      embeddingNorm: null,
      embeddingDropout: false,
      stems: [],
      layers,
      finalNorm: null,
      otherParameters: 0,
    },
    head: { ...CLASS_HEAD, outputs: labelsOf(config, 1000) },
  };
}
