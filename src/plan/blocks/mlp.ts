/** MLP and mixture of experts. */
import { isMoe, type MlpShape, type MoeShape } from "../shape/model_shape.js";
import type { Tensor } from "../tape/tape.js";
import type { LayerBuilder } from "./layer_builder.js";

const FP32 = 4;

export function feedForward(
  build: LayerBuilder,
  x: Tensor,
  hidden: number,
  shape: MlpShape | MoeShape,
): Tensor {
  const before = build.tape.part;
  build.tape.part = isMoe(shape) ? "moe" : "mlp";
  const out = isMoe(shape) ? experts(build, x, hidden, shape) : mlp(build, x, hidden, shape);
  build.tape.part = before;
  return out;
}

/** @param ofExperts matrices for each of so many experts; their tokens are not divided by tensor parallelism */
function mlp(
  build: LayerBuilder,
  x: Tensor,
  hidden: number,
  shape: MlpShape,
  ofExperts?: number,
): Tensor {
  const group = "mlp" as const;
  const many = ofExperts === undefined ? {} : { experts: ofExperts };
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
  let inner: Tensor;
  if (!shape.gated) {
    inner = build.activation(up("up_proj", shape.width), shape.activation);
  } else if (shape.fused) {
    const both = up("gate_up_proj", 2 * shape.width);
    const gate = build.tape.slice(both, both.elements / 2);
    const other = build.tape.slice(both, both.elements / 2);
    const active = build.activation(gate, shape.activation);
    inner = build.pointwise("mul", [active, other], [active, other]);
  } else {
    const active = build.activation(up("gate_proj", shape.width), shape.activation);
    const other = up("up_proj", shape.width);
    inner = build.pointwise("mul", [active, other], [active, other]);
  }
  return build.linear(inner, {
    name: "down_proj",
    inputs: shape.width,
    outputs: hidden,
    bias: shape.bias,
    split: "inputs",
    group,
    ...many,
  });
}

/** Expert parallelism sends rows to their experts' ranks and back (all-to-all): a copy in each direction. */
function exchange(build: LayerBuilder, rows: Tensor): Tensor {
  if (build.rules.expertParallel === 1) {
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
 * Tokens are gathered for each of their experts, computed, weighted and added up. All experts together see
 * `perToken` rows for each token; the busiest device of expert parallelism `imbalance` times its share.
 */
function experts(build: LayerBuilder, x: Tensor, hidden: number, shape: MoeShape): Tensor {
  const { tape, rules } = build;
  const tokens = x.elements / hidden;
  const logits = build.linear(x, {
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
  const routed = tokens * shape.perToken * (rules.expertParallel > 1 ? rules.imbalance : 1);
  const [gathered] = tape.op({
    name: "gather",
    inputs: [x],
    makes: [{ elements: routed * hidden, itemBytes: x.itemBytes }],
    // The indices, int64.
    extraSaved: [routed * 8],
  });
  const exchanged = exchange(build, gathered as Tensor);
  const made = exchange(build, mlp(build, exchanged, hidden, shape.expert, shape.experts));
  const [weighted] = tape.op({
    name: "weigh",
    inputs: [made, weights as Tensor],
    makes: [{ elements: made.elements, itemBytes: made.itemBytes }],
    saves: [made],
    pointwise: true,
  });
  const [sum] = tape.op({
    name: "index_add",
    inputs: [weighted as Tensor],
    makes: [{ elements: x.elements, itemBytes: x.itemBytes }],
    // index_add keeps its source for the shape of the gradient.
    saves: [weighted as Tensor],
  });
  if (shape.shared === null) {
    return sum as Tensor;
  }
  let beside = mlp(build, x, hidden, shape.shared);
  if (shape.sharedGate) {
    const gate = build.linear(x, {
      name: "shared_gate",
      inputs: hidden,
      outputs: 1,
      group: "router",
    });
    beside = build.pointwise("mul", [beside, gate], [beside, gate]);
  }
  return build.add(sum as Tensor, beside);
}
