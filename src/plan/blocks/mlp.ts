/** MLP and mixture of experts. */
import { isMoe } from "../shape/layers.js";
import type { MlpShape, MoeShape } from "../shape/model_shape.js";
import type { Tensor } from "../tape/tape.js";
import type { LayerBuilder } from "./layer_builder.js";

const FP32 = 4;

/** @param routes what the router of a mixture reads, where it differs from what the experts read */
export function feedForward(
  build: LayerBuilder,
  x: Tensor,
  hidden: number,
  shape: MlpShape | MoeShape,
  routes = x,
): Tensor {
  const before = build.tape.part;
  build.tape.part = isMoe(shape) ? "moe" : "mlp";
  const out = isMoe(shape)
    ? experts(build, [x, routes], hidden, shape)
    : build.divided("MLP", () => mlp(build, x, hidden, shape));
  build.tape.part = before;
  return out;
}

/** @param of matrices for each of so many experts; their tokens are not divided by tensor parallelism */
function mlp(
  build: LayerBuilder,
  x: Tensor,
  hidden: number,
  shape: MlpShape,
  of: { readonly experts?: number; readonly areAllRun?: true } = {},
): Tensor {
  const group = "mlp" as const;
  const { areAllRun = false, ...many } = of;
  // The grouped product leaves rows of absent experts open, which are filled in a copy (grouped_mm of transformers).
  const isGrouped = many.experts !== undefined && !areAllRun;
  const up = (name: string, outputs: number): Tensor =>
    build.linear(x, {
      name,
      inputs: hidden,
      outputs,
      bias: shape.bias,
      split: "outputs",
      group,
      ...many,
    });
  const down = (x: Tensor): Tensor =>
    build.linear(x, {
      name: "down_proj",
      inputs: shape.width,
      outputs: hidden,
      bias: shape.bias,
      split: "inputs",
      group,
      ...many,
    });
  let inner: Tensor;
  if (!shape.gated) {
    inner = build.activation(up("up_proj", shape.width), shape.activation);
  } else if (shape.fused) {
    const product = up("gate_up_proj", 2 * shape.width);
    const both = isGrouped ? filled(build, product, hidden) : product;
    if (shape.activation === "clamped") {
      return down(clampedGate(build, both));
    }
    const gate = build.tape.slice(both, both.elements / 2);
    const other = build.tape.slice(both, both.elements / 2);
    const active = build.activation(gate, shape.activation);
    inner = build.pointwise("mul", [active, other], [active, other]);
  } else {
    const gate = up("gate_proj", shape.width);
    const kept = shape.sparse === true ? largest(build, gate, shape.width) : gate;
    const active = build.activation(kept, shape.activation);
    const other = up("up_proj", shape.width);
    inner = build.pointwise("mul", [active, other], [active, other]);
  }
  return down(shape.dropout === true && build.rules.dropout ? build.dropout(inner) : inner);
}

/** relu(x - (mean + std * factor)) of each row: the gradient of the deviation reads the row (_gaussian_topk of Gemma 3n). */
function largest(build: LayerBuilder, x: Tensor, width: number): Tensor {
  const [deviation] = build.tape.op({
    name: "std",
    inputs: [x],
    makes: [{ elements: x.elements / width, itemBytes: x.itemBytes }],
    saves: [x, "output"],
  });
  const above = build.pointwise("sub", [x, deviation as Tensor], []);
  return build.pointwise("relu", [above], ["output"]);
}

/** masked_fill: a copy, and one byte for each row. */
function filled(build: LayerBuilder, x: Tensor, width: number): Tensor {
  const [made] = build.tape.op({
    name: "masked_fill",
    inputs: [x],
    makes: [{ elements: x.elements, itemBytes: x.itemBytes }],
    extraSaved: [x.elements / width],
    pointwise: true,
  });
  return made as Tensor;
}

/** GptOssExperts._apply_gate: (clamp(up) + 1) * (clamp(gate) * sigmoid(1.702 clamp(gate))). */
function clampedGate(build: LayerBuilder, both: Tensor): Tensor {
  const half = (): Tensor => build.tape.slice(both, both.elements / 2);
  const gate = build.pointwise("clamp", [half()], [both]);
  const up = build.pointwise("clamp", [half()], [both]);
  const sigmoid = build.pointwise("sigmoid", [build.pointwise("scale", [gate], [])], ["output"]);
  const glu = build.pointwise("mul", [gate, sigmoid], [gate, sigmoid]);
  const onePlus = build.pointwise("add", [up], []);
  return build.pointwise("mul", [onePlus, glu], [onePlus, glu]);
}

/** Rows go to the experts of devices that have other tokens, and back (all-to-all): a copy in each direction. */
function exchange(build: LayerBuilder, rows: Tensor): Tensor {
  if (build.rules.experts.copies === 1) {
    return rows;
  }
  const [received] = build.tape.op({
    name: "all_to_all",
    inputs: [rows],
    makes: [{ elements: rows.elements, itemBytes: rows.itemBytes }],
  });
  return received as Tensor;
}

/**
 * Tokens are gathered for each of their experts, computed, weighted and added up, as grouped_mm_experts_forward of
 * transformers 5 does. All experts together see `perToken` rows for each token; the busiest device of expert parallelism
 * `imbalance` times its share.
 */
function experts(
  build: LayerBuilder,
  [x, routes]: readonly [x: Tensor, routes: Tensor],
  hidden: number,
  shape: MoeShape,
): Tensor {
  const { tape, rules } = build;
  const isWide = shape.wideRouter === true;
  const logits = build.linear(isWide ? build.cast(routes, FP32) : routes, {
    name: "router",
    inputs: hidden,
    outputs: shape.experts,
    bias: shape.routerBias,
    group: "router",
  });
  const wide = build.cast(logits, FP32);
  const [weights] = tape.op({
    name: "router.softmax",
    inputs: [wide],
    makes: [{ elements: wide.elements, itemBytes: FP32 }],
    saves: ["output"],
  });
  const { latent = hidden } = shape;
  const between = (from: Tensor, name: string, inputs: number, outputs: number): Tensor =>
    latent === hidden
      ? from
      : build.linear(from, { name, inputs, outputs, bias: shape.expert.bias, group: "mlp" });
  const source = between(x, "fc1_latent_proj", hidden, latent);
  const run =
    rules.fusedExperts === true ? fusedExperts : shape.runsAll === true ? allExperts : routed;
  const made = run(build, [source, weights as Tensor], latent, shape);
  return withShared(build, x, { hidden, shape }, between(made, "fc2_latent_proj", latent, hidden));
}

type Routed = readonly [x: Tensor, weights: Tensor];

/** The rows of each token's own experts. */
function routed(
  build: LayerBuilder,
  [x, weights]: Routed,
  hidden: number,
  shape: MoeShape,
): Tensor {
  const { tape, rules } = build;
  const busiest = rules.experts.devices > 1 ? rules.imbalance : 1;
  const rows = ((x.elements / hidden) * shape.perToken * busiest) / rules.routedOver;
  const [gathered] = tape.op({
    name: "gather",
    inputs: [x],
    makes: [{ elements: rows * hidden, itemBytes: x.itemBytes }],
    // The indices, int64.
    extraSaved: [rows * 8],
  });
  const exchanged = exchange(build, gathered as Tensor);
  const { experts } = shape;
  const made = exchange(build, mlp(build, exchanged, hidden, shape.expert, { experts }));
  const itemBytes = shape.wideRouter === true ? FP32 : made.itemBytes;
  const [weighted] = tape.op({
    name: "weigh",
    inputs: [made, weights],
    makes: [{ elements: made.elements, itemBytes }],
    saves: [made],
    pointwise: true,
  });
  // Back into the order of the tokens, by indices in int64; then the sum over each token's experts.
  const [ordered] = tape.op({
    name: "gather",
    inputs: [filled(build, weighted as Tensor, hidden)],
    makes: [{ elements: made.elements, itemBytes }],
    extraSaved: [rows * 8],
  });
  const [added] = tape.op({
    name: "sum",
    inputs: [ordered as Tensor],
    makes: [{ elements: x.elements, itemBytes }],
  });
  build.release(gathered as Tensor);
  build.release(made);
  return build.cast(added as Tensor, x.itemBytes);
}

/** Llama4TextMoe: all experts read all rows, multiplied with weights of which all but those of a token's experts are 0. */
function allExperts(
  build: LayerBuilder,
  [x, weights]: Routed,
  hidden: number,
  shape: MoeShape,
): Tensor {
  const { tape } = build;
  const { experts, expert, perToken } = shape;
  const tokens = x.elements / hidden;
  const scores = build.cast(weights, x.itemBytes);
  const [repeated] = tape.op({
    name: "repeat",
    inputs: [x],
    makes: [{ elements: x.elements * experts, itemBytes: x.itemBytes }],
    // The experts of each token, int64, for topk and scatter.
    extraSaved: [tokens * perToken * 8],
  });
  const [scaled] = tape.op({
    name: "weigh",
    inputs: [repeated as Tensor, scores],
    makes: [{ elements: x.elements * experts, itemBytes: x.itemBytes }],
    saves: [repeated as Tensor, scores],
    pointwise: true,
  });
  const made = mlp(build, scaled as Tensor, hidden, expert, { experts, areAllRun: true });
  const [sum] = tape.op({
    name: "sum",
    inputs: [made],
    makes: [{ elements: x.elements, itemBytes: x.itemBytes }],
  });
  return sum as Tensor;
}

/**
 * The kernel of the engines reads the rows of a token where they are. It has two workspaces for all rows of the pass, also
 * for those whose experts are on other devices: one for the first product and then for the second, and one for the
 * activation between them (fused_experts_impl of vLLM: `cache13`, `intermediate_cache2`; fewer tokens than a chunk of 32,768).
 */
function fusedExperts(build: LayerBuilder, [x]: Routed, hidden: number, shape: MoeShape): Tensor {
  const { tape, rules } = build;
  const [none] = tape.op({ name: "rows", inputs: [x], makes: [{ elements: 0, itemBytes: 1 }] });
  // The matrices; their products are in the workspaces.
  mlp(build, none as Tensor, hidden, shape.expert, { experts: shape.experts });
  const { gated, width } = shape.expert;
  const inner = width / rules.experts.tensor;
  const rows = (x.elements / hidden) * shape.perToken;
  const [made] = tape.op({
    name: "fused_experts",
    inputs: [x],
    makes: [{ elements: x.elements, itemBytes: x.itemBytes }],
    forwardTemporary: rows * (Math.max((gated ? 2 : 1) * inner, hidden) + inner) * x.itemBytes,
  });
  return made as Tensor;
}

/** The result of the routed experts, and that of the shared ones. */
function withShared(
  build: LayerBuilder,
  x: Tensor,
  { hidden, shape }: { readonly hidden: number; readonly shape: MoeShape },
  sum: Tensor,
): Tensor {
  if (shape.shared === null) {
    return sum;
  }
  const { shared } = shape;
  let beside = build.divided("shared experts", () => mlp(build, x, hidden, shared));
  if (shape.sharedGate) {
    const gate = build.linear(x, {
      name: "shared_gate",
      inputs: hidden,
      outputs: 1,
      group: "router",
    });
    beside = build.pointwise("mul", [beside, gate], [beside, gate]);
  }
  return build.add(sum, beside);
}
