/**
 * Where llama.cpp puts the weights, and in which types: the table of tokens in host memory; on the device the output, and
 * as many layers as asked for, from the last one (`-ngl`; llama-model.cpp, `load_tensors`). A tied head gets a copy of the
 * table.
 */
import type { Bytes } from "../../model/base/units.js";
import type { StageChoice } from "../blocks/model_tape.js";
import { ggufTypes } from "../job/gguf_types.js";
import type { ServeOptions } from "../job/options.js";
import { convertsFile } from "../job/options.js";
import type { ModelShape } from "../shape/model_shape.js";
import { countedParameters, productsOf, productWords } from "../tape/products.js";
import type { Parameter, Tape } from "../tape/tape.js";
import { placedLayers } from "./stages.js";

/**
 * Families whose windows llama.cpp reads (`swa_type` in src/models/ of its architectures). Of all others, such as Mistral,
 * Phi-3, Qwen and StarCoder 2, it computes and caches the whole context.
 */
const WITH_WINDOWS =
  /^(?:gemma2|gemma(?:3n?|4)(?:_text)?|cohere2|gpt_oss|exaone4|olmo[23]|llama4(?:_text)?|smallthinker)$/;

export function hasWindows({ family }: ModelShape): boolean {
  return WITH_WINDOWS.test(family);
}

export interface Placement {
  readonly device: Bytes;
  readonly host: Bytes;
  readonly formula: string;
}

interface Piece {
  readonly elements: number;
  readonly bytes: Bytes;
}

/** Of one of the devices that divide each tensor. */
interface Pieces {
  readonly embedding: readonly Piece[];
  readonly layers: readonly (readonly Piece[])[];
  readonly output: readonly Piece[];
}

/** @param stage of a pipeline: its layers, of all */
export function placedWeights(
  model: ModelShape,
  options: ServeOptions,
  { tape, stage }: { tape: Tape; stage: Required<StageChoice> },
): Placement {
  const pieces = piecesOf(model, options, tape);
  const { embedding, layers, output } = pieces;
  const { layers: onDevice, hasOutput } = placedLayers(layers.length, options.gpuLayers);
  const isLast = stage.index === stage.count - 1;
  const device = [
    ...layers.slice(...stage.layers).flat(),
    ...(hasOutput && isLast ? [...output, ...(model.head.tied ? embedding : [])] : []),
  ];
  const host = [
    ...embedding,
    ...layers.slice(0, layers.length - onDevice).flat(),
    ...(hasOutput ? [] : output),
  ];
  const sizes = fileSizes(model, options);
  const place = [
    `${onDevice} of ${layers.length} layers`,
    stage.count > 1
      ? ` on ${stage.count} devices, here ${stage.layers[1] - stage.layers[0]}${hasOutput && isLast ? " and the output" : ""}`
      : hasOutput
        ? " and the output"
        : "",
    `; the table of tokens${hasOutput ? "" : " and the output"} in host memory`,
  ].join("");
  const count = countWords(device, tape);
  if (sizes !== null) {
    const inLayers = sum(sizes.layers.slice(...stage.layers));
    const copied = model.head.tied ? sizes.embedding : 0;
    return {
      device: (inLayers + (hasOutput && isLast ? sizes.output + copied : 0)) / options.tensor,
      host:
        sizes.embedding +
        sum(sizes.layers.slice(0, layers.length - onDevice)) +
        (hasOutput ? 0 : sizes.output),
      formula: `${count.elements} ${count.what}, each tensor in the type of the file; ${place}`,
    };
  }
  return {
    device: sum(device.map(({ bytes }) => bytes)),
    host: sum(host.map(({ bytes }) => bytes)) * options.tensor,
    formula:
      device.length === 0
        ? place
        : `${productWords(
            productsOf(device, ({ bytes }) => bytes),
            count.what,
          )}; in ${typeWords(model, options)}; ${place}`,
  };
}

function sum(bytes: readonly Bytes[]): Bytes {
  return bytes.reduce((all, each) => all + each, 0);
}

/** "4.483e9", "of 5.500e9 parameters" */
function countWords(device: readonly Piece[], tape: Tape): { elements: string; what: string } {
  const count = (pieces: readonly { elements: number }[]): number =>
    pieces.reduce((all, { elements }) => all + elements, 0);
  const all = count(tape.parameters);
  const here = count(device);
  return {
    elements: countedParameters(here),
    what: here === all ? "parameters" : `of ${countedParameters(all)} parameters`,
  };
}

function typeWords(model: ModelShape, options: ServeOptions): string {
  const types = quantizedTypes(model, options);
  const stored = options.quantize === null ? model.stored.quantization : null;
  const matrices =
    types === null
      ? stored === null
        ? options.dtype
        : `${stored.dtype} as the checkpoint has it`
      : types.output === types.name
        ? types.name
        : `${types.name}, ${model.head.tied ? "the table of tokens" : "the output"} in ${types.output}`;
  return `${matrices}, vectors in fp32`;
}

function quantizedTypes(model: ModelShape, { quantize }: ServeOptions) {
  return quantize === null ? null : ggufTypes(quantize, model.towers.at(-1)?.hidden ?? 0);
}

/** Bytes of a GGUF file's tensors; null where the weights are counted. */
function fileSizes(
  model: ModelShape,
  options: ServeOptions,
): { embedding: Bytes; layers: readonly Bytes[]; output: Bytes } | null {
  const { fileBytes, fileParts } = model.stored;
  if (
    options.quantize !== null ||
    fileParts === undefined ||
    fileBytes === undefined ||
    convertsFile(model, options)
  ) {
    return null;
  }
  const { embeddingBytes, layerBytes } = fileParts;
  return {
    embedding: embeddingBytes,
    layers: layerBytes,
    output: fileBytes - embeddingBytes - sum(layerBytes),
  };
}

function piecesOf(model: ModelShape, options: ServeOptions, tape: Tape): Pieces {
  const tower = model.towers.at(-1);
  const isLayer = (name: string): boolean =>
    name.startsWith(`${tower?.name}.`) && /\.\d+$/.test(name);
  const types = quantizedTypes(model, options);
  const bytesOf = (parameter: Parameter, isOutput: boolean): Bytes => {
    const { elements, role, bytes, name } = parameter;
    if (role === "vector" || name === ROUTER) {
      return elements * FP32;
    }
    return types === null
      ? bytes
      : elements * (isOutput ? types.outputBytesPerWeight : types.bytesPerWeight);
  };
  const layers = new Map<string, Piece[]>();
  const embedding: Piece[] = [];
  const output: Piece[] = [];
  for (const parameter of tape.parameters) {
    const { unit, role, elements } = parameter;
    const name = tape.units[unit]?.name ?? "";
    if (isLayer(name)) {
      const own = layers.get(name) ?? [];
      own.push({ elements, bytes: bytesOf(parameter, false) });
      layers.set(name, own);
    } else if (role === "embedding") {
      embedding.push({ elements, bytes: bytesOf(parameter, model.head.tied) });
    } else {
      output.push({ elements, bytes: bytesOf(parameter, name === "head") });
    }
  }
  return { embedding, layers: [...layers.values()], output };
}

const FP32 = 4;
const ROUTER = "router";
