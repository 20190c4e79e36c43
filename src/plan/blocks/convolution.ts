/** Residual networks and the blocks of a UNet: convolutions save their input, batch and group norms theirs, too. */
import type { ConvolutionLayer, UnetAttentionLayer } from "../shape/model_shape.js";
import type { Parameter, Tensor } from "../tape/tape.js";
import { attention } from "./attention.js";
import type { LayerBuilder } from "./layer_builder.js";
import { feedForward } from "./mlp.js";
import { normalized } from "./norms.js";

interface Convolution {
  readonly name: string;
  readonly inputs: number;
  readonly outputs: number;
  readonly kernel: number;
  readonly side: number;
  readonly bias?: boolean;
}

export function convolve(build: LayerBuilder, x: Tensor, shape: Convolution): Tensor {
  return convolution(build, x, {
    ...shape,
    weights: shape.inputs * shape.outputs * shape.kernel ** 2,
    elements: build.rules.batch * shape.outputs * shape.side ** 2,
  });
}

/** A convolution of any number of axes. */
interface AnyConvolution extends Pick<Convolution, "name" | "outputs" | "bias"> {
  readonly weights: number;
  /** Weights that the pass itself makes, which it keeps; then it has no others. */
  readonly computed?: Tensor;
  /** Of the result. */
  readonly elements: number;
}

export function convolution(build: LayerBuilder, x: Tensor, shape: AnyConvolution): Tensor {
  const { rules, tape } = build;
  const { computed } = shape;
  const weights: Parameter[] = [
    ...(computed === undefined
      ? [build.parameter(shape.name, shape.weights, "matrix", shape.outputs)]
      : []),
    ...(shape.bias === true
      ? [build.parameter(`${shape.name}.bias`, shape.outputs, "vector")]
      : []),
  ];
  const casts = rules.autocast && rules.computeBytes < 4;
  const itemBytes = casts ? rules.computeBytes : x.itemBytes;
  const castsInput = casts && x.itemBytes > itemBytes;
  const castsWeights = casts && rules.weightBytes > itemBytes;
  const [made] = tape.op({
    name: shape.name,
    inputs: computed === undefined ? [x] : [x, computed],
    makes: [{ elements: shape.elements, itemBytes }],
    // One formula gives all gradients of a convolution, so its input is kept even if the weight is frozen.
    saves: [
      ...(castsInput ? [] : [x]),
      ...(computed === undefined || castsWeights ? [] : [computed]),
    ],
    extraSaved: [
      castsInput ? x.elements * itemBytes : 0,
      castsWeights ? (computed?.elements ?? shape.weights) * itemBytes : 0,
    ],
    parameters: weights,
    expensive: "matmul",
  });
  return made as Tensor;
}

/** group_norm: in fp32 under autocast, which batch_norm is not. */
export function groupNorm(build: LayerBuilder, x: Tensor, channels: number, name: string): Tensor {
  const input = build.rules.autocast ? build.cast(x, 4) : x;
  return channelNorm(build, input, channels, name);
}

/** batch_norm and group_norm keep their input and two figures a channel. */
function channelNorm(build: LayerBuilder, x: Tensor, channels: number, name: string): Tensor {
  const [made] = build.tape.op({
    name,
    inputs: [x],
    makes: [{ elements: x.elements, itemBytes: x.itemBytes }],
    saves: [x],
    extraSaved: [channels * 8],
    parameters: [
      build.parameter(`${name}.weight`, channels, "vector"),
      build.parameter(`${name}.bias`, channels, "vector"),
    ],
    pointwise: true,
  });
  return made as Tensor;
}

/** ReLU in place: its output is the norm's own storage. */
function reluInPlace(build: LayerBuilder, x: Tensor): Tensor {
  const [made] = build.tape.op({
    name: "relu_",
    inputs: [x],
    makes: [{ elements: x.elements, itemBytes: x.itemBytes }],
    saves: ["output"],
    view: true,
  });
  return made as Tensor;
}

export function convolutionLayer(build: LayerBuilder, x: Tensor, layer: ConvolutionLayer): Tensor {
  build.tape.part = "convolution";
  switch (layer.block) {
    case "resnet-bottleneck":
    case "resnet-basic":
      return residualBlock(build, x, layer);
    case "unet":
      return unetBlock(build, x, layer);
    case "unet-output":
      return convolve(build, activated(build, x, layer.inputChannels, "conv_norm_out"), {
        ...sizes(layer),
        name: "conv_out",
        kernel: 3,
        bias: true,
      });
    case "upsample":
      return convolve(build, enlarged(build, x, layer), {
        ...sizes(layer),
        name: "upsample",
        kernel: 3,
        bias: true,
      });
    case "stem": {
      const first = convolve(build, x, { ...sizes(layer), name: "conv", kernel: 7 });
      const normed = channelNorm(build, first, layer.outputChannels, "bn");
      return pool(build, reluInPlace(build, normed));
    }
    default:
      return convolve(build, x, { ...sizes(layer), name: "resample", kernel: 3, bias: true });
  }
}

function sizes({ inputChannels, outputChannels, outputSide }: ConvolutionLayer) {
  return { inputs: inputChannels, outputs: outputChannels, side: outputSide };
}

/** Max pooling keeps the index of each maximum, int64. */
function pool(build: LayerBuilder, x: Tensor): Tensor {
  const elements = x.elements / 4;
  const [made] = build.tape.op({
    name: "max_pool",
    inputs: [x],
    makes: [{ elements, itemBytes: x.itemBytes }],
    saves: [x],
    extraSaved: [elements * 8],
  });
  return made as Tensor;
}

function residualBlock(build: LayerBuilder, x: Tensor, layer: ConvolutionLayer): Tensor {
  const { inputChannels, outputChannels, inputSide, outputSide } = layer;
  const bottleneck = layer.block === "resnet-bottleneck";
  const middle = bottleneck ? outputChannels / 4 : outputChannels;
  const step = (from: Tensor, shape: Convolution): Tensor =>
    channelNorm(build, convolve(build, from, shape), shape.outputs, `${shape.name}.bn`);
  let inner = step(x, {
    name: "conv1",
    inputs: inputChannels,
    outputs: middle,
    kernel: bottleneck ? 1 : 3,
    side: bottleneck ? inputSide : outputSide,
  });
  inner = reluInPlace(build, inner);
  const second = { name: "conv2", inputs: middle, outputs: middle, kernel: 3, side: outputSide };
  inner = step(inner, second);
  if (bottleneck) {
    inner = reluInPlace(build, inner);
    inner = step(inner, {
      name: "conv3",
      inputs: middle,
      outputs: outputChannels,
      kernel: 1,
      side: outputSide,
    });
  }
  const changes = inputChannels !== outputChannels || inputSide !== outputSide;
  const shortcut = changes
    ? step(x, {
        name: "downsample",
        inputs: inputChannels,
        outputs: outputChannels,
        kernel: 1,
        side: outputSide,
      })
    : x;
  return reluInPlace(build, build.add(inner, shortcut));
}

/** The image at the output's size, each element repeated. */
function enlarged(build: LayerBuilder, x: Tensor, layer: ConvolutionLayer): Tensor {
  const elements = build.rules.batch * layer.inputChannels * layer.outputSide ** 2;
  const [made] = build.tape.op({
    name: "interpolate",
    inputs: [x],
    makes: [{ elements, itemBytes: x.itemBytes }],
  });
  return made as Tensor;
}

function activated(build: LayerBuilder, x: Tensor, channels: number, name: string): Tensor {
  const normed = groupNorm(build, x, channels, name);
  return build.pointwise("silu", [normed], [normed]);
}

/** On the way up, a block's input is joined with what the way down left at this size. */
function withLeft(build: LayerBuilder, x: Tensor, layer: ConvolutionLayer): Tensor {
  const elements = build.rules.batch * layer.inputChannels * layer.inputSide ** 2;
  if (elements === x.elements) {
    return x;
  }
  const [made] = build.tape.op({
    name: "cat",
    inputs: [x],
    makes: [{ elements, itemBytes: x.itemBytes }],
  });
  return made as Tensor;
}

/** ResnetBlock2D of diffusers: norm, SiLU, convolution, time step, norm, SiLU, convolution. */
function unetBlock(build: LayerBuilder, from: Tensor, layer: ConvolutionLayer): Tensor {
  const { inputChannels, outputChannels, outputSide: side, conditionSize } = layer;
  const x = withLeft(build, from, layer);
  const first = convolve(build, activated(build, x, inputChannels, "norm1"), {
    name: "conv1",
    inputs: inputChannels,
    outputs: outputChannels,
    kernel: 3,
    side,
    bias: true,
  });
  const [conditioned] = build.tape.op({
    name: "time_emb_proj",
    inputs: [first],
    makes: [{ elements: first.elements, itemBytes: first.itemBytes }],
    parameters: [
      build.parameter("time_emb_proj", conditionSize * outputChannels, "matrix", outputChannels),
      build.parameter("time_emb_proj.bias", outputChannels, "vector"),
    ],
  });
  const second = convolve(build, activated(build, conditioned as Tensor, outputChannels, "norm2"), {
    name: "conv2",
    inputs: outputChannels,
    outputs: outputChannels,
    kernel: 3,
    side,
    bias: true,
  });
  const shortcut =
    inputChannels === outputChannels
      ? x
      : convolve(build, x, {
          name: "conv_shortcut",
          inputs: inputChannels,
          outputs: outputChannels,
          kernel: 1,
          side,
          bias: true,
        });
  return build.add(shortcut, second);
}

/** Positions of an encoded prompt (CLIP's text encoder). */
export const PROMPT_POSITIONS = 77;

/** Transformer2DModel: self attention, attention to the text, GEGLU; or self attention alone. */
export function unetAttentionLayer(
  build: LayerBuilder,
  x: Tensor,
  layer: UnetAttentionLayer,
  prompt: Tensor | null,
): Tensor {
  const { channels, side, heads, depth, contextSize } = layer;
  build.tape.part = "attention";
  const tokens = side ** 2;
  const shape = {
    heads,
    kvHeads: heads,
    headSize: channels / heads,
    bias: prompt === null,
    outputBias: true,
    fused: false,
    rotary: false,
    rotaryShare: 0,
    queryKeyNorm: "none",
    window: 0,
    softCap: false,
    scoreBias: "none",
    bidirectional: true,
  } as const;
  const place = { shape, hidden: channels, queries: tokens, dropout: false, maskable: false };
  const toItself = (from: Tensor): Tensor =>
    attention(build, from, { ...place, source: from, keys: tokens, prefix: "attn1." });
  if (prompt === null) {
    return build.add(x, toItself(groupNorm(build, x, channels, "group_norm")));
  }
  const toText = (from: Tensor): Tensor =>
    attention(build, from, {
      ...place,
      source: prompt,
      sourceHidden: contextSize,
      keys: PROMPT_POSITIONS,
      prefix: "attn2.",
    });
  const linear = (from: Tensor, name: string): Tensor =>
    build.linear(from, { name, inputs: channels, outputs: channels, bias: true, group: "other" });
  const norm = { kind: "layer", bias: true, affine: true } as const;
  const mlp = {
    width: 4 * channels,
    gated: true,
    activation: "gelu",
    bias: true,
    fused: true,
  } as const;
  let inner = linear(groupNorm(build, x, channels, "norm"), "proj_in");
  for (let block = 0; block < depth; block++) {
    for (const attend of [toItself, toText]) {
      inner = build.add(inner, attend(normalized(build, inner, channels, norm)));
    }
    inner = build.add(
      inner,
      feedForward(build, normalized(build, inner, channels, norm), channels, mlp),
    );
  }
  return build.add(x, linear(inner, "proj_out"));
}
