/**
 * The kernels of attention, and what each keeps.
 *
 * | implementation | saves besides queries, keys, values and the output |
 * |---|---|
 * | flash, sdpa | log-sum-exp, 4 B for each head and position (Dao, "FlashAttention-2", 2023) |
 * | eager | scores after softmax in fp32, and their copy in the compute type: heads × positions² |
 *
 * On the CPU `sdpa` is fused in every type and for heads of every size, and reads groups in fp32, too; but with dropout,
 * with values of another size than the keys (MLA), or with a mask that has a gradient (T5) it computes scores in fp32 like
 * `eager`, from scaled copies (torch, sdp_utils_cpp.cpp: use_flash_attention_cpp).
 *
 * With a mask (a padded batch, a window) `sdpa` gets keys and values repeated for each head (`repeat_kv` and
 * `use_gqa_in_sdpa` of transformers), and keeps the mask in the compute type; without one, and with `flash`, kernels read
 * the groups as they are.
 */
import type { AttentionShape } from "../shape/attention_shape.js";
import type { Parameter, Tensor } from "../tape/tape.js";
import type { LayerBuilder } from "./layer_builder.js";
import type { AttentionImplementation } from "./rules.js";

const FP32 = 4;
/** Head sizes that the fused kernels take. */
const LARGEST_FUSED_HEAD = 256;

export interface Heads {
  readonly query: Tensor;
  readonly key: Tensor;
  readonly value: Tensor;
  /** Multiplies the kernel's result. */
  readonly gate?: Tensor;
  readonly heads: number;
  readonly kvHeads: number;
  /** Queries come out of cat: the kernel's output has their layout, and the output matrix needs a copy of it. */
  readonly joined: boolean;
}

export interface AttentionPlace {
  readonly shape: AttentionShape;
  readonly hidden: number;
  /** Where keys and values come from: the input itself, or another tower. */
  readonly source: Tensor;
  /** Width of the source's rows; absent: `hidden`. */
  readonly sourceHidden?: number;
  readonly queries: number;
  readonly keys: number;
  readonly dropout: boolean;
  /** Sequences of a text, which a padded batch masks. */
  readonly maskable: boolean;
  readonly prefix: string;
  /** False: the result is that of the kernel, without an output matrix (Flux). */
  readonly projects?: boolean;
}

/**
 * Which kernel runs: additive biases rule the fused ones out, scores beside those of keys those of torch. `math` is what
 * scaled_dot_product_attention runs where no fused kernel fits.
 */
function kernelOf(
  build: LayerBuilder,
  { shape, dropout }: AttentionPlace,
): AttentionImplementation | "math" {
  const { attention: wanted, onCpu } = build.rules;
  if ((wanted === "eager" && shape.alwaysFused !== true) || shape.scoreBias === "gated") {
    return "eager";
  }
  if (onCpu && wanted !== "flash" && shape.sinks !== true && shape.relativeRows === undefined) {
    const sameSize = (shape.valueHeadSize ?? shape.headSize) === shape.headSize;
    return sameSize && shape.scoreBias === "none" && !dropout ? "sdpa" : "math";
  }
  if (wanted === "sdpa" && isBiased(shape)) {
    // The bias is passed as a mask. While T5's is trained, no fused kernel takes it.
    const hasGradient = build.rules.training && build.rules.trainBase;
    return hasGradient && shape.fusesBias !== true ? "math" : "sdpa";
  }
  const fits = shape.scoreBias === "none" && shape.headSize <= LARGEST_FUSED_HEAD;
  return fits && !(shape.sinks === true && wanted === "sdpa")
    ? wanted === "eager"
      ? "sdpa"
      : wanted
    : "eager";
}

const MASK_ROW = 8;

/** A learned bias of each pair of positions, which transformers gives `sdpa` as a mask (T5). */
const isBiased = ({ scoreBias, relativeRows }: AttentionShape): boolean =>
  scoreBias === "relative" && relativeRows === undefined;

/** Images of Qwen-VL, whose queries, keys and values come from one matrix. */
export const isFusedVision = ({ shape, maskable, prefix }: AttentionPlace): boolean =>
  shape.fused && !maskable && prefix === "";

export function kernel(build: LayerBuilder, made: Heads, place: AttentionPlace): Tensor {
  const { shape } = place;
  const implementation = kernelOf(build, place);
  const groups = made.heads / made.kvHeads;
  // autocast gives the kernels the compute type, whatever type the projections return.
  const narrow = (x: Tensor): Tensor =>
    build.rules.autocast ? build.cast(x, build.rules.computeBytes) : x;
  const query = narrow(made.query);
  const rows = query.elements / (made.heads * shape.headSize);
  const { masks, repeatsGroups, fusesGroups, onCpu } = build.rules;
  const padded =
    implementation === "sdpa" &&
    ((masks === "all" && place.maskable) ||
      (masks !== "none" && shape.window > 0 && shape.window < place.keys));
  const masksHeads =
    implementation === "sdpa" && !onCpu && (shape.headMask === true || isBiased(shape));
  const masked = padded || masksHeads || (implementation === "sdpa" && shape.alwaysMasked === true);
  // The rows of a mask are padded for the kernel (pad_bias in torch's sdpa).
  const maskKeys = MASK_ROW * Math.ceil(place.keys / MASK_ROW);
  const mask = rows * maskKeys * query.itemBytes * (masksHeads ? made.heads : 1);
  const repeats =
    groups > 1 &&
    (implementation === "eager" || (padded && shape.alwaysMasked !== true) || repeatsGroups);
  // One head is expanded without a copy, which fused kernels read as it is.
  const expands = made.kvHeads === 1 && implementation === "sdpa";
  const grouped = (x: Tensor): Tensor =>
    narrow(
      !repeats || expands
        ? { ...x, elements: x.elements * (repeats ? groups : 1) }
        : build.copy(x, x.elements * groups),
    );
  const key = grouped(made.key);
  const value = grouped(made.value);
  const valueSize = shape.valueHeadSize ?? shape.headSize;
  const out = { elements: rows * made.heads * valueSize, itemBytes: query.itemBytes };
  if (implementation === "eager") {
    return eager(build, { ...made, query, key, value }, place, out);
  }
  const grouping = groups > 1 && !repeats;
  const isSplit = grouping && !onCpu && (!fusesGroups || shape.copiesValues === true);
  if (implementation === "math" || (implementation === "sdpa" && isSplit)) {
    return math(build, { ...made, query, key, value }, place, out);
  }
  const [mixed] = build.tape.op({
    name: "attention",
    inputs: [query, key, value],
    makes: [out],
    saves: [query, key, value, "output"],
    extraSaved: [rows * made.heads * FP32, ...(masked ? [mask] : [])],
    // The kernel reads the mask in the compute type.
    forwardTemporary: masked && !build.rules.training ? mask : 0,
    // The backward kernels add up the queries' gradient in fp32.
    backwardTemporary: query.itemBytes < FP32 ? query.elements * FP32 : 0,
    parameters: sinksOf(build, made.heads, shape),
    expensive: "attention",
  });
  // The results of several images of Qwen-VL are joined.
  const isJoined = made.joined || (implementation === "sdpa" && isFusedVision(place));
  return isJoined ? build.copy(mixed as Tensor) : (mixed as Tensor);
}

/**
 * What scaled_dot_product_attention runs where no fused kernel fits: everything in fp32, with scaled queries and keys and
 * repeated values of its own (torch, _scaled_dot_product_attention_math).
 */
function math(
  build: LayerBuilder,
  made: Heads,
  place: AttentionPlace,
  out: { elements: number; itemBytes: number },
): Tensor {
  const groups = made.heads / made.kvHeads;
  const wide = (x: Tensor, times: number): Tensor =>
    build.pointwise("scale", [build.copy(build.cast(x, FP32), x.elements * times)], []);
  const mixed = eager(
    build,
    {
      ...made,
      query: wide(made.query, 1),
      key: wide(made.key, groups),
      value: build.copy(build.cast(made.value, FP32), made.value.elements * groups),
    },
    place,
    { ...out, itemBytes: FP32 },
  );
  return build.cast(mixed, out.itemBytes);
}

function sinksOf(build: LayerBuilder, heads: number, { sinks }: AttentionShape): Parameter[] {
  return sinks === true ? [build.parameter("sinks", heads, "vector")] : [];
}

function eager(
  build: LayerBuilder,
  { query, key, value, heads }: Heads,
  place: AttentionPlace,
  out: { elements: number; itemBytes: number },
): Tensor {
  const { shape, queries, keys, dropout } = place;
  const sequences = query.elements / (heads * shape.headSize) / queries;
  const elements = sequences * heads * queries * Math.min(keys, shape.blockRows ?? keys);
  const itemBytes = query.itemBytes;
  const scoreBytes = shape.wideScores === true ? FP32 : itemBytes;
  // A product of several sequences reads whole tensors: slices are copied, and the copies are kept in place of the fused
  // product. One sequence, and each image of Qwen-VL, is read as a view of it.
  const isView = sequences === 1 || isFusedVision(place);
  const whole = (x: Tensor): Tensor =>
    !isView && x.elements * x.itemBytes < x.storage.bytes ? build.copy(x) : x;
  const wholeQuery = build.cast(whole(query), scoreBytes);
  const wholeKey = build.cast(whole(key), scoreBytes);
  const wholeValue = whole(value);
  // DeBERTa's second version scales the keys, and multiplies them as they were with the distances.
  const isScaled = shape.relativeRows !== undefined && !shape.fused;
  const scoredKey = isScaled ? build.pointwise("scale", [wholeKey], []) : wholeKey;
  const [product] = build.tape.op({
    name: "scores",
    inputs: [wholeQuery, scoredKey],
    makes: [{ elements, itemBytes: scoreBytes }],
    saves: [wholeQuery, scoredKey],
    expensive: "matmul",
  });
  let scores = build.pointwise("scale", [product as Tensor], []);
  if (shape.relativeRows !== undefined) {
    const distances = shape.fused ? Math.min(shape.relativeRows, 2 * keys) : shape.relativeRows;
    scores = disentangled(build, scores, {
      query: wholeQuery,
      key: wholeKey,
      table: sequences * heads * distances * shape.headSize,
      index: queries * keys,
      products: sequences * heads * queries * distances,
    });
  }
  if (shape.scoreBias === "gated") {
    scores = build.add(scores, gatedBias(build, place, scores));
  }
  if (shape.softCap) {
    scores = build.pointwise("scale", [build.pointwise("tanh", [scores], ["output"])], []);
  }
  const [masked] = build.tape.op({
    name: "mask",
    inputs: [scores],
    makes: [{ elements, itemBytes: scoreBytes }],
    // masked_fill with a mask that the model makes even of a batch without padding.
    extraSaved: shape.relativeRows === undefined ? [] : [sequences * queries * keys],
    pointwise: true,
    passesGradient: true,
  });
  const softBytes = shape.narrowSoftmax === true && !build.rules.autocast ? itemBytes : FP32;
  // With sinks, in the compute type, of one more score in each row.
  const [soft] = build.tape.op({
    name: "softmax",
    inputs: [masked as Tensor],
    makes: [
      shape.sinks === true
        ? { elements: (elements / keys) * (keys + 1), itemBytes }
        : { elements, itemBytes: softBytes },
    ],
    saves: ["output"],
    parameters: sinksOf(build, heads, shape),
    // The scores joined with the sinks, beside the scores alone.
    forwardTemporary: shape.sinks === true ? (elements / keys) * (keys + 1) * itemBytes : 0,
  });
  let weights = build.cast(soft as Tensor, itemBytes);
  if (dropout) {
    weights = build.dropout(weights);
  }
  const [mixed] = build.tape.op({
    name: "mix",
    inputs: [weights, wholeValue],
    makes: [out],
    saves: [weights, wholeValue],
    expensive: "matmul",
  });
  return build.copy(mixed as Tensor);
}

/** Figures of each head that a row of WavLM computes for its gate. */
const GATE_FIGURES = 8;

/**
 * gate * bias of positions (WavLMAttention.forward): a * (b * c - 1) + 2, where a and b are the sigmoids of sums of half of
 * the figures that a small matrix makes of the rows of each head. The bias itself belongs to the embedding.
 */
function gatedBias(
  build: LayerBuilder,
  { source, shape }: AttentionPlace,
  { elements, itemBytes }: Tensor,
): Tensor {
  const heads = shape.heads / build.rules.tensorParallel;
  const rows = source.elements / shape.headSize / build.rules.tensorParallel;
  const figures = build.linear(build.copy(source, rows * shape.headSize), {
    name: "gru_rel_pos_linear",
    inputs: shape.headSize,
    outputs: GATE_FIGURES,
    bias: true,
    group: "other",
  });
  const [sums] = build.tape.op({
    name: "sum",
    inputs: [figures],
    makes: [{ elements: 2 * rows, itemBytes }],
  });
  const open = build.pointwise("sigmoid", [sums as Tensor], ["output"]);
  const half = (): Tensor => build.tape.slice(open, rows);
  const [scaled] = build.tape.op({
    name: "mul",
    inputs: [half()],
    makes: [{ elements: rows, itemBytes }],
    saves: [open],
    parameters: [build.parameter("gru_rel_pos_const", heads, "vector")],
    pointwise: true,
  });
  const less = build.pointwise("sub", [scaled as Tensor], []);
  const gate = build.pointwise("add", [build.pointwise("mul", [half(), less], [open, less])], []);
  const [gated] = build.tape.op({
    name: "mul",
    inputs: [gate],
    makes: [{ elements, itemBytes }],
    saves: [gate],
    pointwise: true,
  });
  return gated as Tensor;
}

/**
 * DeBERTa (He et al. 2021, section 3.1): products of queries with the keys of distances and of keys with their queries,
 * gathered by the distance of each pair. Kept: both tables, repeated for each sequence, the products, and two tables of
 * indices. Version 1 reads as many rows of its table as the sequence has distances.
 */
function disentangled(
  build: LayerBuilder,
  scores: Tensor,
  sizes: { query: Tensor; key: Tensor; table: number; index: number; products: number },
): Tensor {
  const { tape } = build;
  let sum = scores;
  for (const own of [sizes.query, sizes.key]) {
    const [product] = tape.op({
      name: "relative",
      inputs: [own],
      makes: [{ elements: sizes.products, itemBytes: own.itemBytes }],
      saves: [own],
      extraSaved: [sizes.table * own.itemBytes],
      expensive: "matmul",
    });
    const [gathered] = tape.op({
      name: "gather",
      inputs: [product as Tensor],
      makes: [{ elements: scores.elements, itemBytes: scores.itemBytes }],
      saves: [product as Tensor],
      extraSaved: [sizes.index * 8],
    });
    sum = build.add(sum, gathered as Tensor);
  }
  return sum;
}
