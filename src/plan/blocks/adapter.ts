/** A LoRA adapter beside a matrix, with DoRA's magnitudes (peft/tuners/lora/layer.py and dora.py). */
import type { Bytes } from "../../model/base/units.js";
import type { Parameter, Tape, Tensor } from "../tape/tape.js";
import { isAt, type ModulePlace } from "./adapter_names.js";
import type { BlockRules } from "./rules.js";

const FP32 = 4;

/** What an adapter needs of the builder of its layer. */
interface Builder {
  readonly rules: BlockRules;
  readonly tape: Tape;
  readonly place: ModulePlace;
  adapterParameter(name: string, elements: number, rows: number, ofExperts: boolean): Parameter;
  dropout(x: Tensor): Tensor;
  pointwise(name: string, inputs: readonly Tensor[], saves: readonly Tensor[]): Tensor;
  add(a: Tensor, b: Tensor): Tensor;
}

/** Of the matrix on this device. */
interface Sizes {
  readonly inputs: number;
  readonly outputs: number;
}

/** @param streams the matrix's input and its result */
export function withAdapter(
  build: Builder,
  [x, y]: readonly [Tensor, Tensor],
  sketch: { readonly name: string; readonly experts?: number },
  { inputs, outputs }: Sizes,
): Tensor {
  const { rules, tape } = build;
  const { adapter } = rules;
  if (adapter === null) {
    return y;
  }
  const experts = Math.ceil(
    (sketch.experts ?? 1) / (sketch.experts === undefined ? 1 : rules.experts.devices),
  );
  const { details } = adapter;
  const rank =
    details.ranks.find(({ path }) => isAt(path, sketch.name, build.place))?.rank ?? adapter.rank;
  const weight = (part: string, elements: number, rows = rank): Parameter =>
    build.adapterParameter(
      `${sketch.name}.${part}`,
      elements * experts,
      rows,
      sketch.experts !== undefined,
    );
  const tokens = x.elements / inputs;
  const source = adapter.dropout ? build.dropout(x) : x;
  const itemBytes = adapter.copiesInput ? rules.computeBytes : y.itemBytes;
  const [low] = tape.op({
    name: `${sketch.name}.lora_A`,
    inputs: [source],
    makes: [{ elements: tokens * rank, itemBytes }],
    saves: adapter.copiesInput ? [] : [source],
    extraSaved: adapter.copiesInput ? [source.elements * itemBytes] : [],
    forwardTemporary: adapter.copiesInput ? source.elements * adapter.itemBytes : 0,
    backwardTemporary: adapter.copiesInput ? source.elements * adapter.itemBytes : 0,
    parameters: [weight("lora_A", inputs * rank)],
    expensive: "matmul",
  });
  const [high] = tape.op({
    name: `${sketch.name}.lora_B`,
    inputs: [low as Tensor],
    makes: [{ elements: tokens * outputs, itemBytes }],
    saves: [low as Tensor],
    parameters: [
      weight("lora_B", outputs * rank),
      ...(details.adapterBias ? [weight("lora_B.bias", outputs, 0)] : []),
    ],
    expensive: "matmul",
  });
  if (details.dora && sketch.experts === undefined) {
    const magnitude = weight("lora_magnitude_vector", outputs, 0);
    return withMagnitude(build, [y, high as Tensor], magnitude, { inputs, outputs });
  }
  return build.add(y, build.pointwise("scale", [high as Tensor], []));
}

/**
 * (m / |W + BA| - 1) * base + m / |W + BA| * adapter (Liu et al., DoRA, 2024).
 */
function withMagnitude(
  build: Builder,
  [base, made]: readonly [Tensor, Tensor],
  magnitude: Parameter,
  { inputs, outputs }: Sizes,
): Tensor {
  const [scaledBase] = build.tape.op({
    name: "dora.base",
    inputs: [base],
    makes: [{ elements: base.elements, itemBytes: base.itemBytes }],
    saves: [base],
    extraSaved: [outputs * FP32],
    parameters: [magnitude],
    forwardTemporary: normTemporary(build, { inputs, outputs }),
  });
  const scaledMade = build.pointwise("dora.adapter", [made], [made]);
  const sum = build.add(scaledBase as Tensor, build.pointwise("scale", [scaledMade], []));
  return build.add(base, sum);
}

/**
 * Temporaries of the norm of W + BA, which has no gradient: BA is the product with an identity matrix. Usually four matrices
 * have the compute type: the identity (`square`), BA, BA scaled, and the sum (`product` each).
 *
 * Under autocast with adapters in fp32, it is the larger of two moments:
 *
 * 1. The identity is there in fp32 and in 16 bits: 6 B of `square`. Unless the weights are in fp32, there is also a 16-bit
 *    matrix: 2 B of `product`.
 * 2. The identity is there in 16 bits, 2 B of `square`, beside BA in both types (6 B of `product`), W in 16 bits (2 B), the
 *    scaled product (4 B) and the sum (4 B): together 16 B of `product`. With weights in fp32 it is 10 B.
 *
 * Measured with PEFT 0.21 on the CPU, of each tensor as it is made and freed.
 */
function normTemporary({ rules }: Builder, { inputs, outputs }: Sizes): Bytes {
  const square = inputs * inputs;
  const product = inputs * outputs;
  if (rules.adapter?.copiesInput !== true || !rules.autocast) {
    return (square + 3 * product) * rules.computeBytes;
  }
  const isWide = rules.weightBytes === FP32 && rules.quantization === null;
  return isWide
    ? Math.max(6 * square, 2 * square + 10 * product)
    : Math.max(6 * square + 2 * product, 2 * square + 16 * product);
}
