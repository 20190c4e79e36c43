/**
 * Attention as libraries run it: queries, keys and values, rotation, the kernel, the output.
 *
 * | implementation | saves besides queries, keys, values and the output |
 * |---|---|
 * | flash, sdpa | log-sum-exp, 4 B for each head and position (Dao, "FlashAttention-2", 2023) |
 * | eager | scores after softmax in fp32, and their copy in the compute type: heads × positions² |
 *
 * With a mask (a padded batch, a window) `sdpa` gets keys and values repeated for each head (`repeat_kv` and
 * `use_gqa_in_sdpa` of transformers), and keeps the mask in the compute type; without one, and with `flash`, kernels read
 * the groups as they are.
 */
import type { AttentionShape } from "../shape/model_shape.js";
import type { Parameter, Tensor } from "../tape/tape.js";
import type { LayerBuilder } from "./layer_builder.js";
import { normalized } from "./norms.js";
import type { AttentionImplementation } from "./rules.js";

const FP32 = 4;
/** Head sizes that the fused kernels take. */
const LARGEST_FUSED_HEAD = 256;

interface Heads {
  readonly query: Tensor;
  readonly key: Tensor;
  readonly value: Tensor;
  readonly heads: number;
  readonly kvHeads: number;
  /** Queries come out of cat: the kernel's output has their layout, and the output matrix needs a copy of it. */
  readonly joined: boolean;
}

interface AttentionPlace {
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

export function attention(build: LayerBuilder, x: Tensor, place: AttentionPlace): Tensor {
  const { shape } = place;
  const isVision = isFusedVision(place);
  const before = build.tape.part;
  build.tape.part = "attention";
  const made = shape.latent
    ? latentHeads(build, x, place)
    : cachedHeads(build, plainHeads(build, x, place), shape);
  const mixed = kernel(build, made, place);
  const out =
    place.projects === false
      ? mixed
      : outputMatrix(build, mixed, isVision ? "proj" : `${place.prefix}o_proj`, place);
  build.tape.part = before;
  return out;
}

function outputMatrix(
  build: LayerBuilder,
  mixed: Tensor,
  name: string,
  { shape, hidden }: Pick<AttentionPlace, "shape" | "hidden">,
): Tensor {
  return build.linear(mixed, {
    name,
    inputs: shape.heads * (shape.valueHeadSize ?? shape.headSize),
    outputs: hidden,
    bias: shape.outputBias,
    split: "inputs",
    group: "attention",
  });
}

interface JointPlace {
  readonly attention: AttentionShape;
  readonly hidden: number;
  /** The last layer, which makes nothing of the prompt's rows. */
  readonly isLast: boolean;
}

/** Two streams of rows that attend to each other, each with matrices of its own (diffusers, JointAttnProcessor2_0). */
export function jointAttention(
  build: LayerBuilder,
  streams: readonly [image: Tensor, prompt: Tensor],
  { attention: shape, hidden, isLast }: JointPlace,
): { image: Tensor; prompt: Tensor | null } {
  const before = build.tape.part;
  build.tape.part = "attention";
  const rows = streams.reduce((sum, each) => sum + each.elements, 0) / hidden / build.rules.batch;
  const place = { hidden, queries: rows, keys: rows, dropout: false, maskable: false };
  const apart = { ...shape, rotary: false };
  const [image, prompt] = streams.map((x, index) =>
    plainHeads(build, x, { ...place, shape: apart, source: x, prefix: index === 0 ? "" : "add_" }),
  ) as [Heads, Heads];
  const both = (of: "query" | "key" | "value"): Tensor => {
    const whole = build.join([image[of], prompt[of]]);
    return shape.rotary && of !== "value" ? rotate(build, whole, 1) : whole;
  };
  const mixed = kernel(
    build,
    {
      ...image,
      query: both("query"),
      key: both("key"),
      value: both("value"),
      joined: !shape.rotary,
    },
    { ...place, shape, source: streams[0], prefix: "" },
  );
  // Slices of the result, which the output matrices read as copies.
  const made = streams.map((x, index) =>
    index === 1 && isLast
      ? null
      : outputMatrix(
          build,
          build.copy(build.tape.slice(mixed, x.elements)),
          index === 0 ? "o_proj" : "to_add_out",
          { shape, hidden },
        ),
  );
  build.tape.part = before;
  return { image: made[0] as Tensor, prompt: made[1] ?? null };
}

const isFusedVision = ({ shape, maskable, prefix }: AttentionPlace): boolean =>
  shape.fused && !maskable && prefix === "";

function plainHeads(build: LayerBuilder, x: Tensor, place: AttentionPlace): Heads {
  const { shape, hidden, source, prefix } = place;
  const isVision = isFusedVision(place);
  const parallel = build.rules.tensorParallel;
  const heads = shape.heads / parallel;
  const kvHeads = Math.max(1, shape.kvHeads / parallel);
  const sourceHidden = place.sourceHidden ?? hidden;
  const project = (from: Tensor, name: string, outputs: number, bias = shape.bias): Tensor =>
    build.linear(from, {
      name: `${prefix}${name}`,
      inputs: from === x ? hidden : sourceHidden,
      outputs: outputs * parallel,
      bias,
      split: "outputs",
      group: "attention",
    });
  const queryWidth = heads * shape.headSize;
  const kvWidth = kvHeads * shape.headSize;
  const rows = x.elements / hidden;
  let query: Tensor;
  let key: Tensor;
  let value: Tensor;
  if ((shape.fused || build.rules.fusedProjection) && source === x) {
    const all = project(x, isVision ? "qkv" : "qkv_proj", queryWidth + 2 * kvWidth);
    query = build.tape.slice(all, rows * queryWidth);
    key = build.tape.slice(all, rows * kvWidth);
    value = build.tape.slice(all, rows * kvWidth);
    value = shape.copiesValues === true ? build.copy(value) : value;
  } else {
    query = project(x, "q_proj", queryWidth);
    key = project(source, "k_proj", kvWidth, shape.keyBias ?? shape.bias);
    value = project(source, "v_proj", kvWidth);
  }
  if (shape.queryKeyNorm !== "none") {
    const norm = {
      kind: shape.normKernel === "torch" ? "layer" : "rms",
      keepsInput: shape.normKernel === "diffusers",
      bias: false,
      affine: true,
      wide: shape.wideNorm === true,
    } as const;
    const perHead = shape.queryKeyNorm === "head";
    query = normalized(build, query, perHead ? shape.headSize : queryWidth, norm, "q_norm");
    key = normalized(build, key, perHead ? shape.headSize : kvWidth, norm, "k_norm");
  }
  if (shape.rotary) {
    query = rotate(build, query, shape.rotaryShare);
    key = rotate(build, key, shape.rotaryShare);
  }
  const joined = shape.contiguous === true || (shape.rotary && shape.rotaryShare < 1);
  return { query, key, value, heads, kvHeads, joined };
}

/** Generation keeps keys and values of causal layers as copies of their own (DynamicCache of transformers). */
function cached(build: LayerBuilder, x: Tensor): Tensor {
  const copy = build.copy(x);
  copy.storage.held = true;
  build.tape.cachedBytes += copy.storage.bytes;
  return copy;
}

function cachedHeads(build: LayerBuilder, made: Heads, { bidirectional }: AttentionShape): Heads {
  return bidirectional || !build.rules.cachesKeys
    ? made
    : { ...made, key: cached(build, made.key), value: cached(build, made.value) };
}

/** q * cos + rotate_half(q) * sin: constants are factors, so nothing is saved; a partial rotation ends in cat. */
function rotate(build: LayerBuilder, x: Tensor, share: number): Tensor {
  const turned = build.tape.op({
    name: "rotary",
    inputs: [x],
    makes: [{ elements: x.elements, itemBytes: x.itemBytes }],
    forwardTemporary: 2 * x.elements * x.itemBytes * share,
    backwardTemporary: 2 * x.elements * x.itemBytes * share,
    pointwise: true,
  });
  return turned[0] as Tensor;
}

/** DeepSeek-V2 (2024), section 2.1: queries and keys from compressed rows, a rotated part beside the others. */
function latentHeads(build: LayerBuilder, x: Tensor, { shape, hidden }: AttentionPlace): Heads {
  const { queryRank, kvRank, rotarySize } = shape.latent as NonNullable<AttentionShape["latent"]>;
  const parallel = build.rules.tensorParallel;
  const heads = shape.heads / parallel;
  const rows = x.elements / hidden;
  const plain = shape.headSize - rotarySize;
  const valueSize = shape.valueHeadSize ?? plain;
  const norm = { kind: "rms", bias: false, affine: true } as const;
  const wide = shape.heads * shape.headSize;
  const shared = { bias: false, group: "attention" } as const;
  let query: Tensor;
  if (queryRank > 0) {
    const low = build.linear(x, {
      name: "q_a_proj",
      inputs: hidden,
      outputs: queryRank,
      ...shared,
    });
    const normed = normalized(build, low, queryRank, norm, "q_a_norm");
    query = build.linear(normed, {
      name: "q_b_proj",
      inputs: queryRank,
      outputs: wide,
      split: "outputs",
      ...shared,
    });
  } else {
    query = build.linear(x, {
      name: "q_proj",
      inputs: hidden,
      outputs: wide,
      split: "outputs",
      ...shared,
    });
  }
  const compressed = build.linear(x, {
    name: "kv_a_proj_with_mqa",
    inputs: hidden,
    outputs: kvRank + rotarySize,
    ...shared,
  });
  const whole = normalized(
    build,
    build.tape.slice(compressed, rows * kvRank),
    kvRank,
    norm,
    "kv_a_norm",
  );
  const rank = build.rules.cachesKeys ? cached(build, whole) : whole;
  const both = build.linear(rank, {
    name: "kv_b_proj",
    inputs: kvRank,
    outputs: shape.heads * (plain + valueSize),
    split: "outputs",
    ...shared,
  });
  const turned = rotate(build, build.tape.slice(query, rows * heads * rotarySize), 1);
  const turnedOnly = rotate(build, build.tape.slice(compressed, rows * rotarySize), 1);
  const turnedKey = build.rules.cachesKeys ? cached(build, turnedOnly) : turnedOnly;
  const joined = (a: Tensor, b: Tensor): Tensor =>
    build.tape.op({
      name: "cat",
      inputs: [a, b],
      makes: [{ elements: rows * heads * shape.headSize, itemBytes: a.itemBytes }],
      pointwise: true,
    })[0] as Tensor;
  return {
    query: joined(build.tape.slice(query, rows * heads * plain), turned),
    key: joined(build.tape.slice(both, rows * heads * plain), turnedKey),
    value: build.tape.slice(both, rows * heads * valueSize),
    heads,
    kvHeads: heads,
    joined: true,
  };
}

/** Which kernel runs: additive biases rule the fused ones out, scores beside those of keys those of torch. */
export function kernelOf(
  shape: AttentionShape,
  wanted: AttentionImplementation,
): AttentionImplementation {
  if (wanted === "eager" && shape.alwaysFused === true) {
    return "sdpa";
  }
  const fits = shape.scoreBias === "none" && shape.headSize <= LARGEST_FUSED_HEAD;
  return fits && !(shape.sinks === true && wanted === "sdpa") ? wanted : "eager";
}

function kernel(build: LayerBuilder, made: Heads, place: AttentionPlace): Tensor {
  const { shape } = place;
  const implementation = kernelOf(shape, build.rules.attention);
  const groups = made.heads / made.kvHeads;
  // autocast gives the kernels the compute type, whatever type the projections return.
  const narrow = (x: Tensor): Tensor =>
    build.rules.autocast ? build.cast(x, build.rules.computeBytes) : x;
  const query = narrow(made.query);
  const { masks, repeatsGroups, fusesGroups } = build.rules;
  const masked =
    implementation === "sdpa" &&
    ((masks === "all" && place.maskable) ||
      (masks !== "none" && shape.window > 0 && shape.window < place.keys));
  const repeats = groups > 1 && (implementation === "eager" || masked || repeatsGroups);
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
  const rows = query.elements / (made.heads * shape.headSize);
  const out = { elements: rows * made.heads * valueSize, itemBytes: query.itemBytes };
  if (implementation === "eager") {
    return eager(build, { ...made, query, key, value }, place, out);
  }
  const grouping = groups > 1 && !repeats;
  if (implementation === "sdpa" && grouping && (!fusesGroups || shape.copiesValues === true)) {
    return math(build, { ...made, query, key, value }, place, out);
  }
  const [mixed] = build.tape.op({
    name: "attention",
    inputs: [query, key, value],
    makes: [out],
    saves: [query, key, value, "output"],
    extraSaved: [
      rows * made.heads * FP32,
      ...(masked ? [rows * place.keys * query.itemBytes] : []),
    ],
    // The backward kernels add up the queries' gradient in fp32.
    backwardTemporary: query.itemBytes < FP32 ? query.elements * FP32 : 0,
    parameters: sinksOf(build, made.heads, shape),
    expensive: "attention",
  });
  return made.joined ? build.copy(mixed as Tensor) : (mixed as Tensor);
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
  { shape, queries, keys, dropout }: AttentionPlace,
  out: { elements: number; itemBytes: number },
): Tensor {
  const sequences = query.elements / (heads * shape.headSize) / queries;
  const elements = sequences * heads * queries * Math.min(keys, shape.blockRows ?? keys);
  const itemBytes = query.itemBytes;
  // A batched product reads whole tensors: slices are copied, and the copies are kept in place of the fused product.
  const whole = (x: Tensor): Tensor =>
    x.elements * x.itemBytes < x.storage.bytes ? build.copy(x) : x;
  const wholeQuery = whole(query);
  const wholeKey = whole(key);
  const wholeValue = whole(value);
  const [product] = build.tape.op({
    name: "scores",
    inputs: [wholeQuery, wholeKey],
    makes: [{ elements, itemBytes }],
    saves: [wholeQuery, wholeKey],
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
  if (shape.softCap) {
    scores = build.pointwise("scale", [build.pointwise("tanh", [scores], ["output"])], []);
  }
  const [masked] = build.tape.op({
    name: "mask",
    inputs: [scores],
    makes: [{ elements, itemBytes }],
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
