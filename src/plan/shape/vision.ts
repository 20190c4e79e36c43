/** Images: ViT and its relatives, CLIP's two towers, an image encoder before a decoder, ResNet. */
import { invalidModel, noReader } from "../../model/errors/plan_errors.js";
import type { ModelConfig } from "./config.js";
import { activationOf } from "./decoder_parts.js";
import { LAYER_NORM, labelsOf, plainAttention, plainLayer } from "./encoder.js";
import type {
  Activation,
  ConvolutionLayer,
  HeadShape,
  LayerRun,
  TowerShape,
} from "./model_shape.js";
import { filledAs } from "./nested_defaults.js";
import { NO_HEAD } from "./parts.js";

export const VISION_FAMILIES: readonly string[] = [
  "vit",
  "deit",
  "dinov2",
  "vit_mae",
  "vit_msn",
  "ijepa",
];
/** Image encoders without a head. */
export const IMAGE_TOWER_FAMILIES: readonly string[] = ["clip_vision_model", "siglip_vision_model"];
export const TWO_TOWER_FAMILIES: readonly string[] = ["clip", "siglip", "chinese_clip"];

export const CLASS_HEAD = {
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
    throw invalidModel(config.source, `patches of ${patch} in an image of ${image}`);
  }
  const positions = Math.floor(image / patch) ** 2 + extra;
  const width =
    config.optionalSize("intermediate_size") ??
    Math.round(hidden * config.fraction(4, "mlp_ratio"));
  const isDino = config.family === "dinov2";
  const scaled = isDino ? 2 : 0;
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
    // A row for masked patches.
    otherParameters: isDino ? hidden : 0,
  };
}

/** Rows beside the patches: a class, and what DeiT distils into. */
const EXTRA_ROWS: Readonly<Record<string, number>> = { deit: 2, ijepa: 0 };

export function readImageClassifier(config: ModelConfig): { tower: TowerShape; head: HeadShape } {
  const { architecture, family } = config;
  const isClassifier = architecture === "" || architecture.endsWith("ForImageClassification");
  if (!isClassifier && !architecture.endsWith("Model")) {
    throw noReader(config.source, `${architecture} has no reader`);
  }
  const tower = imageTower(config, "encoder", EXTRA_ROWS[family] ?? 1);
  const { hidden } = tower;
  const pooler = ["vit", "deit"].includes(family) ? hidden * hidden + hidden : 0;
  const labels = labelsOf(config, 2);
  // The classifier of DINO reads the class beside the mean of all patches.
  const wide = family === "dinov2" && isClassifier ? hidden * labels : 0;
  const others = tower.otherParameters + wide + (isClassifier ? 0 : pooler);
  return {
    tower: { ...tower, otherParameters: others },
    head: isClassifier ? { ...CLASS_HEAD, outputs: labels } : NO_HEAD,
  };
}

/** The image encoder of CLIP or SigLIP, with its pooler. */
export function readImageTower(config: ModelConfig): { tower: TowerShape; head: HeadShape } {
  const own = filledAs(config, config.family);
  const isClip = config.family === "clip_vision_model";
  const tower = imageTower(own, "image", isClip ? 1 : 0, isClip ? "quick_gelu" : "gelu");
  const architecture = config.architecture;
  const projection = architecture.endsWith("WithProjection") ? own.count(512, "projection_dim") : 0;
  return {
    tower: {
      ...tower,
      embeddingNorm: isClip ? LAYER_NORM : null,
      otherParameters: isClip
        ? projection * tower.hidden
        : own.flag(true, "vision_use_head")
          ? siglipPooler(own)
          : 0,
    },
    head: NO_HEAD,
  };
}

/** CLIP and SigLIP: an image and a text for each sample, or the image alone for a classifier. */
export function readTwoTowers(config: ModelConfig): {
  towers: TowerShape[];
  head: HeadShape;
  longest: number;
} {
  const kind = config.family === "siglip" ? "siglip" : "clip";
  const isClip = kind === "clip";
  const visionPart = config.part("vision_config");
  const textPart = config.part("text_config");
  if (visionPart === null || textPart === null) {
    throw invalidModel(config.source, "vision_config or text_config is missing");
  }
  const { tower: image } = readImageTower(
    filledAs(visionPart, `${kind}_vision_model`).without("architectures"),
  );
  if (config.architecture.endsWith("ForImageClassification")) {
    const pooled = isClip ? { ...image, otherParameters: 0 } : image;
    return { towers: [pooled], head: { ...CLASS_HEAD, outputs: labelsOf(config, 2) }, longest: 0 };
  }
  const own = filledAs(textPart, `${kind}_text_model`);
  const projection = config.count(512, "projection_dim");
  const hidden = own.size("hidden_size");
  const width = own.size("intermediate_size");
  const positions = own.size("max_position_embeddings");
  const attention = plainAttention(own.size("num_attention_heads"), hidden, {
    bidirectional: !isClip,
  });
  const layer = plainLayer(attention, width, {
    mlp: {
      width,
      gated: false,
      activation: activationOf(own, isClip ? "quick_gelu" : "gelu"),
      bias: true,
      fused: false,
    },
  });
  return {
    towers: [
      isClip ? { ...image, otherParameters: projection * image.hidden } : image,
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
        layers: [{ count: own.layers("num_hidden_layers"), layer }],
        finalNorm: LAYER_NORM,
        // A scale of the similarities; SigLIP has a bias, too, and a linear head.
        otherParameters: isClip ? projection * hidden + 1 : hidden * hidden + hidden + 2,
      },
    ],
    head: { ...NO_HEAD, kind: "pairs" },
    longest: positions,
  };
}

/** SigLIP pools its rows through attention of one learned query and an MLP. */
export function siglipPooler(config: ModelConfig): number {
  const hidden = config.size("hidden_size");
  const width = config.size("intermediate_size");
  return 4 * hidden * hidden + 8 * hidden + 2 * hidden * width + width;
}

/** ResNet of transformers: a stem and stages of bottlenecks; the first block of a stage halves the image. */
export function readResnet(config: ModelConfig): { tower: TowerShape; head: HeadShape } {
  const sizes = config.sizes("hidden_sizes");
  const depths = config.sizes("depths");
  if (sizes.length === 0 || sizes.length !== depths.length || depths.some((depth) => depth > 200)) {
    throw invalidModel(config.source, "hidden_sizes and depths do not match");
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
    head: { ...CLASS_HEAD, outputs: labelsOf(config, 2) },
  };
}
