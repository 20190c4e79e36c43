/** The tape of a whole model, layer by layer, or of the layers of one pipeline stage. */

import { layersOf } from "../shape/layers.js";
import type { LayerShape, ModelShape, PatchLayer, TowerShape } from "../shape/model_shape.js";
import { type RecordedUnit, recordUnit, repeatUnit } from "../tape/repeat.js";
import type { Tensor } from "../tape/tape.js";
import { NO_DETAILS } from "./adapter_details.js";
import { closeStreams, openStreams } from "./alternating_updates.js";
import { convolutionLayer, PROMPT_POSITIONS, unetAttentionLayer } from "./convolution.js";
import { type EmbeddingPlace, embed } from "./embedding.js";
import { framesLayer } from "./frames.js";
import { headAndLoss } from "./head.js";
import { LayerBuilder } from "./layer_builder.js";
import { embedLayerInputs } from "./layer_inputs.js";
import { normalized } from "./norms.js";
import { patchLayer } from "./patch_layers.js";
import type { BlockRules } from "./rules.js";
import { stageLayer } from "./stage_layers.js";
import { stateSpaceLayer } from "./state_space.js";
import { tensorLayer } from "./tensor_layer.js";
import { transformerLayer } from "./transformer.js";

/** Part of the layers, for pipeline parallelism: stage `index` of `count`. */
export interface StageChoice {
  readonly index: number;
  readonly count: number;
  /** Its layers, from the first up to, but without, the second, where they are not divided evenly. */
  readonly layers?: readonly [number, number];
}

const WHOLE: StageChoice = { index: 0, count: 1 };

export function modelTape(model: ModelShape, rules: BlockRules, stage: StageChoice): LayerBuilder {
  const build = new LayerBuilder(rules);
  let other: { output: Tensor; positions: number } | null = null;
  const towers = model.towers;
  for (const [index, tower] of towers.entries()) {
    const last = index === towers.length - 1;
    const positions = positionsOf(tower, rules);
    const place: TowerPlace = {
      model,
      positions,
      other: readsEncoder(tower) ? other : null,
      stage,
      prompt: promptOf(build, tower),
    };
    const output = last
      ? towerTape(build, tower, place)
      : build.divided("tower", () => towerTape(build, tower, place));
    other = { output, positions };
    if (last && stage.index === stage.count - 1) {
      build.tape.beginUnit("head", [output], false);
      const rows = rules.headRows === "all" ? rules.batch * positions : rules.batch;
      // On another device than the table of tokens, a tied matrix is a copy.
      const head = stage.count === 1 ? model.head : { ...model.head, tied: false };
      headAndLoss(build, output, head, { hidden: tower.hidden, rows });
    }
  }
  return build;
}

/** The first token that a decoder writes, which reads what the encoder made of its text or speech. */
export function firstTokenTape(model: ModelShape, rules: BlockRules): LayerBuilder {
  const build = new LayerBuilder(rules);
  const [source, tower] = model.towers.slice(-2) as [TowerShape, TowerShape];
  const read = positionsOf(source, rules);
  build.tape.beginUnit("encoded", [], false);
  const encoded = build.tape.input(rules.batch * read * source.hidden, rules.computeBytes);
  encoded.storage.held = true;
  const output = towerTape(build, tower, {
    model,
    positions: positionsOf(tower, rules),
    other: { output: encoded, positions: read },
    stage: WHOLE,
    prompt: null,
  });
  build.tape.beginUnit("head", [output], false);
  headAndLoss(build, output, model.head, { hidden: tower.hidden, rows: rules.batch });
  return build;
}

/** Generation begins a decoder that reads an encoder with one token. */
function positionsOf(tower: TowerShape, { training, sequence }: BlockRules): number {
  if (tower.positions !== "sequence") {
    return tower.positions;
  }
  return !training && readsEncoder(tower) ? 1 : sequence;
}

export function readsEncoder({ layers }: TowerShape): boolean {
  return layers.some(({ layer }) => layer.kind === "transformer" && layer.cross !== null);
}

interface TowerPlace extends EmbeddingPlace {
  /** The encoded prompt that the layers of a UNet share; null: there is none. */
  readonly prompt: Tensor | null;
  readonly stage: StageChoice;
}

function promptOf({ tape, rules }: LayerBuilder, { layers }: TowerShape): Tensor | null {
  const width = Math.max(
    0,
    ...layers.map(({ layer }) => (layer.kind === "unet-attention" ? layer.contextSize : 0)),
  );
  return width === 0
    ? null
    : tape.input(rules.batch * PROMPT_POSITIONS * width, rules.computeBytes);
}

function towerTape(build: LayerBuilder, tower: TowerShape, place: TowerPlace): Tensor {
  const { tape, rules } = build;
  const { stage, positions } = place;
  tape.beginUnit(`${tower.name}.embedding`, [], false);
  const rows = rules.batch * positions;
  const residualBytes = rules.autocast ? rules.weightBytes : rules.computeBytes;
  let x: Tensor =
    stage.index === 0
      ? embed(build, tower, place, rows)
      : tape.input(rows * tower.hidden * streamsOf(tower), residualBytes, rules.training);
  if (rules.inputNeedsGradient) {
    x = { ...x, needsGradient: true };
  }
  embedLayerInputs(build, tower, stage.index === 0 ? x : null, { rows, itemBytes: residualBytes });
  const streams = streamsOf(tower);
  if (streams > 1 && stage.index === 0) {
    x = openStreams(build, x, tower.hidden, streams);
  }
  x = build.scatter(x);
  let prompt = promptRows(build, tower, place);
  if (rules.holdsInputs) {
    x.storage.held = true;
    holdMasks(build, tower, positions);
  }
  build.clipsLinears = tower.clipsLinears === true;
  const layers = layersOf(tower);
  const [from, to] = stage.layers ?? evenStage(layers.length, stage);
  const canRepeat = prompt === null && !variesByLayer(rules);
  let recorded: { layer: LayerShape; unit: RecordedUnit } | null = null;
  const parts = layers
    .slice(from, to)
    .flatMap((own, index) => own.map((layer) => ({ layer, index: from + index })));
  for (const { layer, index } of parts) {
    const inputs = prompt === null ? [x] : [x, prompt];
    tape.beginUnit(`${tower.name}.${index}`, inputs, true);
    const repeated =
      canRepeat && recorded?.layer === layer ? repeatUnit(tape, recorded.unit, x) : null;
    if (repeated !== null) {
      x = repeated;
      continue;
    }
    const ended = recordUnit(tape, x);
    const input = rules.castsInputs ? build.cast(x, rules.computeBytes) : x;
    let made: Tensor;
    if (layer.kind === "patches") {
      const streams = { image: input, prompt: prompt ?? input };
      ({ image: made, prompt } = patchLayer(build, streams, { layer, hidden: tower.hidden }));
    } else {
      made = oneLayer(build, input, layer, { tower, place });
    }
    build.release(x);
    if (input !== x) {
      build.release(input);
    }
    recorded = { layer, unit: ended(made) };
    x = made;
  }

  build.clipsLinears = false;
  if (tower.finalNorm !== null && stage.index === stage.count - 1) {
    tape.beginUnit(`${tower.name}.norm`, [x], false);
    x = streams > 1 ? closeStreams(build, x, tower.hidden, streams) : x;
    x = normalized(build, x, tower.hidden, tower.finalNorm);
  }
  return build.gather(x);
}

/** Streams of rows between the layers: one, unless these update several in turn. */
function streamsOf({ layers }: TowerShape): number {
  const [first] = layers;
  return first?.layer.kind === "transformer" ? (first.layer.streams?.count ?? 1) : 1;
}

export function evenStage(layers: number, { index, count }: StageChoice): [number, number] {
  return [Math.floor((layers * index) / count), Math.floor((layers * (index + 1)) / count)];
}

/** Whether layers of one shape may have other adapters or types than each other. */
function variesByLayer({ adapter, quantization }: BlockRules): boolean {
  return (adapter !== null && adapter.details !== NO_DETAILS) || quantization?.kept !== undefined;
}

/**
 * Masks of scores, one byte for each pair of positions: one for each window, and one for padding. generate() makes a mask of
 * ones even where nothing is padded, so that a window has a mask for each sequence.
 */
function holdMasks(build: LayerBuilder, tower: TowerShape, positions: number): void {
  const { masks, batch, attention, training } = build.rules;
  if (masks === "none" || attention !== "sdpa" || tower.positions !== "sequence") {
    return;
  }
  const windows = new Set(
    tower.layers.map(({ layer }) =>
      layer.kind === "transformer" ? (layer.attention?.window ?? 0) : 0,
    ),
  );
  for (const window of windows) {
    if (masks === "all" || (window > 0 && window < positions)) {
      const elements = (masks === "all" || !training ? batch : 1) * positions ** 2;
      const [mask] = build.tape.op({
        name: "mask",
        inputs: [],
        makes: [{ elements, itemBytes: 1 }],
      });
      (mask as Tensor).storage.held = true;
    }
  }
}

/** The prompt's rows in the layers' width; null: the layers read none, or make them themselves. */
function promptRows(
  build: LayerBuilder,
  { prompt, hidden }: TowerShape,
  { stage }: TowerPlace,
): Tensor | null {
  const { tape, rules } = build;
  if (prompt === undefined) {
    return null;
  }
  const rows = rules.batch * prompt.positions;
  const itemBytes = rules.autocast ? rules.weightBytes : rules.computeBytes;
  if (stage.index > 0) {
    return tape.input(rows * hidden, itemBytes, rules.training);
  }
  const linear = (x: Tensor, name: string, inputs: number): Tensor =>
    build.linear(x, { name, inputs, outputs: hidden, bias: true, group: "other" });
  const made = linear(tape.input(rows * prompt.width, itemBytes), "context", prompt.width);
  return prompt.projection === "linear"
    ? made
    : linear(build.activation(made, "gelu"), "context_2", hidden);
}

function oneLayer(
  build: LayerBuilder,
  x: Tensor,
  layer: Exclude<LayerShape, PatchLayer>,
  { tower, place }: { tower: TowerShape; place: TowerPlace },
): Tensor {
  build.tape.part = "residual";
  switch (layer.kind) {
    case "transformer":
      return transformerLayer(build, x, layer, {
        hidden: tower.hidden,
        positions: place.positions,
        // Frames of speech have one length, and the text that is decoded from them has no mask either.
        isText:
          tower.positions === "sequence" &&
          (place.other === null || place.model.towers[0]?.positions === "sequence"),
        other: place.other,
      });
    case "state-space":
      return stateSpaceLayer(build, x, tower.hidden, layer);
    case "convolution":
      return convolutionLayer(build, x, layer);
    case "stage":
      return stageLayer(build, x, layer);
    case "frames":
      return framesLayer(build, x, layer);
    case "tensors":
      return tensorLayer(build, x, layer, tower.hidden);
    case "unet-attention":
      return unetAttentionLayer(build, x, layer, place.prompt);
  }
}
