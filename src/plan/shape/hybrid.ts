/**
 * Decoders that mix state spaces, delta rules or convolutions with attention: Jamba, Bamba, Granite 4, Nemotron-H, Falcon-H1,
 * Qwen3-Next, Qwen 3.5, LFM2.
 */
import { invalidModel } from "../../model/errors/plan_errors.js";
import type { JsonObject, ModelConfig } from "./config.js";
import { type DecoderShape, readDecoder } from "./decoder.js";
import type { LayerRun, StateSpaceShape, TransformerLayer } from "./model_shape.js";
import { mixerOf } from "./state_space_models.js";

/** What one layer has. */
interface Parts {
  readonly mixes: "attention" | "state space" | "both" | "nothing";
  readonly feeds: "mlp" | "experts" | "nothing";
}

interface HybridFamily {
  readonly partsOf: (config: ModelConfig) => readonly Parts[];
  /** Attention does not turn its queries and keys. */
  readonly withoutRotation?: (config: ModelConfig) => boolean;
  /** Parameters of each state space that its kind does not have elsewhere. */
  readonly besideMixer?: (mixer: StateSpaceShape) => number;
  /** Values of its class that a configuration may leave out. */
  readonly defaults?: JsonObject;
}

/** Of a head, where neither the configuration nor its parameters of RoPE have a share. */
const QUARTER_ROTATED: JsonObject = { rope_parameters: { partial_rotary_factor: 0.25 } };

const HYBRIDS: Readonly<Record<string, HybridFamily>> = {
  jamba: {
    partsOf: jambaParts,
    withoutRotation: () => true,
    // Norms of the time step, B and C.
    besideMixer: ({ timeRank, state }) => timeRank + 2 * state,
  },
  bamba: { partsOf: bambaParts },
  falcon_h1: {
    partsOf: (config) => repeated(config.layers("num_hidden_layers"), BOTH),
  },
  granitemoehybrid: {
    partsOf: graniteParts,
    withoutRotation: (config) => config.text("position_embedding_type") !== "rope",
  },
  lfm2: { partsOf: liquidParts },
  lfm2_moe: { partsOf: liquidParts },
  nemotron_h: { partsOf: nemotronParts, withoutRotation: () => true },
  qwen3_next: { partsOf: deltaParts, defaults: QUARTER_ROTATED },
  qwen3_5_text: { partsOf: deltaParts, defaults: QUARTER_ROTATED },
  qwen3_5_moe_text: { partsOf: deltaParts, defaults: QUARTER_ROTATED },
};

export const HYBRID_FAMILIES: readonly string[] = Object.keys(HYBRIDS);

const BOTH: Parts = { mixes: "both", feeds: "mlp" };

function repeated(count: number, parts: Parts): Parts[] {
  return Array.from({ length: count }, () => parts);
}

/** @throws TidemarkError TM-E085 */
export function readHybrid(config: ModelConfig): DecoderShape {
  const family = HYBRIDS[config.family] as HybridFamily;
  const all = family.partsOf(config);
  const own = config.filledFrom({ ...family.defaults, num_hidden_layers: all.length });
  const decoder = readDecoder(own);
  const withExperts = ofTransformer(decoder);
  const dense = ofTransformer(readDecoder(withoutExperts(own)));
  const mixer = mixerOf(own, decoder.tower.hidden);
  const isTurned = family.withoutRotation?.(config) !== true;
  const runs: LayerRun[] = [];
  const add = (key: string, layers: readonly LayerRun[]): void => {
    const last = runs.at(-1);
    if (layers.length === 1 && last !== undefined && keys.at(-1) === key) {
      runs[runs.length - 1] = { ...last, count: last.count + 1 };
    } else {
      runs.push(...layers);
      keys.push(key);
    }
  };
  const keys: string[] = [];
  for (const { mixes, feeds } of all) {
    const shape = feeds === "experts" ? withExperts : dense;
    const { attention } = shape;
    const layer: TransformerLayer = {
      ...shape,
      attention: attention === null || isTurned ? attention : { ...attention, rotary: false },
      mlp: feeds === "nothing" ? null : shape.mlp,
    };
    const apart = { ...layer, attention: null };
    const space: LayerRun = { count: 1, layer: { kind: "state-space", norm: layer.norm, mixer } };
    add(
      `${mixes} ${feeds}`,
      {
        attention: [{ count: 1, layer }],
        both: [{ count: 1, layer: { ...layer, beside: mixer } }],
        nothing: [{ count: 1, layer: apart }],
        "state space":
          feeds === "nothing"
            ? [space]
            : [space, { count: 1, layer: apart, isPart: true as const }],
      }[mixes],
    );
  }
  const spaces = all.filter(({ mixes }) => mixes === "state space" || mixes === "both").length;
  return {
    ...decoder,
    known: true,
    tower: {
      ...decoder.tower,
      layers: runs,
      otherParameters: spaces * (family.besideMixer?.(mixer) ?? 0),
    },
  };
}

function ofTransformer({ tower }: DecoderShape): TransformerLayer {
  return tower.layers[0]?.layer as TransformerLayer;
}

/** A layer of a mixture without its experts has an MLP of its own, or that which all tokens read (Granite 4). */
function withoutExperts(config: ModelConfig): ModelConfig {
  const shared = config.optionalSize("shared_intermediate_size");
  const dense = ["num_experts", "num_local_experts", "n_routed_experts"].reduce(
    (own, name) => own.without(name),
    config,
  );
  return shared === undefined ? dense : dense.with({ intermediate_size: shared });
}

/** Of each period one layer has attention, the others a state space; each has an MLP or experts after it. */
function jambaParts(config: ModelConfig): Parts[] {
  const period = config.size("attn_layer_period");
  const offset = config.count(0, "attn_layer_offset");
  const expertPeriod = config.count(2, "expert_layer_period");
  const expertOffset = config.count(1, "expert_layer_offset");
  const hasExperts = config.count(16, "num_experts") > 1 && expertPeriod > 0;
  return Array.from({ length: config.layers("num_hidden_layers") }, (_, index) => ({
    mixes: index % period === offset ? "attention" : "state space",
    feeds: hasExperts && index % expertPeriod === expertOffset ? "experts" : "mlp",
  }));
}

/** Mamba 2 in all layers but the listed ones, which attend; an MLP after each. */
function bambaParts(config: ModelConfig): Parts[] {
  const attends = new Set(config.sizes("attn_layer_indices"));
  return Array.from({ length: config.layers("num_hidden_layers") }, (_, index) => ({
    mixes: attends.has(index) ? "attention" : "state space",
    feeds: "mlp",
  }));
}

/** Without a list, all layers are state spaces. */
function graniteParts(config: ModelConfig): Parts[] {
  const count = config.layers("num_hidden_layers");
  const kinds = kindsOf(config, "layer_types", "layers_block_type");
  const feeds = config.count(0, "num_local_experts") > 0 ? "experts" : "mlp";
  requireKinds(config, kinds, count);
  return Array.from({ length: count }, (_, index) => ({
    mixes: isAttention(kinds[index] ?? "mamba") ? "attention" : "state space",
    feeds,
  }));
}

/** Short convolutions, or attention; the first layers of a mixture are dense. */
function liquidParts(config: ModelConfig): Parts[] {
  const count = config.layers("num_hidden_layers");
  const kinds = kindsOf(config, "layer_types");
  const attends = new Set(config.sizes("full_attn_idxs"));
  const dense = config.has("num_experts") ? config.count(0, "num_dense_layers") : count;
  return Array.from({ length: count }, (_, index) => ({
    mixes: (kinds.length === count ? isAttention(kinds[index] ?? "") : attends.has(index))
      ? "attention"
      : "state space",
    feeds: index < dense ? "mlp" : "experts",
  }));
}

/** A delta rule in all layers but each fourth; experts in all but the listed ones, or those that a step leaves out. */
function deltaParts(config: ModelConfig): Parts[] {
  const count = config.layers("num_hidden_layers");
  const kinds = kindsOf(config, "layer_types");
  const interval = config.optionalSize("full_attention_interval") ?? 4;
  const step = config.optionalSize("decoder_sparse_step") ?? 1;
  const dense = new Set(config.sizes("mlp_only_layers"));
  const hasExperts = config.count(0, "num_experts") > 0;
  requireKinds(config, kinds, count);
  return Array.from({ length: count }, (_, index) => ({
    mixes: (kinds.length === 0 ? (index + 1) % interval === 0 : isAttention(kinds[index] ?? ""))
      ? "attention"
      : "state space",
    feeds: hasExperts && !dense.has(index) && (index + 1) % step === 0 ? "experts" : "mlp",
  }));
}

/** @throws TidemarkError TM-E085 */
function requireKinds({ source }: ModelConfig, kinds: readonly string[], count: number): void {
  if (kinds.length > 0 && kinds.length !== count) {
    throw invalidModel(source, `${kinds.length} kinds of layers for ${count} layers`);
  }
}

const NEMOTRON_LETTERS: Readonly<Record<string, string>> = {
  M: "mamba",
  "*": "attention",
  "-": "mlp",
  E: "moe",
};

/** Each layer is one thing alone, as a list or a row of letters specifies. */
function nemotronParts(config: ModelConfig): Parts[] {
  const listed = kindsOf(config, "layers_block_type", "layer_types");
  const letters = [...config.text("hybrid_override_pattern")];
  const kinds = listed.length > 0 ? listed : letters.map((each) => NEMOTRON_LETTERS[each] ?? each);
  if (kinds.length === 0) {
    throw invalidModel(config.source, "layers_block_type is missing");
  }
  return kinds.map((kind): Parts => {
    if (kind === "mlp" || kind === "moe") {
      return { mixes: "nothing", feeds: kind === "mlp" ? "mlp" : "experts" };
    }
    if (!isAttention(kind) && !/^(?:mamba|linear_attention)$/.test(kind)) {
      throw invalidModel(config.source, `a layer is "${kind.slice(0, 40)}"`);
    }
    return { mixes: isAttention(kind) ? "attention" : "state space", feeds: "nothing" };
  });
}

function kindsOf(config: ModelConfig, ...names: string[]): string[] {
  return names.map((name) => config.words(name)).find(({ length }) => length > 0) ?? [];
}

function isAttention(kind: string): boolean {
  return /^(?:full_)?attention$/.test(kind);
}
