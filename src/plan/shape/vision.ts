/** Images: ViT and its relatives, CLIP's two towers, an image encoder before a decoder, ResNet. */
import { invalidModel, noReader } from "../../model/errors/plan_errors.js";
import type { AttentionShape } from "./attention_shape.js";
import type { ModelConfig } from "./config.js";
import { activationOf } from "./decoder_parts.js";
import { LAYER_NORM, labelsOf, plainAttention, plainLayer, readEncoder } from "./encoder.js";
import type {
  Activation,
  ConvolutionLayer,
  HeadShape,
  LayerRun,
  MlpShape,
  TowerShape,
} from "./model_shape.js";
import { filledAs } from "./nested_defaults.js";
import { NO_HEAD } from "./parts.js";

export const VISION_FAMILIES: readonly string[] = [
  "vit",
  "deit",
  "dinov2",
  "dinov2_with_registers",
  "dinov3_vit",
  "vit_mae",
  "vit_msn",
  "ijepa",
];
/** Image encoders without a head. */
export const IMAGE_TOWER_FAMILIES: readonly string[] = [
  "clip_vision_model",
  "siglip_vision_model",
  "siglip2_vision_model",
];
export const TWO_TOWER_FAMILIES: readonly string[] = ["clip", "siglip", "siglip2", "chinese_clip"];

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
  const patch = config.size("patch_size", "spatial_patch_size");
  const image = imageSide(config, patch);
  const channels = config.optionalSize("num_channels", "in_channels") ?? 3;
  if (patch > image) {
    throw invalidModel(config.source, `patches of ${patch} in an image of ${image}`);
  }
  const positions = Math.floor(image / patch) ** 2 + extra;
  const width =
    config.optionalSize("intermediate_size") ??
    Math.round(hidden * config.fraction(4, "mlp_ratio"));
  const isDino = config.family.startsWith("dino");
  const own = isDino ? dinoLayer(config, heads, { hidden, width }) : null;
  const bias = config.flag(true, "qkv_bias");
  const layer = plainLayer(plainAttention(heads, hidden, { bias, ...own?.attention }), width, {
    mlp: {
      width,
      gated: false,
      activation: activationOf(config, activation),
      bias: true,
      fused: false,
      ...own?.mlp,
    },
    scales: isDino ? 2 : 0,
  });
  return {
    name,
    hidden,
    positions,
    embeddings: [
      // Registers have no positions, and DINOv3 turns its queries and keys.
      ...(config.family === "dinov3_vit"
        ? []
        : [{ name: "position_embeddings", rows: positions - registersOf(config), width: hidden }]),
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

/** SigLIP 2 has a number of patches in place of a side, for images of any shape. */
function imageSide(config: ModelConfig, patch: number): number {
  const patches = config.family === "siglip2_vision_model" ? config.count(256, "num_patches") : 0;
  const [side] = Array.isArray(config.values.image_size) ? config.sizes("image_size") : [];
  return patches > 0
    ? Math.floor(Math.sqrt(patches)) * patch
    : (side ?? config.optionalSize("image_size") ?? 224);
}

function registersOf(config: ModelConfig): number {
  return config.family.startsWith("dino") && config.family !== "dinov2"
    ? config.count(config.family === "dinov2_with_registers" ? 4 : 0, "num_register_tokens")
    : 0;
}

/** Gated MLPs in the largest models; DINOv3 turns queries and keys of its patches, and keys have no bias. */
function dinoLayer(
  config: ModelConfig,
  heads: number,
  { hidden, width }: { readonly hidden: number; readonly width: number },
): { attention: Partial<AttentionShape>; mlp: Partial<MlpShape> } {
  if (config.family !== "dinov3_vit") {
    // Two thirds, in whole multiples of 8.
    const gated = { width: 8 * Math.ceil(Math.floor((2 * width) / 3) / 8), gated: true };
    return {
      attention: {},
      mlp: config.flag(false, "use_swiglu_ffn") ? { ...gated, activation: "silu" } : {},
    };
  }
  return {
    attention: {
      headSize: hidden / heads,
      bias: config.flag(true, "query_bias"),
      keyBias: config.flag(false, "key_bias"),
      outputBias: config.flag(true, "proj_bias"),
      rotary: true,
      rotaryShare: 1,
      // Rows of patches are joined with those that were not turned.
      contiguous: true,
      narrowSoftmax: true,
    },
    mlp: { gated: config.flag(false, "use_gated_mlp"), bias: config.flag(true, "mlp_bias") },
  };
}

/** Rows beside the patches: a class, and what DeiT distils into. */
const EXTRA_ROWS: Readonly<Record<string, number>> = { deit: 2, ijepa: 0 };

export function readImageClassifier(config: ModelConfig): { tower: TowerShape; head: HeadShape } {
  const { architecture, family } = config;
  const isClassifier =
    (architecture === "" && family !== "dinov3_vit") ||
    architecture.endsWith("ForImageClassification");
  if (!isClassifier && architecture !== "" && !architecture.endsWith("Model")) {
    throw noReader(config.source, `${architecture} has no reader`);
  }
  const extra = (EXTRA_ROWS[family] ?? 1) + registersOf(config);
  const tower = imageTower(config, "encoder", extra);
  const { hidden } = tower;
  const pooler = ["vit", "deit"].includes(family) ? hidden * hidden + hidden : 0;
  const labels = labelsOf(config, 2);
  // The classifier of DINO reads the class beside the mean of all patches.
  const wide = family.startsWith("dinov2") && isClassifier ? hidden * labels : 0;
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
    tower: isClip
      ? { ...tower, embeddingNorm: LAYER_NORM, otherParameters: projection * tower.hidden }
      : withPooler(own, tower),
    head: NO_HEAD,
  };
}

/** CLIP and SigLIP: an image and a text for each sample, or the image alone for a classifier. */
export function readTwoTowers(config: ModelConfig): {
  towers: TowerShape[];
  head: HeadShape;
  longest: number;
} {
  const kind = config.family.startsWith("siglip") ? config.family : "clip";
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
  const projected = isClip ? { ...image, otherParameters: projection * image.hidden } : image;
  if (config.family === "chinese_clip") {
    return withBert(textPart, projected, projection);
  }
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
      projected,
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

/** The text of Chinese CLIP is read by BERT, without a pooler. */
function withBert(
  text: ModelConfig,
  image: TowerShape,
  projection: number,
): ReturnType<typeof readTwoTowers> {
  const { tower, longest } = readEncoder(
    text.with({ model_type: "bert", architectures: ["BertForMaskedLM"] }),
  );
  const otherParameters = projection * tower.hidden + 1;
  return {
    towers: [image, { ...tower, name: "text", positions: longest, otherParameters }],
    head: { ...NO_HEAD, kind: "pairs" },
    longest,
  };
}

/**
 * SigLIP pools its rows through attention of one learned query and an MLP, which keeps the rows, their keys and their values.
 * SigLIP 2 multiplies its table of positions with a weight for each of them and each patch.
 */
export function withPooler(config: ModelConfig, tower: TowerShape): TowerShape {
  const hidden = config.size("hidden_size");
  const width = config.size("intermediate_size");
  const patches = typeof tower.positions === "number" ? tower.positions : 0;
  const resized = config.family === "siglip2_vision_model" ? patches ** 2 : 0;
  if (!config.flag(true, "vision_use_head")) {
    return { ...tower, otherSaved: resized };
  }
  return {
    ...tower,
    otherParameters: 4 * hidden * hidden + 8 * hidden + 2 * hidden * width + width,
    otherSaved: 3 * patches * hidden + resized,
  };
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
