/** Transformers of diffusers over patches of a latent image: DiT, PixArt, SD3, Flux. */
import { invalidModel, noReader } from "../../model/errors/plan_errors.js";
import type { AttentionShape } from "./attention_shape.js";
import type { ModelConfig } from "./config.js";
import { plainAttention, plainLayer } from "./encoder.js";
import type { LayerRun, ModelShape, PatchLayer, TowerShape } from "./model_shape.js";
import { NO_HEAD, NO_TEXT } from "./parts.js";

type Read = Pick<ModelShape, "towers" | "head"> & Partial<Pick<ModelShape, "remarks">>;

/** By `_class_name`; the first checkpoints of DiT and PixArt have the name that diffusers had for all such transformers. */
export const PATCH_READERS: Readonly<Record<string, (config: ModelConfig) => Read>> = {
  DiTTransformer2DModel: readDit,
  Transformer2DModel: (config) =>
    config.text("norm_type") === "ada_norm_single" ? readPixart(config) : readDit(config),
  PixArtTransformer2DModel: readPixart,
  SD3Transformer2DModel: readSd3,
  FluxTransformer2DModel: readFlux,
};

interface Sizes {
  readonly heads: number;
  readonly hidden: number;
  readonly patch: number;
  readonly channels: number;
  readonly outputs: number;
  readonly positions: number;
}

function sizesOf(config: ModelConfig, usual: { side: number; patch: number }): Sizes {
  const heads = config.size("num_attention_heads");
  const patch = config.count(usual.patch, "patch_size") || 1;
  const channels = config.size("in_channels");
  return {
    heads,
    hidden: heads * config.size("attention_head_dim"),
    patch,
    channels,
    outputs: patch ** 2 * (config.count(0, "out_channels") || channels),
    positions:
      Math.max(1, Math.floor((config.optionalSize("sample_size") ?? usual.side) / patch)) ** 2,
  };
}

function towerOf(sizes: Sizes, changes: Partial<TowerShape>): TowerShape {
  const { channels, patch, hidden, positions } = sizes;
  return {
    ...NO_TEXT,
    name: "transformer",
    hidden,
    positions,
    stems: [{ name: "patch_embedding", input: channels * patch ** 2, output: hidden, bias: true }],
    layers: [],
    otherParameters: 0,
    ...changes,
  };
}

/** Two matrices with biases, as diffusers embeds the time step, the guidance and the pooled prompt. */
function embedded(inputs: number, hidden: number): number {
  return (inputs + 1) * hidden + (hidden + 1) * hidden;
}

const STEP_WIDTH = 256;

/** Each layer's norms are shifted and scaled by the condition, which it embeds by itself. */
function readDit(config: ModelConfig): Read {
  const sizes = sizesOf(config, { side: 32, patch: 2 });
  const { heads, hidden, outputs } = sizes;
  if (config.text("norm_type") !== "ada_norm_zero" || config.has("cross_attention_dim")) {
    throw noReader(
      config.source,
      `a transformer over patches with norm_type "${config.text("norm_type")}" is neither DiT nor PixArt and has no reader`,
    );
  }
  const layers = config.layers("num_layers");
  const layer = plainLayer(plainAttention(heads, hidden, { alwaysFused: true }), 4 * hidden, {
    norm: { kind: "layer", bias: false, affine: false },
    cross: null,
    modulation: 6,
    mlp: { width: 4 * hidden, gated: false, activation: "gelu", bias: true, fused: false },
  });
  const tower = towerOf(sizes, {
    layers: [{ count: layers, layer }],
    // One more class stands for none.
    otherParameters:
      layers *
      (embedded(STEP_WIDTH, hidden) + (config.count(0, "num_embeds_ada_norm") + 1) * hidden),
  });
  return { towers: [tower], head: { ...NO_HEAD, kind: "patches", outputs } };
}

function patchLayers(
  count: number,
  streams: PatchLayer["streams"],
  attention: AttentionShape,
  dual = false,
): LayerRun {
  return { count, layer: { kind: "patches", streams, attention, dual } };
}

/** Tokens of T5 in the published scripts; Sigma's configurations switch the conditions of size off. */
const ALPHA_PROMPT = 120;
const SIGMA_PROMPT = 300;

function readPixart(config: ModelConfig): Read {
  const sizes = sizesOf(config, { side: 128, patch: 2 });
  const { heads, hidden, outputs } = sizes;
  if (config.count(hidden, "cross_attention_dim") !== hidden) {
    throw invalidModel(config.source, "cross_attention_dim differs from the width of the layers");
  }
  const ofSize = config.flag(
    (config.optionalSize("sample_size") ?? 128) === 128,
    "use_additional_conditions",
  );
  const isSigma = config.values.use_additional_conditions === false;
  const prompt = isSigma ? SIGMA_PROMPT : ALPHA_PROMPT;
  const third = Math.floor(hidden / 3);
  const tower = towerOf(sizes, {
    layers: [patchLayers(config.layers("num_layers"), "prompt", plainAttention(heads, hidden))],
    prompt: {
      positions: prompt,
      width: config.count(4096, "caption_channels"),
      projection: "mlp",
    },
    otherParameters:
      embedded(STEP_WIDTH, hidden) +
      (hidden + 1) * 6 * hidden +
      (ofSize ? 2 * embedded(STEP_WIDTH, third) : 0),
  });
  return {
    towers: [tower],
    head: { ...NO_HEAD, kind: "patches", outputs, table: true },
    remarks: [`planned with a prompt of ${prompt} tokens`],
  };
}

/** 77 tokens of CLIP and 256 of T5, as the pipeline joins them. */
const SD3_PROMPT = 333;

function readSd3(config: ModelConfig): Read {
  const sizes = sizesOf(config, { side: 128, patch: 2 });
  const { heads, hidden, outputs } = sizes;
  if (config.size("caption_projection_dim") !== hidden) {
    throw invalidModel(
      config.source,
      "caption_projection_dim differs from the width of the layers",
    );
  }
  const count = config.layers("num_layers");
  const dual = new Set(config.sizes("dual_attention_layers"));
  const attention = plainAttention(heads, hidden, {
    alwaysFused: true,
    queryKeyNorm: config.text("qk_norm") === "" ? "none" : "head",
    normKernel: "diffusers",
    contiguous: true,
  });
  const layers = Array.from({ length: count }, (_, index) =>
    patchLayers(1, index === count - 1 ? "last" : "double", attention, dual.has(index)),
  );
  const tower = towerOf(sizes, {
    layers,
    prompt: {
      positions: SD3_PROMPT,
      width: config.size("joint_attention_dim"),
      projection: "linear",
    },
    buffer: config.count(96, "pos_embed_max_size") ** 2 * hidden,
    otherParameters:
      embedded(STEP_WIDTH, hidden) + embedded(config.size("pooled_projection_dim"), hidden),
  });
  return {
    towers: [tower],
    head: { ...NO_HEAD, kind: "patches", outputs },
    remarks: [`planned with a prompt of ${SD3_PROMPT} tokens`],
  };
}

const FLUX_PROMPT = 512;
/** 1024 x 1024 pixels: 8 for each latent, of which 2 x 2 are one position. */
const FLUX_SIDE = 64;

function readFlux(config: ModelConfig): Read {
  const sizes = { ...sizesOf(config, { side: 1, patch: 1 }), positions: FLUX_SIDE ** 2 };
  const { heads, hidden, outputs } = sizes;
  const attention = plainAttention(heads, hidden, {
    alwaysFused: true,
    queryKeyNorm: "head",
    normKernel: "torch",
    rotary: true,
    rotaryShare: 1,
  });
  const tower = towerOf(sizes, {
    layers: [
      patchLayers(config.layers("num_layers"), "double", attention),
      patchLayers(config.layers("num_single_layers"), "single", attention),
    ],
    prompt: {
      positions: FLUX_PROMPT,
      width: config.size("joint_attention_dim"),
      projection: "linear",
    },
    otherParameters:
      (config.flag(false, "guidance_embeds") ? 2 : 1) * embedded(STEP_WIDTH, hidden) +
      embedded(config.size("pooled_projection_dim"), hidden),
  });
  return {
    towers: [tower],
    head: { ...NO_HEAD, kind: "patches", outputs },
    remarks: [
      `planned with images of 1024 x 1024 pixels, because the configuration names no size, and a prompt of ${FLUX_PROMPT} tokens`,
    ],
  };
}
