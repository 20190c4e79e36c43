/** The shape of a model that has no reader, from the names and sizes of its tensors alone. */
import { noReader } from "../../model/errors/plan_errors.js";
import type { LayerRun, ModelShape, StoredWeights, TensorLayer } from "../shape/model_shape.js";
import { NO_HEAD, NO_TEXT } from "../shape/parts.js";
import type { WeightTensor } from "./safetensors.js";

const DTYPES: Readonly<Record<string, StoredWeights["dtype"]>> = {
  F32: "fp32",
  F16: "fp16",
  BF16: "bf16",
};
/** Of the layers' elements that convolutions may have: what they keep depends on sizes that no weight shows. */
const MOST_CONVOLUTIONS = 0.2;

const EMBEDDING =
  /(?:embed_tokens|wte|tok_embeddings|word_embeddings|token_embedding|embed_in|shared)\.weight$/;
const HEAD = /(?:^|\.)(?:lm_head|output|embed_out)\.weight$/;

/**
 * Its numbered layers, each with its matrices; all other tensors count as parameters.
 * @param reason why no reader was used. @throws TidemarkError TM-E085 where the tensors do not show layers of matrices
 */
export function shapeOfTensors(
  tensors: readonly WeightTensor[],
  { name, family, source, reason }: Record<"name" | "family" | "source" | "reason", string>,
): ModelShape {
  const { layers, outside } = byLayer(tensors);
  const all = layers.flat();
  const matrices = all.filter(({ shape }) => shape.length === 2);
  const elementsIn = (of: readonly WeightTensor[]): number =>
    of.reduce((sum, { shape }) => sum + elementsOf(shape), 0);
  const dtype = DTYPES[mostFrequent(all.map((each) => each.dtype)) ?? ""];
  const hidden = mostFrequent(matrices.map(({ shape }) => shape[1] as number));
  const convolutions = all.filter(
    (each) => each.shape.length > 2 && each.shape.at(-1) !== 1 && !isExperts(each),
  );
  if (hidden === undefined || dtype === undefined) {
    throw noReader(source, `${reason}, and its tensors show no layers of 16-bit or fp32 matrices`);
  }
  if (elementsIn(convolutions) > MOST_CONVOLUTIONS * elementsIn(all)) {
    throw noReader(source, `${reason}, and convolutions cannot be planned by their tensors`);
  }
  const table = outside.find(({ name: own, shape }) => EMBEDDING.test(own) && shape.length === 2);
  const [rows = 1, width = hidden] = table?.shape ?? [];
  const isText = table !== undefined && width === hidden;
  const head = isText
    ? outside.find(({ name: own, shape }) => HEAD.test(own) && shape[0] === rows)
    : undefined;
  const counted = (isText ? rows * hidden : hidden) + (head === undefined ? 0 : rows * hidden);
  return {
    family,
    name,
    known: false,
    stored: { dtype, quantization: null },
    longestSequence: 0,
    towers: [
      {
        ...NO_TEXT,
        name: "model",
        hidden,
        positions: "sequence",
        embeddings: [{ name: "embedding", rows: isText ? rows : 1, width: hidden }],
        layers: layers.map((own): LayerRun => ({ count: 1, layer: layerOf(own, hidden) })),
        otherParameters: Math.max(0, elementsIn(outside) - counted),
      },
    ],
    head: isText
      ? { ...NO_HEAD, kind: "language", outputs: rows, tied: head === undefined }
      : NO_HEAD,
    remarks: [
      `${reason}; planned by its tensors: weights, gradients and optimizer states follow from them, activations are an estimate for --seq rows, without scores of attention`,
    ],
  };
}

/** Tensors of each numbered layer, in their order, and those of none. */
function byLayer(tensors: readonly WeightTensor[]): {
  layers: WeightTensor[][];
  outside: WeightTensor[];
} {
  const layers = new Map<string, WeightTensor[]>();
  const outside: WeightTensor[] = [];
  for (const tensor of tensors) {
    const [, place, rest] = /^(.*?(?:^|\.)\d{1,4})\.(.+)$/.exec(tensor.name) ?? [];
    if (place === undefined || rest === undefined) {
      outside.push(tensor);
    } else {
      const own = { ...tensor, name: rest };
      layers.set(place, [...(layers.get(place) ?? []), own]);
    }
  }
  return { layers: [...layers.values()].slice(0, MOST_LAYERS), outside };
}

const MOST_LAYERS = 1000;

/** Matrices of all experts as one tensor: experts x outputs x inputs, or the other way round. */
const isExperts = ({ name, shape }: WeightTensor): boolean =>
  shape.length === 3 && /(?:^|\.)experts(?:\.|$)/.test(name);

/** Of several experts the first stands for those that a token runs through; the others are parameters alone. */
function layerOf(tensors: readonly WeightTensor[], hidden: number): TensorLayer {
  const matrices = tensors.flatMap((each) => {
    const name = each.name.replace(/\.weight$/, "");
    const [outputs = 1, inputs = 1] = isExperts(each) ? each.shape.slice(1) : each.shape;
    const isTurned = isExperts(each) && inputs !== hidden && /up|gate|w1|w3/.test(name);
    return isExperts(each) || (each.shape.length === 2 && !/(?:^|\.)experts\.[1-9]\d*\./.test(name))
      ? [isTurned ? { name, inputs: outputs, outputs: inputs } : { name, inputs, outputs }]
      : [];
  });
  const inMatrices = matrices.reduce((sum, { inputs, outputs }) => sum + inputs * outputs, 0);
  const all = tensors.reduce((sum, { shape }) => sum + elementsOf(shape), 0);
  return { kind: "tensors", matrices, otherParameters: all - inMatrices };
}

function elementsOf(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}

function mostFrequent<Value>(values: readonly Value[]): Value | undefined {
  const counts = new Map<Value, number>();
  for (const value of values) {
    counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0];
}
