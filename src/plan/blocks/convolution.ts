/** Residual networks and the blocks of a UNet: convolutions save their input, batch and group norms theirs, too. */
import type { ConvolutionLayer, UnetAttentionLayer } from "../shape/model_shape.js";
import type { Parameter, Tensor } from "../tape/tape.js";
import { attention } from "./attention.js";
import type { LayerBuilder } from "./layer_builder.js";
import { feedForward } from "./mlp.js";

interface Convolution {
  readonly name: string;
  readonly inputs: number;
  readonly outputs: number;
  readonly kernel: number;
  readonly side: number;
  readonly bias?: boolean;
}

function convolve(build: LayerBuilder, x: Tensor, shape: Convolution): Tensor {
  const { rules, tape } = build;
  const weights: Parameter[] = [
    build.parameter(
      shape.name,
      shape.inputs * shape.outputs * shape.kernel ** 2,
      "matrix",
      shape.outputs,
    ),
    ...(shape.bias === true
      ? [build.parameter(`${shape.name}.bias`, shape.outputs, "vector")]
      : []),
  ];
  const casts = rules.autocast && rules.computeBytes < 4;
  const itemBytes = casts ? rules.computeBytes : x.itemBytes;
  const castsInput = casts && x.itemBytes > itemBytes;
  const trains = (weights[0] as Parameter).trainable;
  const [made] = tape.op({
    name: shape.name,
    inputs: [x],
    makes: [{ elements: rules.batch * shape.outputs * shape.side ** 2, itemBytes }],
    saves: trains && !castsInput ? [x] : [],
    extraSaved: [
      castsInput && trains ? x.elements * itemBytes : 0,
      casts && rules.weightBytes > itemBytes ? (weights[0] as Parameter).elements * itemBytes : 0,
    ],
    parameters: weights,
    expensive: "matmul",
  });
  return made as Tensor;
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

/** ResnetBlock2D of diffusers: norm, SiLU, convolution, time step, norm, SiLU, convolution. */
function unetBlock(build: LayerBuilder, x: Tensor, layer: ConvolutionLayer): Tensor {
  const { inputChannels, outputChannels, outputSide: side, conditionSize } = layer;
  const active = (from: Tensor, channels: number, name: string): Tensor => {
    const normed = channelNorm(build, from, channels, name);
    return build.pointwise("silu", [normed], [normed]);
  };
  const first = convolve(build, active(x, inputChannels, "norm1"), {
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
  const second = convolve(build, active(conditioned as Tensor, outputChannels, "norm2"), {
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

/** Transformer2DModel: self attention, attention to the text, GEGLU. */
export function unetAttentionLayer(
  build: LayerBuilder,
  x: Tensor,
  layer: UnetAttentionLayer,
): Tensor {
  const { channels, side, heads, depth, contextSize } = layer;
  const { tape, rules } = build;
  tape.part = "attention";
  const tokens = side ** 2;
  const linear = (from: Tensor, name: string): Tensor =>
    build.linear(from, { name, inputs: channels, outputs: channels, bias: true, group: "other" });
  const norm = { kind: "layer", bias: true, affine: true } as const;
  const shape = {
    heads,
    kvHeads: heads,
    headSize: channels / heads,
    bias: false,
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
  const context = tape.input(rules.batch * TEXT_TOKENS * contextSize, rules.computeBytes);
  let inner = linear(channelNorm(build, x, channels, "norm"), "proj_in");
  for (let block = 0; block < depth; block++) {
    for (const source of ["self", "text"] as const) {
      const normed = build.norm(inner, channels, norm);
      const made =
        source === "self"
          ? attention(build, normed, {
              shape,
              hidden: channels,
              source: normed,
              queries: tokens,
              keys: tokens,
              dropout: false,
              maskable: false,
              prefix: "attn1.",
            })
          : textAttention(build, normed, context, { shape, channels, contextSize, tokens });
      inner = build.add(inner, made);
    }
    const normed = build.norm(inner, channels, norm);
    const mlp = {
      width: 4 * channels,
      gated: true,
      activation: "gelu",
      bias: true,
      fused: true,
    } as const;
    inner = build.add(inner, feedForward(build, normed, channels, mlp));
  }
  return build.add(x, linear(inner, "proj_out"));
}

const TEXT_TOKENS = 77;

/** Keys and values come from rows of another width. */
function textAttention(
  build: LayerBuilder,
  x: Tensor,
  context: Tensor,
  {
    shape,
    channels,
    contextSize,
    tokens,
  }: {
    shape: Parameters<typeof attention>[2]["shape"];
    channels: number;
    contextSize: number;
    tokens: number;
  },
): Tensor {
  const { tape } = build;
  const project = (from: Tensor, name: string, inputs: number): Tensor =>
    build.linear(from, { name: `attn2.${name}`, inputs, outputs: channels, group: "attention" });
  const query = project(x, "q_proj", channels);
  const key = project(context, "k_proj", contextSize);
  const value = project(context, "v_proj", contextSize);
  const rows = build.rules.batch * tokens;
  const [mixed] = tape.op({
    name: "attention",
    inputs: [query, key, value],
    makes: [{ elements: query.elements, itemBytes: query.itemBytes }],
    saves: [query, key, value, "output"],
    extraSaved: [rows * shape.heads * 4],
    expensive: "attention",
  });
  return build.linear(mixed as Tensor, {
    name: "attn2.o_proj",
    inputs: channels,
    outputs: channels,
    bias: true,
    group: "attention",
  });
}
