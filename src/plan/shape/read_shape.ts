/** A model's configuration as a shape: one reader for each kind of architecture. */
import { notAModel } from "../../model/errors/plan_errors.js";
import { type JsonObject, ModelConfig } from "./config.js";
import { readDecoder } from "./decoder.js";
import { NO_HEAD, readDiffusionTransformer, readUnet } from "./diffusion.js";
import { ENCODER_FAMILIES, readEncoder } from "./encoder.js";
import type { ModelShape } from "./model_shape.js";
import { readSequenceToSequence, SEQUENCE_FAMILIES } from "./sequence_to_sequence.js";
import { readJamba, readStateSpace, STATE_SPACE_FAMILIES } from "./state_space_models.js";
import { storedWeights } from "./stored_weights.js";
import {
  readImageAndText,
  readImageClassifier,
  readResnet,
  readTwoTowers,
  TWO_TOWER_FAMILIES,
  VISION_FAMILIES,
} from "./vision.js";

type Read = Pick<ModelShape, "towers" | "head"> &
  Partial<Pick<ModelShape, "longestSequence" | "known" | "remarks">>;

/** @param source the file, for errors. @throws TidemarkError TM-E085 */
export function readShape(values: JsonObject, name: string, source: string): ModelShape {
  const config = new ModelConfig(values, source);
  const read = readerOf(config)(config);
  const family = config.family === "" ? config.text("_class_name") : config.family;
  return {
    family,
    name,
    known: true,
    stored: storedWeights(config),
    longestSequence: 0,
    remarks: [],
    ...read,
  };
}

function readerOf(config: ModelConfig): (config: ModelConfig) => Read {
  const { family } = config;
  const diffusion = diffusionReader(config.text("_class_name"));
  if (diffusion !== null) {
    return diffusion;
  }
  if (SEQUENCE_FAMILIES.includes(family)) {
    return (own) => {
      const { towers, head, longest } = readSequenceToSequence(own);
      return { towers, head, longestSequence: longest };
    };
  }
  if (ENCODER_FAMILIES.includes(family)) {
    return (own) => {
      const { tower, head, longest } = readEncoder(own);
      return { towers: [tower], head, longestSequence: longest };
    };
  }
  if (STATE_SPACE_FAMILIES.includes(family)) {
    return oneTower(readStateSpace);
  }
  if (VISION_FAMILIES.includes(family)) {
    return oneTower(readImageClassifier);
  }
  if (family === "resnet") {
    return oneTower(readResnet);
  }
  if (TWO_TOWER_FAMILIES.includes(family)) {
    return (own) => {
      const { towers, longest } = readTwoTowers(own);
      return { towers, head: NO_HEAD, longestSequence: longest };
    };
  }
  return family === "jamba" ? (own) => decoderRead(readJamba(own), own) : readText;
}

function oneTower(
  read: (config: ModelConfig) => { tower: ModelShape["towers"][number]; head: ModelShape["head"] },
) {
  return (config: ModelConfig): Read => {
    const { tower, head } = read(config);
    return { towers: [tower], head };
  };
}

function diffusionReader(kind: string): ((config: ModelConfig) => Read) | null {
  if (/^UNet2D/.test(kind)) {
    return (config) => ({ towers: [readUnet(config)], head: NO_HEAD });
  }
  if (/Transformer2DModel$|^DiT/.test(kind)) {
    const known = /^(?:DiT|PixArt|Transformer2D)/.test(kind);
    return (config) => ({
      towers: [readDiffusionTransformer(config)],
      head: NO_HEAD,
      known: known && !/PixArt/.test(kind),
      remarks: known ? [] : [`${kind} is planned as a DiT with the sizes of its configuration`],
    });
  }
  return null;
}

/** A decoder, alone or behind an image encoder. */
function readText(config: ModelConfig): Read {
  const text = config.part("text_config");
  if (text !== null && config.part("vision_config") !== null) {
    const { towers, head, longest, known } = readImageAndText(config);
    return {
      towers,
      head,
      longestSequence: longest,
      known,
      remarks: ["one image a sequence; its rows count as tokens of the sequence"],
    };
  }
  // Nested once: a text_config has no text_config of its own.
  return readDecoderAlone(text ?? config);
}

function readDecoderAlone(config: ModelConfig): Read {
  if (!config.has("hidden_size", "n_embd", "d_model")) {
    throw notAModel(config.source, "it has no hidden_size");
  }
  return decoderRead(readDecoder(config), config);
}

function decoderRead(
  { tower, head, longest, known }: ReturnType<typeof readDecoder>,
  config: ModelConfig,
): Read {
  return {
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
