/** An image encoder whose rows enter a decoder: LLaVA, PaliGemma, Gemma 3, Qwen-VL. One image for each sequence. */
import { invalidModel } from "../../model/errors/plan_errors.js";
import { ModelConfig } from "./config.js";
import { type DecoderShape, readDecoder } from "./decoder.js";
import { activationOf } from "./decoder_parts.js";
import { LAYER_NORM, plainAttention, plainLayer } from "./encoder.js";
import { GEMMA_FAMILIES, readGemma } from "./gemma.js";
import { HYBRID_FAMILIES, readHybrid } from "./hybrid.js";
import { readImageEncoder, UNFIXED_SIDE } from "./image_encoders.js";
import type { NormShape, TowerShape } from "./model_shape.js";
import { defaultsOf, filledAs } from "./nested_defaults.js";

export interface ImageAndTextShape extends Omit<DecoderShape, "tower"> {
  readonly towers: readonly TowerShape[];
  readonly remarks: readonly string[];
}

interface Family {
  /** `model_type` of the parts where the configuration does not name it. */
  readonly vision: string;
  readonly text: string;
  readonly projector: (place: ProjectorPlace) => Projector;
}

/** Widths of the image encoder's and the decoder's rows, and how many rows the image has. */
interface ProjectorPlace {
  readonly image: number;
  readonly text: number;
  readonly rows: number;
  readonly config: ModelConfig;
  readonly vision: ModelConfig;
}

/** What is between both: its parameters, and elements that it keeps of each image. */
interface Projector {
  readonly parameters: number;
  readonly saved: number;
}

/** Of two matrices, kept are the input of the first, and the input and the result of the activation. */
const twoLayers =
  (extra: (text: number) => number): Family["projector"] =>
  ({ image, text, rows, config }) => {
    const bias = config.flag(true, "multimodal_projector_bias") ? 2 * text : 0;
    return {
      parameters: image * text + text * text + bias + extra(text),
      saved: rows * (image + 2 * text),
    };
  };

/** A norm of the image's rows and a matrix. */
const ofGemma: Family["projector"] = ({ image, text, rows }) => ({
  parameters: image * text + image,
  saved: rows * image,
});

/** Mistral 3: a norm, a matrix that merges squares of rows, and two matrices. */
const ofMistral: Family["projector"] = ({ image, text, rows, config }) => {
  const merged = config.count(2, "spatial_merge_size") ** 2 || 1;
  const bias = config.flag(false, "multimodal_projector_bias") ? 2 * text : 0;
  return {
    parameters: image + merged * image * image + image * text + text * text + bias,
    // The norm's input and its result before and after the weights, in the layout of merged rows.
    saved: 3 * rows * image + (rows / merged) * (image + 2 * text),
  };
};

/** InternVL: squares of rows become one, then a norm and two matrices. */
const ofInternVl: Family["projector"] = ({ image, text, rows, config }) => {
  const merged = Math.round(1 / (config.fraction(0.5, "downsample_ratio") || 1)) ** 2 || 1;
  const wide = merged * image;
  return {
    parameters: 2 * wide + wide * text + text * text + 2 * text,
    saved: 2 * rows * image + 2 * (rows / merged) * text,
  };
};

/** Idefics 3 and SmolVLM: squares of rows become one, and a matrix. */
const ofIdefics: Family["projector"] = ({ image, text, rows, config }) => ({
  parameters: config.count(2, "scale_factor") ** 2 * image * text,
  saved: rows * image,
});

/** Llama 4: squares of rows become one, two matrices with an activation after each, and a third. */
const ofLlama4: Family["projector"] = ({ text, rows, vision }) => {
  const ratio = vision.fraction(0.5, "pixel_shuffle_ratio") || 1;
  const wide = vision.size("intermediate_size");
  const inner = vision.count(4096, "projector_input_dim");
  const output = vision.count(4096, "projector_output_dim");
  const last = vision.count(7680, "vision_output_dim");
  return {
    parameters: wide * inner + output * output + last * text,
    saved: Math.floor(rows * ratio ** 2) * (wide + 2 * inner + 2 * output),
  };
};

/** Gemma 4: a norm without weights of the pooled rows, which are in fp32 before it, and a matrix. */
const ofGemma4: Family["projector"] = ({ image, text, rows, vision }) => ({
  parameters: image * text,
  saved: (2 * rows * image) / vision.size("pooling_kernel_size") ** 2,
});

/** The image encoder ends with rows of the text's width. */
const NOTHING: Projector = { parameters: 0, saved: 0 };

/** LLaVA 1.6 and OneVision learn a row that ends each line of patches. */
const withNewline = twoLayers((text) => text);

const FAMILIES: Readonly<Record<string, Family>> = {
  llava: { vision: "clip_vision_model", text: "llama", projector: twoLayers(() => 0) },
  llava_next: { vision: "clip_vision_model", text: "llama", projector: withNewline },
  llava_next_video: { vision: "clip_vision_model", text: "llama", projector: withNewline },
  llava_onevision: { vision: "siglip_vision_model", text: "qwen2", projector: withNewline },
  paligemma: {
    vision: "siglip_vision_model",
    text: "gemma",
    projector: ({ image, text, rows }) => ({
      parameters: image * text + text,
      saved: rows * image,
    }),
  },
  gemma3: {
    vision: "siglip_vision_model",
    text: "gemma3_text",
    projector: ofGemma,
  },
  shieldgemma2: { vision: "siglip_vision_model", text: "gemma3_text", projector: ofGemma },
  mistral3: { vision: "pixtral", text: "mistral", projector: ofMistral },
  internvl: { vision: "internvl_vision", text: "qwen2", projector: ofInternVl },
  idefics3: { vision: "idefics3_vision", text: "llama", projector: ofIdefics },
  smolvlm: { vision: "smolvlm_vision", text: "llama", projector: ofIdefics },
  gemma4: { vision: "gemma4_vision", text: "gemma4_text", projector: ofGemma4 },
  glm4v: { vision: "glm4v_vision", text: "glm4v_text", projector: () => NOTHING },
  glm46v: { vision: "glm4v_vision", text: "glm4v_text", projector: () => NOTHING },
  glm4v_moe: { vision: "glm4v_vision", text: "glm4v_moe_text", projector: () => NOTHING },
  llama4: { vision: "llama4_vision_model", text: "llama4_text", projector: ofLlama4 },
};

/** `model_type` of the image encoder whose defaults a configuration leaves out. */
const QWEN_VISION: Readonly<Record<string, string>> = {
  qwen2_vl: "qwen2_vl_vision",
  qwen2_5_vl: "qwen2_5_vl_vision",
  qwen3_vl: "qwen3_vl_vision",
  qwen3_vl_moe: "qwen3_vl_vision",
  qwen3_5: "qwen3_5_vision",
  qwen3_5_moe: "qwen3_5_vision",
};
const QWEN_FAMILIES: readonly string[] = Object.keys(QWEN_VISION);

export const IMAGE_AND_TEXT_FAMILIES: readonly string[] = [
  ...Object.keys(FAMILIES),
  ...QWEN_FAMILIES,
];

const REMARK = "one image a sequence; its rows count as tokens of the sequence";

/** @throws TidemarkError TM-E085, also for a part of a family without a reader */
export function readImageAndText(config: ModelConfig): ImageAndTextShape {
  return QWEN_FAMILIES.includes(config.family) ? readQwen(config) : readProjected(config);
}

function partOf(config: ModelConfig, name: string, otherwise: string): ModelConfig {
  const part = config.part(name);
  if (part === null) {
    throw invalidModel(config.source, `${name} is missing`);
  }
  return filledAs(part, part.family === "" ? otherwise : part.family);
}

function readProjected(config: ModelConfig): ImageAndTextShape {
  const family = FAMILIES[config.family] as Family;
  if (config.family === "gemma4" && config.part("vision_config") === null) {
    return withAudio(config, { ...readText(config, family.text), remarks: [] });
  }
  const vision = partOf(config, "vision_config", family.vision);
  const { tower: image, remark } = readImageEncoder(vision);
  const decoder = readText(config, family.text);
  const rows = typeof image.positions === "number" ? image.positions : 0;
  const place = { image: image.hidden, text: decoder.tower.hidden, rows, config, vision };
  const { parameters, saved } = family.projector(place);
  return withAudio(config, {
    ...decoder,
    towers: [
      {
        ...image,
        otherParameters: image.otherParameters + parameters,
        otherSaved: (image.otherSaved ?? 0) + saved,
      },
      decoder.tower,
    ],
    remarks: [remark ?? REMARK],
  });
}

type Text = DecoderShape & { readonly towers: readonly TowerShape[] };

function readText(config: ModelConfig, otherwise: string): Text {
  const text = tiedAs(config, partOf(config, "text_config", otherwise));
  const decoder = GEMMA_FAMILIES.includes(text.family) ? readGemma(text) : readDecoder(text);
  return { ...decoder, towers: [decoder.tower] };
}

/** Of an encoder of speech nothing but its weights, which nothing reads while a batch has no audio (Gemma 4). */
function withAudio(config: ModelConfig, shape: ImageAndTextShape): ImageAndTextShape {
  const audio = config.part("audio_config");
  const text = shape.towers.at(-1);
  if (audio === null || text === undefined) {
    return shape;
  }
  const [first, ...rest] = shape.towers as [TowerShape, ...TowerShape[]];
  const own = audioParameters(filledAs(audio, "gemma4_audio"), text.hidden);
  return {
    ...shape,
    towers: [{ ...first, idleParameters: own }, ...rest],
  };
}

/** Conformer layers after two convolutions, and the matrix into the text's rows (Gemma4AudioModel, Gemma4AudioLayer). */
function audioParameters(audio: ModelConfig, text: number): number {
  const hidden = audio.size("hidden_size");
  const [first = 128, second = 32] = audio.sizes("subsampling_conv_channels");
  const output = audio.size("output_proj_dims");
  const heads = audio.size("num_attention_heads");
  // Norms: two of each MLP, two of the convolution, three of the layer.
  const layer =
    (2 * 8 + 5 + 3) * hidden ** 2 +
    9 * hidden +
    audio.size("conv_kernel_size") * hidden +
    Math.floor(hidden / heads);
  const convolutions = 9 * first + first + 9 * first * second + second;
  const projection = Math.floor(first / 4) * second * hidden;
  return (
    audio.layers("num_hidden_layers") * layer +
    convolutions +
    projection +
    hidden * output +
    output +
    output * text
  );
}

/** The whole configuration decides whether the head is the embedding's matrix. */
function tiedAs(config: ModelConfig, text: ModelConfig): ModelConfig {
  const { tie_word_embeddings } = config.values;
  return typeof tie_word_embeddings === "boolean"
    ? new ModelConfig({ ...text.values, tie_word_embeddings }, text.source)
    : text;
}

/** Patches of one window of an image, whose side is a whole number of the squares that the merger joins. */
function windowRows(vision: ModelConfig): number {
  const merge = vision.count(2, "spatial_merge_size");
  const side = Math.floor(vision.size("window_size") / vision.size("patch_size") / merge) * merge;
  return Math.max(1, side) ** 2;
}

const RMS: NormShape = { kind: "rms", bias: false, affine: true };

/** Blocks of two or three spatial axes that a merger joins, four rows into one of the decoder. */
function readQwen(config: ModelConfig): ImageAndTextShape {
  const { family } = config;
  const isFirst = family === "qwen2_vl";
  const isSecond = family === "qwen2_5_vl";
  const vision = partOf(config, "vision_config", "").filledFrom(
    defaultsOf(QWEN_VISION[family] ?? ""),
  );
  // Configurations of transformers 4 have the decoder's values beside those of the whole.
  const nested = config.part("text_config");
  const textFamily = isSecond ? "qwen2_vl_text" : `${family}_text`;
  const readText = HYBRID_FAMILIES.includes(textFamily) ? readHybrid : readDecoder;
  const decoder = readText(
    nested === null ? config.named(textFamily) : tiedAs(config, filledAs(nested, textFamily)),
  );
  const hidden = isFirst ? vision.size("embed_dim") : vision.size("hidden_size");
  const heads = vision.size("num_heads");
  const patch = vision.size("patch_size");
  const merged = hidden * vision.count(2, "spatial_merge_size") ** 2;
  const norm = isSecond ? RMS : LAYER_NORM;
  const width = vision.optionalSize("intermediate_size") ?? hidden * vision.count(4, "mlp_ratio");
  const text = decoder.tower.hidden;
  const out = isFirst
    ? vision.size("hidden_size")
    : (vision.optionalSize("out_hidden_size") ?? text);
  const merger = merged * merged + merged + merged * out + out;
  const deep = isFirst || isSecond ? 0 : vision.sizes("deepstack_visual_indexes").length;
  const side = Math.floor(UNFIXED_SIDE / patch);
  const whole = new Set(vision.sizes("fullatt_block_indexes"));
  const image: TowerShape = {
    name: "image",
    hidden,
    positions: side ** 2,
    embeddings:
      isFirst || isSecond
        ? []
        : [
            {
              name: "position_embeddings",
              rows: vision.size("num_position_embeddings"),
              width: hidden,
            },
          ],
    embeddingNorm: null,
    embeddingDropout: false,
    stems: [
      {
        name: "patch_embedding",
        input:
          vision.count(3, "in_channels", "in_chans") *
          vision.count(2, "temporal_patch_size") *
          patch ** 2,
        output: hidden,
        bias: !isFirst && !isSecond,
      },
    ],
    layers: Array.from({ length: vision.layers("depth") }, (_, index) => ({
      count: 1,
      layer: plainLayer(
        plainAttention(heads, hidden, {
          fused: true,
          rotary: true,
          rotaryShare: 1,
          ...(isSecond && !whole.has(index) ? { blockRows: windowRows(vision) } : {}),
        }),
        width,
        {
          norm,
          mlp: {
            width,
            gated: isSecond,
            activation: activationOf(vision, "gelu"),
            bias: true,
            fused: false,
          },
        },
      ),
    })),
    finalNorm: norm,
    otherParameters: merger + deep * (merger + 2 * merged),
    // Of each merger, the input of its first matrix, and the input and the result of its activation.
    otherSaved: 3 * (1 + deep) * side ** 2 * hidden,
  };
  return {
    ...decoder,
    towers: [image, decoder.tower],
    remarks: [
      `one image of ${UNFIXED_SIDE} x ${UNFIXED_SIDE} pixels a sequence; its rows count as tokens of the sequence`,
    ],
  };
}
