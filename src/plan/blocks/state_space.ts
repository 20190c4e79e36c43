/**
 * State-space layers through the fused kernels of `mamba_ssm`: the scan keeps its inputs and one state for each chunk
 * of the sequence; what lies between the projection and the scan is computed again in the backward pass
 * (Gu and Dao, "Mamba", 2023, section 3.3; `mamba_inner_fn` with `checkpoint_lvl=1`). With `--attention eager`, and on the
 * CPU, through the reference code.
 */
import type { StateSpaceLayer, StateSpaceShape } from "../shape/model_shape.js";
import type { Tensor } from "../tape/tape.js";
import { deltaRule } from "./delta_rule.js";
import type { LayerBuilder } from "./layer_builder.js";
import { normalized } from "./norms.js";
import { referenceTemporary, savedByReference } from "./state_space_reference.js";

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
  build.tape.part = "state-space";
  return build.add(x, stateSpaceMixer(build, normalized(build, x, hidden, norm), hidden, mixer));
}

export function stateSpaceMixer(
  build: LayerBuilder,
  x: Tensor,
  hidden: number,
  mixer: StateSpaceShape,
): Tensor {
  const before = build.tape.part;
  build.tape.part = "state-space";
  const run = mixer.version === "delta" ? deltaRule : scan;
  const made = build.divided("state space", () => run(build, x, hidden, mixer));
  build.tape.part = before;
  return made;
}

function scan(build: LayerBuilder, x: Tensor, hidden: number, mixer: StateSpaceShape): Tensor {
  const { tape, rules } = build;
  const { inner, state, groups, heads, timeRank, version } = mixer;
  const tokens = x.elements / hidden;
  const parallel = rules.tensorParallel;
  const isConvolution = version === "convolution";
  // Two gates and the rows of a short convolution; a gate and the rows of Mamba 1; in Mamba 2 also B, C and the steps.
  const conditions = isConvolution ? inner : version === 1 ? 0 : 2 * groups * state + heads;
  const all = build.linear(x, {
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
      : isConvolution
        ? []
        : [
            build.parameter("A_log", heads / parallel, "vector"),
            build.parameter("D", heads / parallel, "vector"),
            build.parameter("dt_bias", heads / parallel, "vector"),
            ...(mixer.plainGate === true
              ? []
              : [build.parameter("norm", inner / parallel, "vector")]),
          ];
  const chunks = rules.batch * Math.ceil(rules.sequence / (version === 1 ? CHUNK_1 : CHUNK_2));
  const out = (tokens * inner) / parallel;
  const convolved = [
    out * all.itemBytes,
    rules.batch *
      (tokens / rules.batch + mixer.convolution - 1) *
      (inner / parallel) *
      all.itemBytes,
  ];
  const fused = isConvolution
    ? convolved
    : [
        tokens * (version === 1 ? timeRank + 2 * state : heads / parallel) * all.itemBytes,
        chunks * (inner / parallel) * state * FP32,
      ];
  const place = {
    batch: rules.batch,
    sequence: tokens / rules.batch,
    inner: inner / parallel,
    heads: heads / parallel,
    itemBytes: all.itemBytes,
  };
  const isReference =
    !isConvolution && rules.training && (rules.onCpu || rules.attention === "eager");
  const temporary = isReference ? referenceTemporary(mixer, place) : 0;
  const [scanned] = tape.op({
    name: "scan",
    inputs: [all],
    makes: [{ elements: out, itemBytes: all.itemBytes }],
    saves: [all, "output"],
    extraSaved: isReference ? savedByReference(mixer, place) : fused,
    parameters: [...convolution, ...own],
    forwardTemporary: Math.max(temporary, 2 * out * all.itemBytes),
    backwardTemporary: Math.max(temporary, 3 * out * all.itemBytes),
    expensive: "attention",
  });
  return build.linear(scanned as Tensor, {
    name: "out_proj",
    inputs: inner,
    outputs: hidden,
    bias: mixer.bias,
    split: "inputs",
    group: "attention",
  });
}
