/**
 * Gemma 3n and Gemma 4: decoders whose layers differ from each other. Heads are larger in layers without a window, the last
 * layers read the keys and values of earlier ones, and the embedding makes rows for each layer
 * (transformers 5.24: configuration_gemma3n.py, configuration_gemma4.py).
 */
import { invalidModel } from "../../model/errors/plan_errors.js";
import type { ModelConfig } from "./config.js";
import { type DecoderShape, readDecoder } from "./decoder.js";
import type { LayerRun, MlpShape, MoeShape, NormShape, TransformerLayer } from "./model_shape.js";
import { defaultsOf } from "./nested_defaults.js";

export const GEMMA_FAMILIES: readonly string[] = ["gemma3n_text", "gemma4_text"];

const GEMMA_NORM: NormShape = { kind: "rms", bias: false, affine: true, wide: true, byPower: true };

/** What one layer is. */
interface Kind {
  readonly isFull: boolean;
  /** Of a head, and heads of keys, where the layer has its own; 0: as all. */
  readonly headSize: number;
  readonly keyHeads: number;
  readonly keys: "own" | "stored" | "shared";
  readonly width: number;
  /** Gemma 3n: most activations become 0. */
  readonly isSparse: boolean;
}

/** @throws TidemarkError TM-E085 */
export function readGemma(config: ModelConfig): DecoderShape {
  const own = config.filledFrom(defaultsOf(config.family));
  const isFourth = config.family === "gemma4_text";
  const count = own.layers("num_hidden_layers");
  const kinds = kindsOf(own, count);
  // Of every layer as one without a window and with its own keys: what differs follows.
  const decoder = readDecoder(
    own.with({
      intermediate_size: kinds[0]?.width ?? 0,
      layer_types: null,
      sliding_window: null,
      num_experts: null,
    }),
  );
  const inputWidth = own.count(0, "hidden_size_per_layer_input");
  const layers: (LayerRun & { key: string })[] = [];
  for (const kind of kinds) {
    const key = JSON.stringify(kind);
    const last = layers.at(-1);
    if (last?.key === key) {
      layers[layers.length - 1] = { ...last, count: last.count + 1 };
      continue;
    }
    const known = layers.find((each) => each.key === key);
    const layer = known?.layer ?? layerOf(own, decoder, { kind, inputWidth });
    layers.push({ count: 1, layer, key });
  }
  const streams = isFourth ? 1 : own.size("altup_num_inputs");
  return {
    ...decoder,
    tower: {
      ...decoder.tower,
      finalNorm: GEMMA_NORM,
      layers: layers.map(({ count, layer }) => ({ count, layer })),
      ...(inputWidth > 0
        ? { layerInputs: { rows: own.size("vocab_size_per_layer_input"), width: inputWidth } }
        : {}),
    },
    ...(streams > 64 ? refuse(own, `${streams} streams of rows`) : {}),
  };
}

function refuse({ source }: ModelConfig, reason: string): never {
  throw invalidModel(source, reason);
}

function layerOf(
  config: ModelConfig,
  { tower }: DecoderShape,
  { kind, inputWidth }: { readonly kind: Kind; readonly inputWidth: number },
): TransformerLayer {
  const plain = tower.layers[0]?.layer as TransformerLayer;
  const isFourth = config.family === "gemma4_text";
  const attention = plain.attention as NonNullable<TransformerLayer["attention"]>;
  const isTied = isFourth && config.flag(false, "attention_k_eq_v") && kind.isFull;
  const kvHeads = kind.keyHeads || attention.kvHeads;
  if (attention.heads % kvHeads !== 0) {
    refuse(config, `${kvHeads} key-value heads do not divide ${attention.heads} heads`);
  }
  const mlp: MlpShape = {
    ...(plain.mlp as MlpShape),
    width: kind.width,
    ...(kind.isSparse ? { sparse: true as const } : {}),
  };
  return {
    ...plain,
    norm: GEMMA_NORM,
    attention: {
      ...attention,
      headSize: kind.headSize || attention.headSize,
      kvHeads,
      window: kind.isFull ? 0 : config.size("sliding_window"),
      valueNorm: true,
      ...(isTied ? { keysAsValues: true as const } : {}),
      ...(kind.keys === "own" ? {} : { keys: kind.keys }),
    },
    mlp: isFourth && config.flag(false, "enable_moe_block") ? withExperts(config, mlp) : mlp,
    ...(inputWidth > 0 ? { inputWidth } : {}),
    ...(isFourth
      ? {}
      : {
          streams: {
            count: config.size("altup_num_inputs"),
            lowRank: config.size("laurel_rank"),
          },
        }),
  };
}

function withExperts(config: ModelConfig, mlp: MlpShape): MoeShape {
  const experts = config.size("num_experts");
  const perToken = config.size("top_k_experts");
  if (perToken > experts) {
    refuse(config, `${perToken} experts for each token of ${experts}`);
  }
  return {
    experts,
    perToken,
    expert: { ...mlp, width: config.size("moe_intermediate_size"), fused: true },
    shared: mlp,
    sharedGate: false,
    routerBias: false,
    apart: true,
  };
}

/** Every fifth (Gemma 3n) or sixth layer sees all tokens; the last one of Gemma 4 always does. */
function kindsOf(config: ModelConfig, count: number): Kind[] {
  const isFourth = config.family === "gemma4_text";
  const types = config.words("layer_types");
  if (types.length > 0 && types.length !== count) {
    refuse(config, `${types.length} kinds of layers for ${count} layers`);
  }
  const period = isFourth ? 6 : 5;
  const isFull = (index: number): boolean =>
    (isFourth && index === count - 1) ||
    (types.length > 0 ? types[index] === "full_attention" : (index + 1) % period === 0);
  const shared = config.count(0, "num_kv_shared_layers");
  if (shared > 0 && shared >= count) {
    refuse(config, `${shared} of ${count} layers read the keys of others`);
  }
  const first = count - shared;
  const storing = new Set<number>();
  for (const wanted of [true, false]) {
    const last = Array.from({ length: first }, (_, index) => index).findLast(
      (index) => isFull(index) === wanted,
    );
    const isRead = Array.from({ length: shared }, (_, index) => first + index).some(
      (index) => isFull(index) === wanted,
    );
    if (isRead && last === undefined) {
      refuse(config, "layers read keys that no layer before them has");
    }
    if (shared > 0 && last !== undefined) {
      storing.add(last);
    }
  }
  const widths = widthsOf(config, count);
  const sparsities = config.values.activation_sparsity_pattern;
  const isSparse = (index: number): boolean =>
    !isFourth &&
    (Array.isArray(sparsities)
      ? Number(sparsities[index]) > 0
      : count > MOST_SPARSE && index < MOST_SPARSE);
  return Array.from({ length: count }, (_, index) => ({
    isFull: isFull(index),
    ...(isFourth ? headsOf(config, index, isFull(index)) : { headSize: 0, keyHeads: 0 }),
    keys: index >= first ? "shared" : storing.has(index) ? "stored" : "own",
    width:
      (widths[index] ?? 0) *
      (isFourth && index >= first && config.flag(false, "use_double_wide_mlp") ? 2 : 1),
    isSparse: isSparse(index),
  }));
}

/** Layers without a window have figures of their own; transformers 5 writes them for each layer. */
function headsOf(
  config: ModelConfig,
  index: number,
  isFull: boolean,
): Pick<Kind, "headSize" | "keyHeads"> {
  const listed = config.part("per_layer_config");
  if (listed !== null) {
    // "05": numbers of one length.
    const name = Object.keys(listed.values).find((each) => Number(each) === index);
    const own = name === undefined ? null : listed.part(name);
    return {
      headSize: own?.optionalSize("head_dim") ?? 0,
      keyHeads: own?.optionalSize("num_key_value_heads") ?? 0,
    };
  }
  const isTied = config.flag(false, "attention_k_eq_v");
  return {
    headSize: isFull ? (config.optionalSize("global_head_dim") ?? GLOBAL_HEAD) : 0,
    keyHeads: isFull && isTied ? config.count(0, "num_global_key_value_heads") : 0,
  };
}

const GLOBAL_HEAD = 512;

/** Layers of Gemma 3n that are sparse where the configuration has no list. */
const MOST_SPARSE = 10;

/** One width for all layers, or a list (Gemma 3n). */
function widthsOf(config: ModelConfig, count: number): number[] {
  if (!Array.isArray(config.values.intermediate_size)) {
    const width = config.size("intermediate_size");
    return Array.from({ length: count }, () => width);
  }
  const listed = config.sizes("intermediate_size");
  if (listed.length !== count || listed.includes(0)) {
    refuse(config, `${listed.length} widths of MLPs for ${count} layers`);
  }
  return listed;
}
