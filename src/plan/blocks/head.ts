/**
 * The head and the loss. Bytes of one logit at the peak, of 16-bit logits and a loss in fp32 (the upcast of PyTorch
 * libraries): logits 2, log-softmax 4, its gradient 4, the gradient of its input 4, while one of the copies lives on.
 * `chunked` holds fp32 copies of one chunk at a time; `fused` (Liger, Cut Cross-Entropy) never holds all logits.
 */
import type { HeadShape } from "../shape/model_shape.js";
import type { Tensor } from "../tape/tape.js";
import type { LayerBuilder } from "./layer_builder.js";

const FP32 = 4;
/** Chunks of the losses that chunk: torchtune's CEWithChunkedOutputLoss has 8. */
const CHUNKS = 8;

export interface HeadPlace {
  readonly hidden: number;
  /** Positions for which logits are computed, of all sequences. */
  readonly rows: number;
}

export function headAndLoss(
  build: LayerBuilder,
  x: Tensor,
  head: HeadShape,
  place: HeadPlace,
): void {
  const { tape, rules } = build;
  tape.part = "head and loss";
  if (head.kind === "none") {
    if (rules.training) {
      loss(build, x);
    }
    return;
  }
  const rows = head.kind === "class" ? rules.batch : place.rows;
  const width = place.hidden;
  const input = rows * width < x.elements ? tape.slice(x, rows * width) : x;
  const hidden = head.transform ? transform(build, input, width) : input;
  if (rules.training && rules.loss === "fused" && head.kind === "language") {
    fusedLoss(build, hidden, head, width);
    return;
  }
  let logits = project(build, hidden, head, width);
  if (head.softCap) {
    const capped = build.pointwise("tanh", [build.pointwise("scale", [logits], [])], ["output"]);
    logits = build.pointwise("scale", [capped], []);
  }
  // The model's output holds them until the step ends.
  logits.storage.held = true;
  if (rules.training) {
    loss(build, logits);
  }
}

function transform(build: LayerBuilder, x: Tensor, width: number): Tensor {
  const dense = build.linear(x, {
    name: "dense",
    inputs: width,
    outputs: width,
    bias: true,
    group: "other",
  });
  const active = build.activation(dense, "gelu");
  return build.norm(active, width, { kind: "layer", bias: true, affine: true });
}

function project(build: LayerBuilder, x: Tensor, head: HeadShape, width: number): Tensor {
  const made = build.linear(x, {
    name: "lm_head",
    inputs: width,
    outputs: head.outputs,
    bias: head.bias,
    split: "outputs",
    group: "other",
  });
  if (head.tied) {
    // The matrix is the embedding's: its parameters were counted there, and so was its gradient.
    const last = build.tape.parameters.findLastIndex(({ name }) => name === "lm_head");
    build.tape.parameters.splice(last, 1);
  }
  return made;
}

/** cross_entropy(logits.float(), labels): log_softmax keeps its output. */
function loss(build: LayerBuilder, logits: Tensor): void {
  const { tape, rules } = build;
  const chunked = rules.loss === "chunked";
  const part = chunked ? CHUNKS : 1;
  const whole = logits.elements * (rules.lossUpcasts ? FP32 : logits.itemBytes);
  if (chunked || rules.lossCompiled) {
    // A compiled loss is one kernel that reads the logits and recomputes the softmax.
    const perChunk = (whole / part) * (rules.lossCompiled ? 1 : 2);
    const [value] = tape.op({
      name: "cross_entropy",
      inputs: [logits],
      makes: [{ elements: 1, itemBytes: FP32 }],
      saves: [logits],
      extraSaved: rules.lossCompiled ? [] : [whole],
      forwardTemporary: rules.lossCompiled ? 0 : perChunk,
      backwardTemporary: perChunk,
    });
    (value as Tensor).storage.held = true;
    return;
  }
  const wide = build.cast(logits, FP32);
  const [logged] = tape.op({
    name: "log_softmax",
    inputs: [wide],
    makes: [{ elements: logits.elements, itemBytes: FP32 }],
    saves: ["output"],
  });
  tape.op({
    name: "nll_loss",
    inputs: [logged as Tensor],
    makes: [{ elements: 1, itemBytes: FP32 }],
  });
}

/** Liger's FusedLinearCrossEntropy: gradients of the input and the weight are computed in the forward pass. */
function fusedLoss(build: LayerBuilder, x: Tensor, head: HeadShape, width: number): void {
  const { rules, tape } = build;
  const weight = build.parameter(
    "lm_head",
    (head.outputs / rules.tensorParallel) * width,
    "matrix",
    head.outputs,
  );
  const rows = x.elements / width;
  // chunk = next power of 2 of rows / (outputs / width), as in Liger.
  const chunk = Math.min(
    rows,
    2 ** Math.ceil(Math.log2(Math.max(1, (rows * width) / head.outputs))),
  );
  tape.op({
    name: "fused_cross_entropy",
    inputs: [x],
    makes: [{ elements: 1, itemBytes: FP32 }],
    extraSaved: [x.elements * x.itemBytes],
    parameters: [weight],
    forwardTemporary: chunk * head.outputs * (x.itemBytes + FP32),
  });
  if (head.tied) {
    tape.parameters.pop();
  }
}
