/** The head of a plan: the model's sizes. */
import type { PlanJson } from "../model/documents/plan_document.js";
import { modelTape } from "./blocks/model_tape.js";
import type { BlockRules } from "./blocks/rules.js";
import { longestFor } from "./job/longest.js";
import type { PlanOptions } from "./job/options.js";
import { bytesOfNextToken, cacheFormat, cacheShape, plainFormat } from "./serve/attention_cache.js";
import { isMoe, layerCount, readsText } from "./shape/layers.js";
import type { ModelShape, TransformerLayer } from "./shape/model_shape.js";
import type { Parameter } from "./tape/tape.js";

/** One token on one device without gradients: enough to count parameters. */
const COUNTING: BlockRules = {
  training: false,
  batch: 1,
  sequence: 1,
  context: 1,
  computeBytes: 2,
  weightBytes: 2,
  autocast: false,
  quantization: null,
  trainBase: false,
  adapter: null,
  inputNeedsGradient: false,
  attention: "flash",
  masks: "none",
  repeatsGroups: false,
  onCpu: false,
  fusesGroups: true,
  cachesKeys: false,
  headRows: "last",
  holdsInputs: false,
  loss: "full",
  compiled: false,
  lossCompiled: false,
  fusedGelu: false,
  fusedProjection: false,
  lossChunkRows: null,
  holdsLogits: "made",
  quantizedKeepsInput: false,
  dropout: false,
  tensorParallel: 1,
  castsInputs: false,
  flatGradients: false,
  gathersLogits: false,
  wholeTables: false,
  sequenceParallel: false,
  experts: { devices: 1, tensor: 1, copies: 1 },
  routedOver: 1,
  imbalance: 1,
};

/** Parameters of the whole model. */
export function parameterCount(model: ModelShape): number {
  return counted(model, ({ role }) => role !== "buffer");
}

/** Of the experts' matrices. */
export function expertParameters(model: ModelShape): number {
  return counted(model, ({ ofExperts, role }) => ofExperts === true && role === "matrix");
}

function counted(model: ModelShape, isWanted: (parameter: Parameter) => boolean): number {
  const { tape } = modelTape(model, COUNTING, { index: 0, count: 1 });
  return tape.parameters.filter(isWanted).reduce((sum, { elements }) => sum + elements, 0);
}

/** Parameters that one token uses. */
function activeParameters(model: ModelShape, all: number): number {
  let idle = 0;
  for (const { hidden, layers } of model.towers) {
    for (const { count, layer } of layers) {
      if (layer.kind === "transformer" && layer.mlp !== null && isMoe(layer.mlp)) {
        const { experts, perToken, expert, latent = hidden } = layer.mlp;
        idle += count * (experts - perToken) * latent * expert.width * (expert.gated ? 3 : 2);
      }
    }
  }
  return all - idle;
}

export function describeModel(
  model: ModelShape,
  options: PlanOptions,
  trainableParameters: number,
): PlanJson["model"] {
  const parameters = parameterCount(model);
  const tower = model.towers.at(-1);
  const attention = tower?.layers
    .map(({ layer }) => layer)
    .find(
      (layer): layer is TransformerLayer =>
        layer.kind === "transformer" && layer.attention !== null,
    )?.attention;
  const format =
    options.mode === "serve" ? cacheFormat(model, { ...options, tensor: 1 }) : plainFormat(2);
  return {
    name: model.name,
    family: model.family,
    known: model.known,
    parameters,
    activeParameters: activeParameters(model, parameters),
    trainableParameters,
    layers: model.towers.reduce((sum, tower) => sum + layerCount(tower), 0),
    ...(model.towers.length < 2
      ? {}
      : { towers: model.towers.map((each) => ({ name: each.name, layers: layerCount(each) })) }),
    hidden: tower?.hidden ?? 0,
    heads: attention?.heads ?? 0,
    kvHeads: attention?.kvHeads ?? 0,
    vocabulary: model.head.kind === "language" ? model.head.outputs : 0,
    longestSequence: longestFor(model, options),
    readsText: readsText(model),
    kvBytesPerToken: bytesOfNextToken(cacheShape(model, format)),
  };
}
