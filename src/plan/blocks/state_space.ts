/**
 * State-space layers through the fused kernels of `mamba_ssm`: the scan keeps its inputs and one state for each chunk
 * of the sequence; what lies between the projection and the scan is computed again in the backward pass
 * (Gu and Dao, "Mamba", 2023, section 3.3; `mamba_inner_fn` with `checkpoint_lvl=1`).
 */
import type { StateSpaceLayer } from "../shape/model_shape.js";
import type { Tensor } from "../tape/tape.js";
import type { LayerBuilder } from "./layer_builder.js";
import { normalized } from "./norms.js";

const FP32 = 4;
/** Positions between two states that the kernels keep. */
const CHUNK_1 = 2048;
const CHUNK_2 = 256;

export function stateSpaceLayer(
  build: LayerBuilder,
  x: Tensor,
  hidden: number,
  { norm, mixer }: StateSpaceLayer,
): Tensor {
  const { tape, rules } = build;
  tape.part = "state-space";
  const { inner, state, groups, heads, timeRank, version } = mixer;
  const normed = normalized(build, x, hidden, norm);
  const tokens = x.elements / hidden;
  const parallel = rules.tensorParallel;
  const conditions = version === 1 ? 0 : 2 * groups * state + heads;
  const all = build.linear(normed, {
    name: "in_proj",
    inputs: hidden,
    outputs: 2 * inner + conditions,
    bias: mixer.bias,
    split: "outputs",
    group: "attention",
  });
  const mixedChannels = (inner + (version === 1 ? 0 : 2 * groups * state)) / parallel;
  const convolution = [
    build.parameter("conv1d", mixedChannels * mixer.convolution, "vector"),
    ...(mixer.convolutionBias ? [build.parameter("conv1d.bias", mixedChannels, "vector")] : []),
  ];
  const own =
    version === 1
      ? [
          build.parameter("x_proj", (inner / parallel) * (timeRank + 2 * state), "matrix", inner),
          build.parameter("dt_proj", (inner / parallel) * (timeRank + 1), "matrix", inner),
          build.parameter("A_log", (inner / parallel) * state, "vector"),
          build.parameter("D", inner / parallel, "vector"),
        ]
      : [
          build.parameter("A_log", heads / parallel, "vector"),
          build.parameter("D", heads / parallel, "vector"),
          build.parameter("dt_bias", heads / parallel, "vector"),
          build.parameter("norm", inner / parallel, "vector"),
        ];
  const chunks = rules.batch * Math.ceil(rules.sequence / (version === 1 ? CHUNK_1 : CHUNK_2));
  const out = (tokens * inner) / parallel;
  const [scanned] = tape.op({
    name: "scan",
    inputs: [all],
    makes: [{ elements: out, itemBytes: all.itemBytes }],
    saves: [all, "output"],
    extraSaved: [
      tokens * (version === 1 ? timeRank + 2 * state : heads / parallel) * all.itemBytes,
      chunks * (inner / parallel) * state * FP32,
    ],
    parameters: [...convolution, ...own],
    forwardTemporary: 2 * out * all.itemBytes,
    backwardTemporary: 3 * out * all.itemBytes,
    expensive: "attention",
  });
  const made = build.linear(scanned as Tensor, {
    name: "out_proj",
    inputs: inner,
    outputs: hidden,
    bias: mixer.bias,
    split: "inputs",
    group: "attention",
  });
  return build.add(x, made);
}
