/**
 * Where llama.cpp puts the weights: the table of tokens in host memory, and as many layers as asked for on the device,
 * from the last one, with the output as one more (`-ngl`; llama-model.cpp, `load_tensors`). A tied head gets a copy of the
 * table.
 */
import type { Bytes } from "../../model/base/units.js";
import type { StageChoice } from "../blocks/model_tape.js";
import type { ServeOptions } from "../job/options.js";
import { convertsFile } from "../job/options.js";
import type { ModelShape } from "../shape/model_shape.js";
import type { Tape } from "../tape/tape.js";

/**
 * Families whose windows llama.cpp reads (`swa_type` in src/models/ of its architectures). Of all others, such as Mistral,
 * Phi-3, Qwen and StarCoder 2, it computes and caches the whole context.
 */
const WITH_WINDOWS =
  /^(?:gemma2|gemma3n?(?:_text)?|cohere2|gpt_oss|exaone4|olmo[23]|llama4(?:_text)?|smallthinker)$/;

export function hasWindows({ family }: ModelShape): boolean {
  return WITH_WINDOWS.test(family);
}

export interface Placement {
  readonly device: Bytes;
  readonly host: Bytes;
  readonly formula: string;
}

interface Pieces {
  readonly embedding: Bytes;
  readonly layers: readonly Bytes[];
  readonly output: Bytes;
}

/** @param stage of a pipeline: its layers, of all */
export function placedWeights(
  model: ModelShape,
  options: ServeOptions,
  { tape, stage }: { tape: Tape; stage: Required<StageChoice> },
): Placement {
  const pieces = piecesOf(model, options, tape);
  const { embedding, layers, output } = pieces;
  const asked = options.gpuLayers ?? Number.POSITIVE_INFINITY;
  const onDevice = Math.min(asked, layers.length);
  const hasOutput = asked > layers.length;
  const copied = model.head.tied ? embedding : 0;
  const sum = (bytes: readonly Bytes[]): Bytes => bytes.reduce((all, each) => all + each, 0);
  const isLast = stage.index === stage.count - 1;
  const device = sum(layers.slice(...stage.layers)) + (hasOutput && isLast ? output + copied : 0);
  const host =
    embedding + sum(layers.slice(0, layers.length - onDevice)) + (hasOutput ? 0 : output);
  return {
    device: device / options.tensor,
    host,
    formula: `${onDevice} of ${layers.length} layers${stage.count > 1 ? ` on ${stage.count} devices, here ${stage.layers[1] - stage.layers[0]}` : ""}${hasOutput ? " and the output" : ""}; the table of tokens${hasOutput ? "" : " and the output"} in host memory`,
  };
}

function piecesOf(model: ModelShape, options: ServeOptions, tape: Tape): Pieces {
  const { fileBytes, fileParts } = model.stored;
  if (
    options.quantize === null &&
    fileParts !== undefined &&
    fileBytes !== undefined &&
    !convertsFile(model, options)
  ) {
    const { embeddingBytes, layerBytes } = fileParts;
    const inLayers = layerBytes.reduce((sum, bytes) => sum + bytes, 0);
    return {
      embedding: embeddingBytes,
      layers: layerBytes,
      output: fileBytes - embeddingBytes - inLayers,
    };
  }
  const tower = model.towers.at(-1);
  const isLayer = (name: string): boolean =>
    name.startsWith(`${tower?.name}.`) && /\.\d+$/.test(name);
  const layers = new Map<string, Bytes>();
  let embedding = 0;
  let output = 0;
  for (const { unit, role, bytes } of tape.parameters) {
    // Of a divided model, the tape has the share of one device.
    const whole = bytes * options.tensor;
    const name = tape.units[unit]?.name ?? "";
    if (isLayer(name)) {
      layers.set(name, (layers.get(name) ?? 0) + whole);
    } else if (role === "embedding") {
      embedding += whole;
    } else {
      output += whole;
    }
  }
  return { embedding, layers: [...layers.values()], output };
}
