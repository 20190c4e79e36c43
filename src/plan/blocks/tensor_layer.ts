/**
 * A layer of which only the matrices are known: a norm, whose output all matrices of the layer's width read, and the
 * result of each of them, kept once. What other matrices read is kept, too, and their results are added to the input.
 */
import type { TensorLayer } from "../shape/model_shape.js";
import type { Tensor } from "../tape/tape.js";
import type { LayerBuilder } from "./layer_builder.js";
import { normalized } from "./norms.js";

const NORM = { kind: "layer", bias: false, affine: false } as const;

export function tensorLayer(
  build: LayerBuilder,
  x: Tensor,
  { matrices, otherParameters }: TensorLayer,
  hidden: number,
): Tensor {
  const { tape } = build;
  const rows = x.elements / hidden;
  if (otherParameters > 0) {
    tape.parameters.push(build.parameter("other", otherParameters, "vector"));
  }
  const normed = normalized(build, x, hidden, NORM);
  let sum = x;
  for (const { name, inputs, outputs } of matrices) {
    tape.part = /att/i.test(name) ? "attention" : "mlp";
    const group = tape.part === "attention" ? "attention" : "mlp";
    const reads = inputs === hidden;
    const source = reads ? normed : resized(build, normed, rows * inputs);
    const made = build.linear(source, { name, inputs, outputs, group });
    const result = reads ? build.pointwise("result", [made], [made]) : made;
    tape.part = "residual";
    sum = outputs === hidden ? build.add(sum, result) : sum;
  }
  return sum;
}

function resized(build: LayerBuilder, from: Tensor, elements: number): Tensor {
  const [made] = build.tape.op({
    name: "input",
    inputs: [from],
    makes: [{ elements, itemBytes: from.itemBytes }],
    pointwise: true,
  });
  return made as Tensor;
}
