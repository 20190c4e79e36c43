/**
 * The head and the loss. Bytes of one logit at the peak, of 16-bit logits and a loss in fp32 (the upcast of PyTorch
 * libraries): logits 2, log-softmax 4, its gradient 4, the gradient of its input 4. `chunked` has gradients of one chunk
 * at a time; `fused` (Liger, Cut Cross-Entropy) never holds all logits.
 */
import type { HeadShape } from "../shape/model_shape.js";
import type { Tensor } from "../tape/tape.js";
import type { LayerBuilder } from "./layer_builder.js";
import { modulate } from "./modulation.js";
import { normalized } from "./norms.js";

const FP32 = 4;
/** Chunks of the losses that chunk: torchtune's CEWithChunkedOutputLoss has 8. */
const CHUNKS = 8;
/** More chunks change the figure by less than a logit's gradient. */
const MOST_CHUNKS = 64;

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
  if (head.kind === "none" || head.kind === "pairs") {
    if (rules.training) {
      const rows = head.kind === "none" ? x : pooledRows(build, x, rules.batch * place.hidden);
      loss(build, rows);
    }
    return;
  }
  if (head.kind === "patches") {
    const patches = imagePatches(build, x, head, place.hidden);
    if (rules.training) {
      loss(build, patches);
    }
    return;
  }
  const rows = head.kind === "class" ? rules.batch * (head.objects ?? 1) : place.rows;
  const width = place.hidden;
  const some = (): Tensor =>
    head.objects === undefined ? tape.slice(x, rows * width) : build.copy(x, rows * width);
  const input = rows * width < x.elements ? some() : x;
  const outputs = head.transformWidth ?? width;
  const hidden = head.transform ? transform(build, input, width, head) : input;
  if (rules.training && rules.loss === "fused" && head.kind === "language") {
    fusedLoss(build, hidden, head, outputs);
    return;
  }
  if (rules.training && rules.loss === "chunked" && head.kind === "language") {
    chunkedLoss(build, hidden, head, outputs);
    return;
  }
  let logits = project(build, hidden, head, outputs);
  if (head.softCap) {
    const capped = build.pointwise("tanh", [build.pointwise("scale", [logits], [])], ["output"]);
    logits = build.pointwise("scale", [capped], []);
  }
  if (rules.training) {
    loss(build, logits, head.narrowLoss);
  }
}

/** One row of each sample. */
function pooledRows(build: LayerBuilder, x: Tensor, elements: number): Tensor {
  const [rows] = build.tape.op({
    name: "gather",
    inputs: [x],
    makes: [{ elements, itemBytes: x.itemBytes }],
  });
  return rows as Tensor;
}

/** norm_out, the factors of the condition, and a matrix: diffusers' DiT, PixArt, SD3 and Flux. */
function imagePatches(
  build: LayerBuilder,
  x: Tensor,
  { outputs, table = false }: HeadShape,
  hidden: number,
): Tensor {
  const normed = normalized(build, x, hidden, { kind: "layer", bias: false, affine: false });
  const factors = table ? 0 : 2;
  if (table) {
    build.tape.parameters.push(build.parameter("scale_shift_table", 2 * hidden, "vector"));
  }
  return build.linear(modulate(build, normed, { name: "proj_out_1", hidden, factors }), {
    name: "proj_out_2",
    inputs: hidden,
    outputs,
    bias: true,
    group: "other",
  });
}

/**
 * Logits, loss and gradients of one chunk of the rows after another, as torchtune's CEWithChunkedOutputLoss and litgpt's
 * chunked_cross_entropy compute them. The forward pass keeps the logits of all chunks; the backward pass has the gradient
 * of one. A trained head adds the gradient of its matrix of each chunk to that of the chunks before.
 */
function chunkedLoss(build: LayerBuilder, x: Tensor, head: HeadShape, width: number): void {
  const { tape, rules } = build;
  const rows = x.elements / width;
  const chunks = Math.max(
    1,
    Math.min(MOST_CHUNKS, rules.lossChunkRows === null ? CHUNKS : rows / rules.lossChunkRows),
  );
  const count = Math.ceil(chunks);
  for (let chunk = 0; chunk < count; chunk++) {
    const own = Math.min(1, chunks - chunk) / chunks;
    const logits = project(build, tape.slice(x, x.elements * own), head, width, {
      counted: chunk === 0,
      // The backward pass begins with the last chunk.
      keepsGradient: chunk === count - 1,
    });
    loss(build, logits);
  }
}

function transform(
  build: LayerBuilder,
  x: Tensor,
  width: number,
  { transformWidth: outputs = width, transformBias: bias = true }: HeadShape,
): Tensor {
  const dense = build.linear(x, {
    name: "dense",
    inputs: width,
    outputs,
    bias,
    group: "other",
  });
  const active = build.activation(dense, "gelu");
  return normalized(build, active, outputs, { kind: "layer", bias, affine: true });
}

/** Of several uses of the matrix, one is counted, and the gradients of the others are added to that of one. */
function project(
  build: LayerBuilder,
  x: Tensor,
  head: HeadShape,
  width: number,
  { counted, keepsGradient } = { counted: true, keepsGradient: true },
): Tensor {
  const { rules } = build;
  const made = build.linear(x, {
    name: "lm_head",
    inputs: width,
    outputs: head.outputs,
    bias: head.bias,
    split: "outputs",
    group: "other",
    again: !keepsGradient,
  });
  const logits = rules.gathersLogits ? gatherLogits(build, made) : made;
  if (!counted && head.bias) {
    build.tape.parameters.pop();
  }
  const last = build.tape.parameters.findLastIndex(({ name }) => name === "lm_head");
  const own = build.tape.parameters[last];
  if (!counted || (head.tied && own?.originalBytes === undefined)) {
    // The matrix is the embedding's or was counted with the first chunk.
    build.tape.parameters.splice(last, 1);
  } else if (head.tied && own !== undefined) {
    // A trained copy of a tied matrix, whose original is the embedding's.
    build.tape.parameters[last] = { ...own, originalBytes: 0 };
  }
  return logits;
}

/** all_gather stacks the ranks' logits, and cat puts them side by side; the gradient of the own ones is a copy. */
function gatherLogits(build: LayerBuilder, made: Tensor): Tensor {
  const elements = made.elements * build.rules.tensorParallel;
  const [whole] = build.tape.op({
    name: "all_gather",
    inputs: [made],
    makes: [{ elements, itemBytes: made.itemBytes }],
    forwardTemporary: elements * made.itemBytes,
  });
  return whole as Tensor;
}

/**
 * cross_entropy(logits.float(), labels): log_softmax keeps its output; a compiled loss reads the logits again.
 * @param isNarrow without float(): log_softmax is asked for the logits' own type, also under autocast, which then gives
 * nll_loss a copy in fp32
 */
function loss(build: LayerBuilder, logits: Tensor, isNarrow = false): void {
  const { tape, rules } = build;
  const scalar = { elements: 1, itemBytes: FP32 };
  logits.storage.held = rules.holdsLogits === "made";
  if (rules.lossCompiled) {
    const rows = logits.storage.bytes / logits.itemBytes / Math.max(1, logits.elements);
    tape.op({
      name: "cross_entropy",
      inputs: [logits],
      makes: [scalar],
      saves: [logits],
      extraSaved: [rows * FP32],
      // The logits are a result of the compiled model, too: their gradient from outside is a tensor of zeros.
      backwardTemporary: rules.holdsLogits === "made" ? logits.storage.bytes : 0,
    });
    return;
  }
  const wide = isNarrow ? logits : build.cast(logits, FP32);
  wide.storage.held ||= rules.holdsLogits === "fp32";
  const [logged] = tape.op({
    name: "log_softmax",
    inputs: [wide],
    makes: [{ elements: logits.elements, itemBytes: wide.itemBytes }],
    saves: ["output"],
  });
  const read = rules.autocast ? build.cast(logged as Tensor, FP32) : (logged as Tensor);
  tape.op({ name: "nll_loss", inputs: [read], makes: [scalar], saves: [read] });
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
  if (head.tied && weight.originalBytes === undefined) {
    tape.parameters.pop();
  }
}
