/** Attention as libraries run it: queries, keys and values, rotation, the kernel (attention_kernels.ts), the output. */
import type { AttentionShape } from "../shape/attention_shape.js";
import type { Tensor } from "../tape/tape.js";
import { type AttentionPlace, type Heads, isFusedVision, kernel } from "./attention_kernels.js";
import type { LayerBuilder } from "./layer_builder.js";
import { normalized } from "./norms.js";

/** Before the names of the matrices of attention to another tower's output. */
export const CROSS = "cross_";

export function attention(build: LayerBuilder, x: Tensor, place: AttentionPlace): Tensor {
  const { shape } = place;
  const isVision = isFusedVision(place);
  const before = build.tape.part;
  build.tape.part = "attention";
  const made = shape.latent
    ? latentHeads(build, x, place)
    : cachedHeads(build, plainHeads(build, x, place), place);
  const mixed = gatedBy(build, made.gate, kernel(build, made, place));
  const out =
    place.projects === false
      ? mixed
      : outputMatrix(build, mixed, isVision ? "proj" : `${place.prefix}o_proj`, place);
  build.tape.part = before;
  return out;
}

/** attention * sigmoid(gate), of which both factors are kept. */
function gatedBy(build: LayerBuilder, gate: Tensor | undefined, mixed: Tensor): Tensor {
  if (gate === undefined) {
    return mixed;
  }
  const open = build.pointwise("sigmoid", [gate], ["output"]);
  return build.pointwise("mul", [mixed, open], [mixed, open]);
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

function plainHeads(build: LayerBuilder, x: Tensor, place: AttentionPlace): Heads {
  const { shape, hidden, source, prefix } = place;
  const isVision = isFusedVision(place);
  const parallel = build.rules.tensorParallel;
  const heads = shape.heads / parallel;
  const kvHeads = Math.max(1, shape.kvHeads / parallel);
  const sourceHidden = place.sourceHidden ?? hidden;
  const project = (
    from: Tensor,
    name: string,
    outputs: number,
    bias = shape.bias,
    biased = outputs,
  ): Tensor =>
    // torch.nn.functional.multi_head_attention_forward reads rows in the order of positions: a copy for each matrix.
    build.linear(shape.scoreBias === "gated" ? build.copy(from) : from, {
      biased,
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
  const expanded = shape.expandsGroups === true && source === x;
  let query: Tensor;
  let key: Tensor;
  let value: Tensor;
  let gate: Tensor | undefined;
  if ((shape.fused || build.rules.fusedProjection) && source === x) {
    const width = queryWidth + 2 * kvWidth;
    const biased = width - (shape.keyBias === false ? kvWidth : 0);
    const all = project(x, isVision ? "qkv" : "qkv_proj", width, shape.bias, biased);
    query = build.tape.slice(all, rows * queryWidth);
    key = build.tape.slice(all, rows * kvWidth);
    value = build.tape.slice(all, rows * kvWidth);
    value = shape.copiesValues === true ? build.copy(value) : value;
    if (expanded) {
      key = build.copy(key, rows * queryWidth);
      value = build.copy(value, rows * queryWidth);
    }
  } else {
    const made = project(x, "q_proj", shape.gated === true ? 2 * queryWidth : queryWidth);
    query = build.tape.slice(made, rows * queryWidth);
    // Each head has its queries and its gate side by side; the gates are copied out.
    gate = shape.gated === true ? build.copy(build.tape.slice(made, rows * queryWidth)) : undefined;
    if (shape.keys === "shared") {
      query = turned(
        build,
        normedHeads(build, query, shape, { width: queryWidth, name: "q" }),
        shape,
      );
      const stored = build.storedKeys(shape.window, rows * kvWidth, query.itemBytes);
      return { query, ...stored, heads, kvHeads, joined: false };
    }
    key = project(source, "k_proj", kvWidth, shape.keyBias ?? shape.bias);
    value = shape.keysAsValues === true ? key : project(source, "v_proj", kvWidth);
  }
  value = shape.valueNorm === true ? normalized(build, value, shape.headSize, VALUE_NORM) : value;
  query = turned(build, normedHeads(build, query, shape, { width: queryWidth, name: "q" }), shape);
  key = turned(build, normedHeads(build, key, shape, { width: kvWidth, name: "k" }), shape);
  const joined =
    shape.contiguous === true ||
    (shape.rotary && (shape.rotaryShare < 1 || shape.joinsRotation === true));
  return {
    query,
    key,
    value,
    ...(gate === undefined ? {} : { gate }),
    heads,
    kvHeads: expanded ? heads : kvHeads,
    joined,
  };
}

/** Those that also have norms of values compute them by powers. */
const VALUE_NORM = { kind: "rms", bias: false, affine: false, wide: true, byPower: true } as const;

/** Queries or keys after their norm, if there is one. @param of `width` elements in the whole row */
function normedHeads(
  build: LayerBuilder,
  x: Tensor,
  shape: AttentionShape,
  { width, name }: { readonly width: number; readonly name: "q" | "k" },
): Tensor {
  if (shape.queryKeyNorm === "none") {
    return x;
  }
  const own = shape.headNorm;
  if (own !== undefined) {
    const heads = own.perHead ? { heads: width / shape.headSize } : {};
    const made = normalized(
      build,
      x,
      shape.headSize,
      { kind: own.kind, bias: own.bias, affine: true, ...heads },
      `${name}_norm`,
    );
    // A module for each head, whose results are joined (StableLmLayerNormPerHead).
    return own.perHead && own.kind === "layer" ? build.copy(made) : made;
  }
  // torch.nn.RMSNorm is one kernel on a GPU, and one for each operation in fp32 on the CPU.
  const isOneKernel = shape.normKernel === "torch" && !build.rules.onCpu;
  const norm = {
    kind: isOneKernel ? "layer" : "rms",
    keepsInput: shape.normKernel === "diffusers",
    bias: false,
    affine: shape.plainNorm !== true,
    wide: shape.wideNorm === true || shape.normKernel === "torch",
    ...(shape.valueNorm === true ? { byPower: true as const } : {}),
  } as const;
  const size = shape.queryKeyNorm === "head" ? shape.headSize : width;
  return normalized(build, x, size, norm, `${name}_norm`);
}

function turned(build: LayerBuilder, x: Tensor, { rotary, rotaryShare }: AttentionShape): Tensor {
  return rotary ? rotate(build, x, rotaryShare) : x;
}

/** Generation keeps keys and values of causal layers as copies of their own (DynamicCache of transformers). */
function cached(build: LayerBuilder, x: Tensor): Tensor {
  const copy = build.copy(x);
  copy.storage.held = true;
  build.tape.cachedBytes += copy.storage.bytes;
  return copy;
}

function cachedHeads(
  build: LayerBuilder,
  made: Heads,
  { shape, prefix }: Pick<AttentionPlace, "shape" | "prefix">,
): Heads {
  const stays = (!shape.bidirectional || prefix === CROSS) && shape.keys !== "shared";
  const own =
    !stays || !build.rules.cachesKeys
      ? made
      : { ...made, key: cached(build, made.key), value: cached(build, made.value) };
  if (shape.keys === "stored") {
    build.storeKeys(shape.window, own);
  }
  return own;
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
