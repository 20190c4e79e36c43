/** Norms as the libraries compute them, with what autograd keeps of each. */
import type { NormShape } from "../shape/model_shape.js";
import type { Parameter, Tensor } from "../tape/tape.js";
import type { LayerBuilder } from "./layer_builder.js";

const FP32 = 4;

interface Normed {
  readonly x: Tensor;
  /** Elements that are normalized together. */
  readonly width: number;
  readonly weights: readonly Parameter[];
}

/** `width`: elements of a row. */
export function normalized(
  build: LayerBuilder,
  x: Tensor,
  width: number,
  shape: NormShape,
  name = "norm",
): Tensor {
  const before = build.tape.part;
  build.tape.part = "norm";
  const elements = width * (shape.heads ?? 1);
  const weights = shape.affine
    ? [
        build.parameter(`${name}.weight`, elements, "vector"),
        ...(shape.bias ? [build.parameter(`${name}.bias`, elements, "vector")] : []),
      ]
    : [];
  const made = NORMS[shape.kind](build, { x, width, weights }, shape);
  build.tape.part = before;
  return made;
}

const NORMS = { rms: rmsNorm, layer: layerNorm, "layer-parts": layerNormOfParts } as const;

/**
 * As the libraries write it: x32 = x.float(); weight * (x32 * rsqrt(mean(x32²) + eps)).to(x.dtype). Gemma converts last:
 * ((1 + weight.float()) * x32 * rsqrt(...)).to(x.dtype).
 */
function rmsNorm(
  build: LayerBuilder,
  norm: Normed,
  { wide: isWide = false, keepsInput = false, byPower }: NormShape,
): Tensor {
  const { x, width, weights } = norm;
  const wide = build.cast(x, FP32);
  const [normed] = build.tape.op({
    name: "rms_norm",
    inputs: [wide],
    makes: [{ elements: x.elements, itemBytes: FP32 }],
    saves: keepsInput ? [wide, x] : [wide],
    extraSaved: [(byPower === true ? 2 : 1) * (x.elements / width) * FP32],
    backwardTemporary: x.elements * FP32,
    pointwise: true,
  });
  if (weights.length === 0) {
    return build.cast(normed as Tensor, x.itemBytes);
  }
  const narrow = isWide ? (normed as Tensor) : build.cast(normed as Tensor, x.itemBytes);
  return weighted(build, narrow, norm);
}

/**
 * torch.layer_norm: one kernel that keeps its input and two figures a row, in fp32 or, on the CPU, in the input's type;
 * fp32 under autocast.
 */
function layerNorm(build: LayerBuilder, { x, width, weights }: Normed): Tensor {
  const input = build.rules.autocast ? build.cast(x, FP32) : x;
  const [made] = build.tape.op({
    name: "layer_norm",
    inputs: [input],
    makes: [{ elements: x.elements, itemBytes: input.itemBytes }],
    saves: [input],
    extraSaved: [(x.elements / width) * (build.rules.onCpu ? input.itemBytes : FP32) * 2],
    parameters: weights,
    pointwise: true,
  });
  return made as Tensor;
}

/** CohereLayerNorm of transformers: w32 * ((x32 - mean) * rsqrt(mean((x32 - mean)²) + eps)), the difference taken twice. */
function layerNormOfParts(build: LayerBuilder, norm: Normed): Tensor {
  const { x, width } = norm;
  const wide = build.cast(x, FP32);
  const forSquare = build.pointwise("sub", [wide], []);
  build.pointwise("pow", [forSquare], [forSquare]);
  const difference = build.pointwise("sub", [wide], []);
  const [normed] = build.tape.op({
    name: "layer_norm",
    inputs: [difference],
    makes: [{ elements: x.elements, itemBytes: FP32 }],
    saves: [difference],
    extraSaved: [(x.elements / width) * FP32],
    pointwise: true,
  });
  return weighted(build, normed as Tensor, norm);
}

/** Multiplied with the weights, in the type of the norm's input. */
function weighted(build: LayerBuilder, normed: Tensor, { x, weights }: Normed): Tensor {
  const [scaled] = build.tape.op({
    name: "norm.weight",
    inputs: [normed],
    makes: [{ elements: x.elements, itemBytes: normed.itemBytes }],
    saves: weights.some((each) => build.needsGradient(each)) ? [normed] : [],
    parameters: weights,
    pointwise: true,
  });
  return build.cast(scaled as Tensor, x.itemBytes);
}
