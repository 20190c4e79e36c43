/** What a speech encoder runs before its transformer: convolutions of samples, a projection, positions (Wav2Vec2, HuBERT). */
import type { FramesLayer, NormShape } from "../shape/model_shape.js";
import type { Tensor } from "../tape/tape.js";
import { convolution, groupNorm } from "./convolution.js";
import type { LayerBuilder } from "./layer_builder.js";
import { normalized } from "./norms.js";

const NORM: NormShape = { kind: "layer", bias: true, affine: true };

export function framesLayer(build: LayerBuilder, x: Tensor, layer: FramesLayer): Tensor {
  build.tape.part = "convolution";
  switch (layer.block) {
    case "convolution":
      return frames(build, x, layer);
    case "projection":
      return build.linear(
        layer.norm === "none" ? x : normalized(build, x, layer.inputs, NORM, "feature_norm"),
        { name: "projection", ...layer, group: "other" },
      );
    case "positions":
      return withPositions(build, x, layer);
  }
}

function frames(build: LayerBuilder, x: Tensor, layer: FramesLayer): Tensor {
  const { inputs, outputs, kernel, stride, norm, bias } = layer;
  const { batch } = build.rules;
  const read = x.elements / batch / inputs;
  const made = convolution(build, x, {
    name: "conv",
    weights: inputs * outputs * kernel,
    outputs,
    elements: batch * outputs * Math.max(1, Math.floor((read - kernel) / stride) + 1),
    bias,
  });
  const normed =
    norm === "channels"
      ? groupNorm(build, made, outputs, "layer_norm")
      : norm === "rows"
        ? normalized(build, made, outputs, NORM, "layer_norm")
        : made;
  return build.activation(normed, "gelu");
}

/** x + gelu(conv(x)): the weights are v * g / |v|, which are made in each pass and kept for the backward pass. */
function withPositions(build: LayerBuilder, x: Tensor, layer: FramesLayer): Tensor {
  const { tape, rules } = build;
  const { inputs, outputs, kernel, groups, norm } = layer;
  const weights = (inputs * outputs * kernel) / groups;
  const [weight] = tape.op({
    name: "weight_norm",
    inputs: [],
    makes: [{ elements: weights, itemBytes: rules.weightBytes }],
    extraSaved: [kernel * rules.weightBytes],
    parameters: [
      build.parameter("conv.weight.original0", kernel, "vector"),
      build.parameter("conv.weight.original1", weights, "matrix", outputs),
    ],
  });
  // An even kernel makes one frame too many, which is cut off.
  const extra = kernel % 2 === 0 ? rules.batch * outputs : 0;
  const made = convolution(build, x, {
    name: "conv",
    weights: 0,
    computed: weight as Tensor,
    outputs,
    elements: x.elements + extra,
    bias: true,
  });
  const own = extra > 0 ? tape.slice(made, x.elements) : made;
  const sum = build.add(x, build.activation(own, "gelu"));
  const normed = norm === "none" ? sum : normalized(build, sum, outputs, NORM, "layer_norm");
  return rules.dropout ? build.dropout(normed) : normed;
}
