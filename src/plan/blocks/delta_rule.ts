/**
 * Gated delta rules (Yang et al. 2025, "Gated Delta Networks"): queries, keys and values of one short convolution, a state
 * for each head of values, and a norm whose result is multiplied with a gate (Qwen3NextGatedDeltaNet of transformers 5.24).
 *
 * With the kernels of `fla` and `causal_conv1d` the rule keeps its normalized queries and keys, its values, two figures of each
 * head, and a matrix of each chunk of 64 positions (fla, ops/gated_delta_rule/chunk.py); its backward pass computes the states
 * of all chunks again. With `--attention eager`, and on the CPU, the reference code keeps all of them in fp32
 * (torch_chunk_gated_delta_rule).
 */
import type { Bytes } from "../../model/base/units.js";
import type { StateSpaceShape } from "../shape/model_shape.js";
import type { Tensor } from "../tape/tape.js";
import type { LayerBuilder } from "./layer_builder.js";

const FP32 = 4;

export function deltaRule(
  build: LayerBuilder,
  x: Tensor,
  hidden: number,
  mixer: StateSpaceShape,
): Tensor {
  const { inner, heads } = mixer;
  const { mixed, gate, beta, decay } = projections(build, x, hidden, mixer);
  const made = rule(build, convolved(build, mixed, mixer), [beta, decay], mixer);
  return build.linear(gatedNorm(build, made, gate, inner / heads), {
    name: "out_proj",
    inputs: inner,
    outputs: hidden,
    split: "inputs",
    group: "attention",
  });
}

interface Projections {
  /** Queries, keys and values. */
  readonly mixed: Tensor;
  readonly gate: Tensor;
  readonly beta: Tensor;
  readonly decay: Tensor;
}

function projections(
  build: LayerBuilder,
  x: Tensor,
  hidden: number,
  { inner, state, groups, heads, byKeyHead }: StateSpaceShape,
): Projections {
  const { tape } = build;
  const width = inner + 2 * groups * state;
  const linear = (name: string, outputs: number): Tensor =>
    build.linear(x, {
      name,
      inputs: hidden,
      outputs,
      split: "outputs",
      group: "attention",
    });
  if (byKeyHead !== true) {
    return {
      mixed: linear("in_proj_qkv", width),
      gate: linear("in_proj_z", inner),
      beta: linear("in_proj_b", heads),
      decay: linear("in_proj_a", heads),
    };
  }
  // Each head of keys has its rows side by side: they are copied out, and joined for the convolution.
  const all = linear("in_proj_qkvz", width + inner);
  const both = linear("in_proj_ba", 2 * heads);
  const share = (elements: number): number => (all.elements * elements) / (width + inner);
  const copied = (elements: number): Tensor => build.copy(tape.slice(all, share(elements)));
  const key = groups * state;
  return {
    mixed: build.join([copied(key), copied(key), copied(inner)]),
    gate: copied(inner),
    beta: build.copy(tape.slice(both, both.elements / 2)),
    decay: build.copy(tape.slice(both, both.elements / 2)),
  };
}

const isReference = ({ rules }: LayerBuilder): boolean =>
  rules.onCpu || rules.attention === "eager";

/** A convolution of each channel, and SiLU; the kernel of `causal_conv1d` computes both at once. */
function convolved(build: LayerBuilder, x: Tensor, mixer: StateSpaceShape): Tensor {
  const { tape, rules } = build;
  const channels = (mixer.inner + 2 * mixer.groups * mixer.state) / rules.tensorParallel;
  const parameters = [build.parameter("conv1d", channels * mixer.convolution, "vector")];
  const shared = { inputs: [x], saves: [x], parameters } as const;
  if (!isReference(build)) {
    const { elements, itemBytes } = x;
    return tape.op({ ...shared, name: "conv1d", makes: [{ elements, itemBytes }] })[0] as Tensor;
  }
  // Positions before the first and after the last are filled, and those that were are cut off.
  const filled = x.elements + rules.batch * (mixer.convolution - 1) * channels;
  const [made] = tape.op({
    ...shared,
    name: "conv1d",
    makes: [{ elements: filled, itemBytes: x.itemBytes }],
  });
  const own = tape.slice(made as Tensor, x.elements);
  return build.pointwise("silu", [own], [own]);
}

/** @returns rows of all values, in the type of `mixed` */
function rule(
  build: LayerBuilder,
  mixed: Tensor,
  figures: readonly [beta: Tensor, decay: Tensor],
  mixer: StateSpaceShape,
): Tensor {
  const { tape, rules } = build;
  const [beta, decay] = figures;
  const open = build.pointwise("sigmoid", [beta], ["output"]);
  const heads = mixer.heads / rules.tensorParallel;
  const place = { batch: rules.batch, tokens: decay.elements / heads, heads, mixed };
  const wide = build.add(build.cast(decay, FP32), decay);
  const soft = build.pointwise("softplus", [wide], [wide]);
  const [g] = tape.op({
    name: "mul",
    inputs: [soft],
    makes: [{ elements: decay.elements, itemBytes: FP32 }],
    saves: [soft],
    parameters: [
      build.parameter("dt_bias", heads, "vector"),
      build.parameter("A_log", heads, "vector"),
    ],
    pointwise: true,
  });
  const { saved, temporary, readsMixed } = (isReference(build) ? byReference : byKernels)(
    mixer,
    place,
  );
  const [made] = tape.op({
    name: "delta_rule",
    inputs: [mixed, open, g as Tensor],
    makes: [
      {
        elements: (place.tokens * mixer.inner) / rules.tensorParallel,
        itemBytes: mixed.itemBytes,
      },
    ],
    saves: readsMixed ? [mixed, open] : [open],
    extraSaved: saved,
    forwardTemporary: temporary,
    backwardTemporary: 2 * temporary,
    expensive: "attention",
  });
  return made as Tensor;
}

interface Place {
  readonly batch: number;
  /** Of all sequences. */
  readonly tokens: number;
  /** On this device. */
  readonly heads: number;
  readonly mixed: Tensor;
}

interface Kept {
  readonly saved: readonly Bytes[];
  /** Live at once in the forward pass; the backward pass has the gradients beside them. */
  readonly temporary: Bytes;
  /** Queries and keys are read where the convolution has left them. */
  readonly readsMixed: boolean;
}

function byKernels(mixer: StateSpaceShape, { tokens, heads, mixed }: Place): Kept {
  const { state, chunk } = mixer;
  const valueSize = mixer.inner / mixer.heads;
  const rows = tokens * heads;
  const keys = (rows * state * mixer.groups) / mixer.heads;
  const { itemBytes } = mixed;
  return {
    saved: [
      2 * keys * itemBytes,
      rows * valueSize * itemBytes,
      // The decay within a chunk; factors of the norms.
      rows * FP32,
      (2 * keys * FP32) / state,
      rows * chunk * itemBytes,
    ],
    // The state before each chunk, and the rows that the rule makes of keys and values.
    temporary:
      (rows / chunk) * state * valueSize * itemBytes + rows * (state + valueSize) * itemBytes,
    readsMixed: false,
  };
}

function byReference(mixer: StateSpaceShape, { batch, tokens, heads, mixed }: Place): Kept {
  const { state, chunk } = mixer;
  const valueSize = mixer.inner / mixer.heads;
  const chunks = batch * Math.ceil(tokens / batch / chunk);
  // Sequences are padded to whole chunks.
  const padded = chunks * chunk * heads * FP32;
  const rows = tokens * heads * FP32;
  // Repeated for each head of values or widened, queries and keys are tensors of their own.
  const readsMixed = mixer.groups === mixer.heads && mixed.itemBytes === FP32;
  return {
    saved: [
      ...(readsMixed ? [] : [2 * rows * state]),
      2 * rows,
      // Queries and keys, padded, times beta or the decay, and after the triangular system. What was not copied for fp32
      // lies in the order of positions, and products copy it again into that of heads.
      (mixed.itemBytes === FP32 ? 10 : 6) * padded * state,
      // Values, padded, after the triangular system, and without what the state predicts.
      3 * padded * valueSize,
      // Of each pair of positions of a chunk: the decay, and two products before and after it.
      5 * padded * chunk,
      6 * padded,
      // The state before each chunk.
      chunks * heads * state * valueSize * FP32,
    ],
    temporary: 2 * padded * (state + valueSize),
    readsMixed,
  };
}

/** weight * (x32 * rsqrt(mean(x32²) + eps)).to(x.dtype) * silu(gate32), for each head. */
function gatedNorm(build: LayerBuilder, x: Tensor, gate: Tensor, size: number): Tensor {
  const { tape } = build;
  const wide = build.cast(x, FP32);
  const [normed] = tape.op({
    name: "rms_norm",
    inputs: [wide],
    makes: [{ elements: x.elements, itemBytes: FP32 }],
    saves: [wide],
    extraSaved: [(x.elements / size) * FP32],
    pointwise: true,
  });
  const narrow = build.cast(normed as Tensor, x.itemBytes);
  const weight = build.parameter("norm", size, "vector");
  const [weighted] = tape.op({
    name: "norm.weight",
    inputs: [narrow],
    makes: [{ elements: x.elements, itemBytes: x.itemBytes }],
    saves: build.needsGradient(weight) ? [narrow] : [],
    parameters: [weight],
    pointwise: true,
  });
  const wideGate = build.cast(gate, FP32);
  const active = build.pointwise("silu", [wideGate], [wideGate]);
  const made = build.pointwise("mul", [weighted as Tensor, active], [weighted as Tensor, active]);
  return build.cast(made, x.itemBytes);
}
