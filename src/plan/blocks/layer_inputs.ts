/**
 * Rows that the embedding makes for each layer (per-layer embeddings of Gemma 3n and Gemma 4): a table whose rows have a share
 * for each layer, added to a projection of the token's own row. A layer's share gates a part at its end.
 */

import { layerCount } from "../shape/layers.js";
import type { NormShape, TowerShape } from "../shape/model_shape.js";
import type { Tensor } from "../tape/tape.js";
import type { LayerBuilder } from "./layer_builder.js";
import { normalized } from "./norms.js";

const INDEX_BYTES = 8;
export const GEMMA_NORM: NormShape = {
  kind: "rms",
  bias: false,
  affine: true,
  wide: true,
  byPower: true,
};

/** @param x the embedding's rows; null in a later stage of a pipeline, which receives the shares of its layers */
export function embedLayerInputs(
  build: LayerBuilder,
  tower: TowerShape,
  x: Tensor | null,
  { rows, itemBytes }: { readonly rows: number; readonly itemBytes: number },
): void {
  if (tower.layerInputs === undefined) {
    return;
  }
  const { tape } = build;
  const own = tower.layerInputs;
  const width = own.width * layerCount(tower);
  if (x === null) {
    build.layerInputs = tape.input(rows * width, itemBytes, build.rules.training);
    return;
  }
  const [found] = tape.op({
    name: "embed_tokens_per_layer",
    inputs: [],
    makes: [{ elements: rows * width, itemBytes }],
    extraSaved: [rows * INDEX_BYTES],
    parameters: [
      build.parameter("embed_tokens_per_layer", own.rows * width, "embedding", own.rows),
    ],
  });
  const scaled = build.pointwise("scale", [found as Tensor], []);
  const projected = build.linear(x, {
    name: "per_layer_model_projection",
    inputs: tower.hidden,
    outputs: width,
    group: "mlp",
  });
  const normed = normalized(
    build,
    build.pointwise("scale", [projected], []),
    own.width,
    GEMMA_NORM,
    "per_layer_projection_norm",
  );
  const made = build.pointwise("scale", [build.add(normed, scaled)], []);
  made.storage.held = true;
  build.layerInputs = made;
}

/** projection(gelu(gate(x)) * share of this layer), after its norm. */
export function fromLayerInput(
  build: LayerBuilder,
  x: Tensor,
  hidden: number,
  width: number,
): Tensor {
  const gate = build.linear(x, {
    name: "per_layer_input_gate",
    inputs: hidden,
    outputs: width,
    group: "mlp",
  });
  const active = build.activation(gate, "gelu");
  const whole = build.layerInputs as Tensor;
  const share = build.tape.slice(whole, active.elements);
  const made = build.linear(build.pointwise("mul", [active, share], [active, share]), {
    name: "per_layer_projection",
    inputs: width,
    outputs: hidden,
    group: "mlp",
  });
  return normalized(build, made, hidden, GEMMA_NORM, "post_per_layer_input_norm");
}
