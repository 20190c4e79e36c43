/**
 * Alternating updates (Baykal et al. 2023; Gemma3nTextAltUp of transformers 5.24): the rows are several streams. A layer
 * predicts all of them by a small matrix of each token, computes one, and corrects the others by what it has learned.
 */
import type { TransformerLayer } from "../shape/model_shape.js";
import type { Tensor } from "../tape/tape.js";
import type { LayerBuilder } from "./layer_builder.js";
import { fromLayerInput, GEMMA_NORM } from "./layer_inputs.js";
import { feedForward } from "./mlp.js";
import { normalized } from "./norms.js";

const FP32 = 4;

interface Place {
  readonly hidden: number;
  /** Attention to the normalized rows, with its output matrix. */
  readonly attend: (input: Tensor) => Tensor;
}

export function alternatingLayer(
  build: LayerBuilder,
  x: Tensor,
  layer: TransformerLayer,
  { hidden, attend }: Place,
): Tensor {
  const { tape } = build;
  const { count, lowRank } = layer.streams as NonNullable<TransformerLayer["streams"]>;
  const one = x.elements / count;
  const norm = (row: Tensor): Tensor => normalized(build, row, hidden, GEMMA_NORM);
  const predicted = predictions(build, x, hidden, count);
  const active = tape.slice(predicted, one);
  const normed = norm(active);
  const low = build.linear(normed, {
    name: "linear_left",
    inputs: hidden,
    outputs: lowRank,
    group: "mlp",
  });
  const learned = build.linear(low, {
    name: "linear_right",
    inputs: lowRank,
    outputs: hidden,
    group: "mlp",
  });
  const laurel = build.add(normed, norm(learned));
  const attended = build.add(active, norm(attend(normed)));
  const mixed = build.pointwise("scale", [build.add(attended, laurel)], []);
  const fed = layer.mlp === null ? mixed : feedForward(build, norm(mixed), hidden, layer.mlp);
  const activated = build.add(mixed, norm(fed));
  const corrected = corrections(build, predicted, activated, { hidden, count });
  const first = build.copy(tape.slice(corrected, one));
  const [scaled] = tape.op({
    name: "correct_output_scale",
    inputs: [first],
    makes: [{ elements: one, itemBytes: first.itemBytes }],
    saves: [first],
    parameters: [build.parameter("correct_output_scale", hidden, "vector")],
    pointwise: true,
  });
  const given = fromLayerInput(build, scaled as Tensor, hidden, layer.inputWidth ?? 0);
  // Added in place.
  return tape.op({
    name: "add_",
    inputs: [corrected, given],
    makes: [{ elements: corrected.elements, itemBytes: corrected.itemBytes }],
    view: true,
  })[0] as Tensor;
}

/** tanh of a small matrix of the normalized rows. */
function modalities(
  build: LayerBuilder,
  x: Tensor,
  { hidden, count }: { readonly hidden: number; readonly count: number },
): Tensor {
  const normed = normalized(build, x, hidden, GEMMA_NORM, "router_norm");
  const routed = build.linear(build.pointwise("scale", [normed], []), {
    name: "modality_router",
    inputs: hidden,
    outputs: count,
    group: "router",
  });
  const turned = build.pointwise("tanh", [build.cast(routed, FP32)], ["output"]);
  return build.cast(turned, x.itemBytes);
}

function predictions(build: LayerBuilder, x: Tensor, hidden: number, count: number): Tensor {
  const { tape } = build;
  const routed = modalities(build, tape.slice(x, x.elements / count), { hidden, count });
  const coefficients = build.linear(routed, {
    name: "prediction_coefs",
    inputs: count,
    outputs: count ** 2,
    group: "router",
  });
  const [product] = tape.op({
    name: "predictions",
    inputs: [x, coefficients],
    makes: [{ elements: x.elements, itemBytes: x.itemBytes }],
    saves: [x, coefficients],
    expensive: "matmul",
  });
  return build.copy(build.add(product as Tensor, x));
}

function corrections(
  build: LayerBuilder,
  predicted: Tensor,
  activated: Tensor,
  { hidden, count }: { readonly hidden: number; readonly count: number },
): Tensor {
  const known = build.tape.parameters.length;
  const routed = modalities(build, activated, { hidden, count });
  // The same norm and matrix as for the prediction.
  build.tape.parameters.length = known;
  const factors = build.linear(routed, {
    name: "correction_coefs",
    inputs: count,
    outputs: count,
    group: "router",
  });
  const onePlus = build.pointwise("add", [factors], []);
  const active = build.tape.slice(predicted, activated.elements);
  const difference = build.pointwise("sub", [activated, active], []);
  const repeated = build.copy(difference, predicted.elements);
  const product = build.pointwise("mul", [repeated, onePlus], [repeated, onePlus]);
  return build.add(product, predicted);
}

/** The first stream is the embedding, each other one a projection of it with the same magnitude. */
export function openStreams(build: LayerBuilder, x: Tensor, hidden: number, count: number): Tensor {
  const magnitude = magnitudeOf(build, x, hidden);
  const others = Array.from({ length: count - 1 }, () =>
    projectedStream(build, x, { hidden, magnitude, name: "altup_projections" }),
  );
  return build.join([x, ...others]);
}

/** The mean of all streams, each projected back. */
export function closeStreams(
  build: LayerBuilder,
  x: Tensor,
  hidden: number,
  count: number,
): Tensor {
  const one = (): Tensor => build.tape.slice(x, x.elements / count);
  const magnitude = magnitudeOf(build, one(), hidden);
  const others = Array.from({ length: count - 1 }, () =>
    projectedStream(build, one(), { hidden, magnitude, name: "altup_unembed_projections" }),
  );
  const all = build.join([one(), ...others]);
  const [mean] = build.tape.op({
    name: "mean",
    inputs: [all],
    makes: [{ elements: x.elements / count, itemBytes: x.itemBytes }],
  });
  return mean as Tensor;
}

/** The root of the mean square of each row. */
function magnitudeOf(build: LayerBuilder, x: Tensor, hidden: number): Tensor {
  const [mean] = build.tape.op({
    name: "pow",
    inputs: [x],
    makes: [{ elements: x.elements / hidden, itemBytes: x.itemBytes }],
    saves: [x],
  });
  return build.pointwise("pow", [mean as Tensor], [mean as Tensor]);
}

function projectedStream(
  build: LayerBuilder,
  x: Tensor,
  { hidden, magnitude, name }: { hidden: number; magnitude: Tensor; name: string },
): Tensor {
  const made = build.linear(x, { name, inputs: hidden, outputs: hidden, group: "mlp" });
  const own = magnitudeOf(build, made, hidden);
  const scaled = build.pointwise("mul", [made, magnitude], [made, magnitude]);
  return build.pointwise("div", [scaled, own], [scaled, own]);
}
