/** A model's folder, or one file of it, as a shape. Nothing is downloaded, and weights are not read: headers alone. */
import { readdirSync, type Stats } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileUnusable, TidemarkError } from "../../model/errors/errors.js";
import {
  asOtherFile,
  configOfJob,
  noModelFiles,
  noReader,
  notDownloaded,
} from "../../model/errors/plan_errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import { parameterCount } from "../model_facts.js";
import type { JsonObject } from "../shape/config.js";
import type { ModelShape, TowerShape } from "../shape/model_shape.js";
import { readShape } from "../shape/read_shape.js";
import { countedParameters } from "../tape/products.js";
import { readBounded, readJson, statOf } from "./bounded.js";
import { ggufHeader } from "./gguf.js";
import { safetensorsHeader, safetensorsOf, type WeightTensor } from "./safetensors.js";
import { configFromTensors } from "./tensor_config.js";
import { shapeOfTensors } from "./tensor_shape.js";

/** @param path a folder, a config.json, a .safetensors or a .gguf file. @throws TidemarkError TM-E003, TM-E004, TM-E008, TM-E085 */
export function readModel(path: string): ModelShape {
  const name = basename(resolve(path));
  if (statOfModel(path).isDirectory()) {
    return readFolder(path, name);
  }
  requireModelFile(path, name);
  if (path.endsWith(".gguf")) {
    return readGguf(path, name);
  }
  if (path.endsWith(".safetensors")) {
    return fromTensors(safetensorsHeader(path), name, path);
  }
  const values = readJson(path);
  requireModel(values, path);
  // "config.json" names every model alike.
  const own = name === "config.json" ? basename(dirname(resolve(path))) : name;
  return readable(readShape(values, own, path), path);
}

function statOfModel(path: string): Stats {
  try {
    return statOf(path, "model folder or file");
  } catch (error) {
    throw error instanceof TidemarkError && error.id === "TM-E003" && HUB_NAME.test(path)
      ? notDownloaded(path)
      : error;
  }
}

/** As models are named on Hugging Face. */
const HUB_NAME = /^[A-Za-z0-9][\w.-]*\/[A-Za-z0-9][\w.-]*$/;

/** @throws TidemarkError TM-E085 for a configuration of accelerate, which is no JSON */
function requireModelFile(path: string, name: string): void {
  if (/\.ya?ml$/.test(name)) {
    throw configOfJob(path, "it is not JSON; accelerate's configurations are such files");
  }
}

/** @throws TidemarkError TM-E085 for an adapter, or a configuration of DeepSpeed */
function requireModel(values: JsonObject, path: string): void {
  const base = values.base_model_name_or_path;
  if (values.peft_type !== undefined) {
    const of = typeof base === "string" && base !== "" ? ` of ${base.slice(0, 100)}` : "";
    throw configOfJob(path, `it configures an adapter${of}`);
  }
  if (values.zero_optimization !== undefined) {
    throw configOfJob(path, "it configures DeepSpeed");
  }
}

/** vLLM writes a few hundred lines before it serves; a log of requests may follow. */
const LARGEST_LOG = 256 * 2 ** 20;

/** A log as text. @throws TidemarkError TM-E003, TM-E004, TM-E008 */
export function readLog(path: string): string {
  try {
    return readBounded(path, LARGEST_LOG).toString("utf8");
  } catch (error) {
    throw asOtherFile(error, "is not a log", "name the file with the output of vLLM's start");
  }
}

function readFolder(folder: string, name: string): ModelShape {
  let names: string[];
  try {
    names = readdirSync(folder);
  } catch (error) {
    throw fileUnusable(folder, "read", reasonOf(error).message);
  }
  const found = safetensorsOf(folder, names);
  const tensors = typeof found === "string" ? null : found;
  if (names.includes("config.json")) {
    const file = join(folder, "config.json");
    const values = readJson(file);
    if (tensors !== null) {
      return configured(values, tensors, { name, source: file });
    }
    const model = readShape(values, name, file);
    const remarks = typeof found === "string" ? [`${found}; planned from config.json alone`] : [];
    return readable({ ...model, remarks: [...model.remarks, ...remarks] }, file);
  }
  if (typeof found === "string") {
    throw noModelFiles(folder, `it holds no config.json, and ${found}`);
  }
  if (names.includes("adapter_config.json")) {
    const file = join(folder, "adapter_config.json");
    requireModel(readJson(file), file);
  }
  if (tensors !== null) {
    return fromTensors(tensors, name, folder);
  }
  const gguf = names.filter((each) => each.endsWith(".gguf"));
  if (gguf.length === 1) {
    return readGguf(join(folder, gguf[0] as string), name);
  }
  throw noModelFiles(
    folder,
    gguf.length > 1 ? "it holds several GGUF files: name one" : "it holds no config.json",
  );
}

type Place = Record<"name" | "source", string>;

/** By its configuration, or where that has no reader by its tensors. */
function configured(
  values: JsonObject,
  tensors: readonly WeightTensor[],
  { name, source }: Place,
): ModelShape {
  try {
    return withWeightFiles(readShape(values, name, source), tensors, source);
  } catch (error) {
    const key = ["model_type", "_class_name"].find((each) => values[each] !== undefined);
    if (!isNotAModel(error) || (key !== undefined && !/ has no reader/.test(error.message))) {
      throw error;
    }
    const family = key === undefined ? "" : String(values[key]).slice(0, 60);
    const reason =
      key === undefined
        ? "config.json names no model_type"
        : `${key} "${family}" has no reader for these weights`;
    return shapeOfTensors(tensors, { name, family, source, reason });
  }
}

function isNotAModel(error: unknown): error is TidemarkError {
  return error instanceof TidemarkError && error.id === "TM-E085";
}

function fromTensors(tensors: readonly WeightTensor[], name: string, source: string): ModelShape {
  try {
    const model = readShape(configFromTensors(tensors, source), name, source);
    return withWeightFiles(
      {
        ...model,
        known: false,
        remarks: ["no config.json: sizes are read from the tensors, heads are guessed"],
      },
      tensors,
      source,
    );
  } catch (error) {
    if (!isNotAModel(error)) {
      throw error;
    }
    const reason = "there is no config.json, and the tensors are not those of a decoder like Llama";
    return shapeOfTensors(tensors, { name, family: "", source, reason });
  }
}

/** @throws TidemarkError TM-E085 for an unknown family without weight files, whose layers nothing confirms */
function readable(model: ModelShape, source: string): ModelShape {
  if (!model.known && model.weightFiles === undefined) {
    throw noReader(
      source,
      model.family === ""
        ? "it has no model_type, and no weight files lie beside it"
        : `model_type "${model.family}" has no reader, and no weight files lie beside it`,
    );
  }
  return model;
}

function readGguf(path: string, name: string): ModelShape {
  const { config, parameters, bytes, parts } = ggufHeader(path);
  const model = readShape(config, name, path);
  return corrected(
    {
      ...model,
      stored: {
        dtype: "fp16",
        quantization:
          bytes / parameters < 1.9
            ? {
                dtype: bytes / parameters < 0.9 ? "int4" : "int8",
                bytesPerWeight: bytes / parameters,
              }
            : null,
        fileBytes: bytes,
        fileParts: parts,
      },
      weightFiles: { parameters, bytes },
    },
    path,
  );
}

/** Elements of one stored byte, of types that pack several weights. */
function weightsOf({ dtype, shape, name }: WeightTensor): number {
  const elements = shape.reduce((product, size) => product * size, 1);
  const packed = /\.(?:qweight|weight_packed)$/.test(name) && dtype === "I32" ? 8 : 1;
  const isScale =
    /\.(?:scales|qzeros|g_idx|weight_scale(?:_inv)?|absmax|quant_map|nested_.*|SCB|weight_format)$/.test(
      name,
    );
  return isScale ? 0 : elements * (dtype === "U8" ? 2 : packed);
}

function withWeightFiles(
  model: ModelShape,
  tensors: readonly WeightTensor[],
  source: string,
): ModelShape {
  const loaded = tensors.filter(({ name }) => isLoaded(model, name, tensors));
  const bytes = loaded.reduce((sum, each) => sum + each.bytes, 0);
  const parameters = loaded.reduce((sum, each) => sum + weightsOf(each), 0);
  return Number.isSafeInteger(parameters) && parameters > 0
    ? corrected({ ...model, weightFiles: { parameters, bytes } }, source)
    : readable(model, source);
}

/**
 * Libraries leave out a second copy of a tied matrix (Falcon, T5) and layers beyond those of the configuration, which
 * predict several tokens (DeepSeek V3, GLM 4.5).
 */
function isLoaded(
  { head, towers }: ModelShape,
  name: string,
  tensors: readonly WeightTensor[],
): boolean {
  const isCopy =
    (head.tied && /^(?:lm_head|embed_out)\.weight$/.test(name) && tensors.length > 1) ||
    (/^(?:encoder|decoder)\.embed_tokens\.weight$/.test(name) &&
      tensors.some((each) => each.name === "shared.weight"));
  const [, index] = /^model\.layers\.(\d{1,4})\./.exec(name) ?? [];
  const layers = towers.at(-1)?.layers.reduce((sum, { count }) => sum + count, 0) ?? 0;
  return !isCopy && (index === undefined || towers.length > 1 || Number(index) < layers);
}

const SMALL_DIFFERENCE = 0.003;
/** Of the weights of an unknown family: with more, its layers are not those of Llama. */
const LARGEST_DIFFERENCE = 0.1;

/** Parameters that the weight files have and the shape does not are added to the last tower. */
function corrected(model: ModelShape, source: string): ModelShape {
  const stored = model.weightFiles?.parameters ?? 0;
  const planned =
    parameterCount(model) + model.towers.reduce((sum, { buffer = 0 }) => sum + buffer, 0);
  const missing = stored - planned;
  if (Math.abs(missing) <= SMALL_DIFFERENCE * stored) {
    return model;
  }
  const remark = `the weight files hold ${countedParameters(stored)} parameters, the configuration describes ${countedParameters(planned)}`;
  if (!model.known && Math.abs(missing) > LARGEST_DIFFERENCE * stored) {
    throw noReader(
      source,
      `model_type "${model.family}" has no reader, and it is not built like Llama: ${remark}`,
    );
  }
  const last = model.towers.at(-1) as TowerShape;
  const towers =
    missing > 0
      ? [...model.towers.slice(0, -1), { ...last, otherParameters: last.otherParameters + missing }]
      : model.towers;
  return { ...model, towers, known: false, remarks: [...model.remarks, remark] };
}
