/** A model's configuration as a shape: one reader for each kind of architecture. */
import { invalidModel, noReader } from "../../model/errors/plan_errors.js";
import { type JsonObject, ModelConfig } from "./config.js";
import { type DecoderShape, readDecoder } from "./decoder.js";
import { factsOf } from "./decoder_families.js";
import { DETECTION_FAMILIES, readDetector } from "./detection.js";
import { readUnet } from "./diffusion.js";
import { ENCODER_FAMILIES, readEncoder } from "./encoder.js";
import { GEMMA_FAMILIES, readGemma } from "./gemma.js";
import { HYBRID_FAMILIES, readHybrid } from "./hybrid.js";
import { IMAGE_AND_TEXT_FAMILIES, readImageAndText } from "./image_and_text.js";
import type { HeadShape, ModelShape, TowerShape } from "./model_shape.js";
import { filledAs } from "./nested_defaults.js";
import { oddFigures, requireConsistent } from "./odd_figures.js";
import { NO_HEAD } from "./parts.js";
import { PATCH_READERS } from "./patch_models.js";
import { readSequenceToSequence, SEQUENCE_FAMILIES } from "./sequence_to_sequence.js";
import { readSpeech, SPEECH_FAMILIES } from "./speech.js";
import { readStages, STAGE_FAMILIES } from "./stages.js";
import { readStateSpace, STATE_SPACE_FAMILIES } from "./state_space_models.js";
import { storedWeights, unknownType, unreadModules, unreadQuantization } from "./stored_weights.js";
import {
  IMAGE_TOWER_FAMILIES,
  readImageClassifier,
  readImageTower,
  readResnet,
  readTwoTowers,
  TWO_TOWER_FAMILIES,
  VISION_FAMILIES,
} from "./vision.js";

type Read = Pick<ModelShape, "towers" | "head"> &
  Partial<Pick<ModelShape, "longestSequence" | "declaredLongest" | "known" | "remarks">>;
type Reader = (config: ModelConfig) => Read;

/** @param source the file, for errors. @throws TidemarkError TM-E085 */
export function readShape(values: JsonObject, name: string, source: string): ModelShape {
  const config = ownConfig(new ModelConfig(values, source));
  requireConsistent(config);
  const read = readerOf(config)(config);
  checkHeads(read.towers, source);
  const family = config.family === "" ? config.text("_class_name") : config.family;
  const notes = [unknownType(config), unreadModules(config), unreadQuantization(config)].filter(
    (each) => each !== null,
  );
  return {
    family,
    name,
    known: true,
    stored: storedWeights(config),
    longestSequence: 0,
    ...read,
    remarks: [...(read.remarks ?? []), ...notes, ...oddFigures(config, read.towers)],
  };
}

/** Models with a name of their own that are those of another family, with other sizes. */
const ALIASES: Readonly<Record<string, string>> = {
  kimi_k2: "deepseek_v3",
  sarvam_mla: "deepseek_v3",
  sarvam_moe: "glm4_moe",
  exaone: "llama",
  internlm3: "llama",
  iquestcoder: "llama",
};

function ownConfig(config: ModelConfig): ModelConfig {
  const { family } = config;
  return Object.hasOwn(ALIASES, family) ? config.named(ALIASES[family] ?? family) : config;
}

/** @throws TidemarkError TM-E085 where a head would have a fraction of a row's elements */
function checkHeads(towers: readonly TowerShape[], source: string): void {
  for (const { hidden, layers } of towers) {
    for (const { layer } of layers) {
      const attention = layer.kind === "transformer" ? layer.attention : null;
      if (attention !== null && !Number.isInteger(attention.headSize)) {
        throw invalidModel(
          source,
          `${attention.heads} heads do not divide a hidden size of ${hidden}`,
        );
      }
    }
  }
}

const READERS: readonly { readonly families: readonly string[]; readonly read: Reader }[] = [
  { families: SEQUENCE_FAMILIES, read: withLongest(readSequenceToSequence) },
  { families: ENCODER_FAMILIES, read: withLongest(readEncoder) },
  { families: STATE_SPACE_FAMILIES, read: withLongest(readStateSpace) },
  { families: VISION_FAMILIES, read: withLongest(readImageClassifier) },
  { families: IMAGE_TOWER_FAMILIES, read: withLongest(readImageTower) },
  { families: SPEECH_FAMILIES, read: withLongest(readSpeech) },
  { families: STAGE_FAMILIES, read: withLongest(readStages) },
  { families: DETECTION_FAMILIES, read: withLongest(readDetector) },
  { families: ["resnet"], read: withLongest(readResnet) },
  { families: TWO_TOWER_FAMILIES, read: withLongest(readTwoTowers) },
  { families: IMAGE_AND_TEXT_FAMILIES, read: withLongest(readImageAndText) },
  { families: HYBRID_FAMILIES, read: withLongest(readHybrid) },
  { families: GEMMA_FAMILIES, read: withLongest(readGemma) },
];

function readerOf(config: ModelConfig): Reader {
  return (
    diffusionReader(config.text("_class_name")) ??
    READERS.find(({ families }) => families.includes(config.family))?.read ??
    readText
  );
}

interface Found extends Partial<Pick<ModelShape, "known" | "remarks">> {
  readonly tower?: TowerShape;
  readonly towers?: readonly TowerShape[];
  readonly head: HeadShape;
  readonly longest?: number;
}

function withLongest(read: (config: ModelConfig) => Found): Reader {
  return (config) => {
    const { tower, towers, head, longest, known, remarks } = read(config);
    return {
      towers: towers ?? (tower === undefined ? [] : [tower]),
      head,
      longestSequence: longest ?? 0,
      ...(known === undefined ? {} : { known }),
      ...(remarks === undefined ? {} : { remarks }),
    };
  };
}

function diffusionReader(kind: string): Reader | null {
  if (/^UNet2D/.test(kind)) {
    return (config) => ({ towers: [readUnet(config)], head: NO_HEAD });
  }
  return Object.hasOwn(PATCH_READERS, kind) ? (PATCH_READERS[kind] ?? null) : null;
}

/** Whether it describes a part beside its text (images, audio, a codec), which only a reader of its own can plan. */
function hasOtherParts({ values }: ModelConfig): boolean {
  return Object.entries(values).some(
    ([name, value]) =>
      name.endsWith("_config") &&
      name !== "text_config" &&
      name !== "quantization_config" &&
      typeof value === "object" &&
      value !== null,
  );
}

/** A decoder; one of an unknown family is read like Llama, for its weight files to confirm. */
function readText(config: ModelConfig): Read {
  const { family } = config;
  if (config.text("_class_name") !== "" && family === "") {
    throw noReader(
      config.source,
      `_class_name "${config.text("_class_name")}" has no reader`,
      "of diffusers, UNet2DModel, UNet2DConditionModel, DiT, PixArt, SD3 and Flux are read; put the weight files beside it for a plan by its tensors",
    );
  }
  const text = config.part("text_config");
  const isKnown = factsOf(family) !== null;
  if (!isKnown && hasOtherParts(config)) {
    throw noReader(config.source, `model_type "${family}" has no reader`);
  }
  // Nested once: a text_config has no text_config of its own.
  const own = text === null || isKnown ? config : filledAs(text, text.family);
  if (!own.has("hidden_size", "n_embd", "d_model")) {
    throw isKnown || family === ""
      ? invalidModel(own.source, "it has no hidden_size")
      : noReader(own.source, `model_type "${family}" has no reader`);
  }
  if (isKnown) {
    return decoderRead(readDecoder(own), own);
  }
  try {
    return decoderRead(readDecoder(own), own);
  } catch (error) {
    throw family === "" ? error : noReader(own.source, unread(family, error));
  }
}

function unread(family: string, error: unknown): string {
  const [, detail] = /does not describe a model: ([^;]+)/.exec(String(error)) ?? [];
  return `model_type "${family}" has no reader, and it is not built like Llama${detail === undefined ? "" : `: ${detail}`}`;
}

function decoderRead(shape: DecoderShape, config: ModelConfig): Read {
  const { tower, head, longest, declaredLongest, known } = shape;
  return {
    ...(declaredLongest === undefined ? {} : { declaredLongest }),
    towers: [tower],
    head,
    longestSequence: longest,
    known,
    remarks: known
      ? []
      : [
          `model_type "${config.family}" has no reader; planned as a decoder like Llama with the sizes of its configuration`,
        ],
  };
}
