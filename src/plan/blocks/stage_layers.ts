/** Layers of image models with stages: windows and merging of Swin, depthwise convolutions of ConvNeXt. */
import type { MlpShape, NormShape, StageLayer, TransformerLayer } from "../shape/model_shape.js";
import type { Tensor } from "../tape/tape.js";
import { attention } from "./attention.js";
import { convolve } from "./convolution.js";
import type { LayerBuilder } from "./layer_builder.js";
import { feedForward } from "./mlp.js";
import { learnsCondition } from "./modulation.js";
import { normalized } from "./norms.js";

const NORM: NormShape = { kind: "layer", bias: true, affine: true };

export function stageLayer(build: LayerBuilder, x: Tensor, layer: StageLayer): Tensor {
  switch (layer.block) {
    case "patches":
      return normalized(
        build,
        convolved(build, x, layer, layer.inputSide / layer.side),
        layer.hidden,
        NORM,
      );
    case "reduction":
      return convolved(build, normalized(build, x, layer.inputHidden, NORM), layer, 2);
    case "merging":
      return merged(build, x, layer);
    case "windows":
      return windows(build, x, layer, layer.layer as TransformerLayer);
    case "depthwise":
      return depthwise(build, x, layer, layer.layer as TransformerLayer);
    case "pool":
      return pooled(build, x, layer);
  }
}

function convolved(
  build: LayerBuilder,
  x: Tensor,
  { inputHidden, hidden, side }: StageLayer,
  kernel: number,
): Tensor {
  build.tape.part = "convolution";
  return convolve(build, x, {
    name: "projection",
    inputs: inputHidden,
    outputs: hidden,
    kernel: Math.floor(kernel),
    side,
    bias: true,
  });
}

/** SwinPatchMerging: rows of 2 x 2 as one, which a matrix without a bias makes half as wide. */
function merged(build: LayerBuilder, x: Tensor, layer: StageLayer): Tensor {
  const width = 4 * layer.inputHidden;
  const rows = build.copy(x, build.rules.batch * layer.side ** 2 * width);
  return build.linear(normalized(build, rows, width, NORM), {
    name: "reduction",
    inputs: width,
    outputs: layer.hidden,
    group: "other",
  });
}

/** SwinLayer: the norm's rows are copied window by window, of which those at the edge are filled up. */
function windows(
  build: LayerBuilder,
  x: Tensor,
  stage: StageLayer,
  layer: TransformerLayer,
): Tensor {
  const { hidden, side, window = side, tableRows = 0 } = stage;
  const { attention: shape, mlp } = layer;
  if (shape === null || mlp === null) {
    return x;
  }
  const { batch, dropout } = build.rules;
  const padded = (window * Math.ceil(side / window)) ** 2;
  const rows = build.copy(normalized(build, x, hidden, NORM), batch * padded * hidden);
  build.tape.parameters.push(
    build.parameter("relative_position_bias_table", tableRows * shape.heads, "matrix", tableRows),
  );
  const own = window ** 2;
  const mixed = attention(build, rows, {
    shape,
    hidden,
    source: rows,
    queries: own,
    keys: own,
    dropout: dropout && layer.attentionDropout,
    maskable: false,
    prefix: "",
  });
  const dropped = (made: Tensor): Tensor => (layer.dropout && dropout ? build.dropout(made) : made);
  const attended = build.add(x, build.copy(dropped(mixed), x.elements));
  const fed = feedForward(build, normalized(build, attended, hidden, NORM), hidden, mlp);
  return build.add(attended, dropped(fed));
}

/** ConvNextLayer: a convolution of 7 x 7 of each channel, a norm, an MLP, and a factor of each channel. */
function depthwise(
  build: LayerBuilder,
  x: Tensor,
  { hidden, side, responseNorm }: StageLayer,
  { mlp, scales }: TransformerLayer,
): Tensor {
  if (mlp === null || "experts" in mlp) {
    return x;
  }
  build.tape.part = "convolution";
  const mixed = convolve(build, x, {
    name: "dwconv",
    inputs: 1,
    outputs: hidden,
    kernel: 7,
    side,
    bias: true,
  });
  const normed = normalized(build, mixed, hidden, NORM);
  const fed =
    responseNorm === true
      ? withResponseNorm(build, normed, hidden, mlp)
      : feedForward(build, normed, hidden, mlp);
  build.tape.part = "residual";
  if (scales === 0) {
    return build.add(x, fed);
  }
  const [scaled] = build.tape.op({
    name: "scale",
    inputs: [fed],
    makes: [{ elements: fed.elements, itemBytes: fed.itemBytes }],
    saves: learnsCondition(build) ? [fed] : [],
    parameters: [build.parameter("scale", hidden, "vector")],
    pointwise: true,
  });
  return build.add(x, scaled as Tensor);
}

/** ConvNextV2GRN: weight * (x * norm) + bias + x, where each channel has a norm over the image. */
function withResponseNorm(
  build: LayerBuilder,
  x: Tensor,
  hidden: number,
  { width, activation }: MlpShape,
): Tensor {
  const { tape, rules } = build;
  tape.part = "mlp";
  const group = "mlp" as const;
  const up = build.linear(x, {
    name: "pwconv1",
    inputs: hidden,
    outputs: width,
    bias: true,
    group,
  });
  const active = build.activation(up, activation);
  const figures = rules.batch * width * active.itemBytes;
  const [product] = tape.op({
    name: "mul",
    inputs: [active],
    makes: [{ elements: active.elements, itemBytes: active.itemBytes }],
    saves: [active],
    extraSaved: [figures, figures],
    pointwise: true,
  });
  const [weighted] = tape.op({
    name: "grn",
    inputs: [product as Tensor],
    makes: [{ elements: active.elements, itemBytes: active.itemBytes }],
    saves: learnsCondition(build) ? [product as Tensor] : [],
    parameters: [
      build.parameter("grn.weight", width, "vector"),
      build.parameter("grn.bias", width, "vector"),
    ],
    pointwise: true,
  });
  const sum = build.add(weighted as Tensor, active);
  return build.linear(sum, { name: "pwconv2", inputs: width, outputs: hidden, bias: true, group });
}

function pooled(build: LayerBuilder, x: Tensor, { hidden }: StageLayer): Tensor {
  const [rows] = build.tape.op({
    name: "mean",
    inputs: [x],
    makes: [{ elements: build.rules.batch * hidden, itemBytes: x.itemBytes }],
  });
  return rows as Tensor;
}
