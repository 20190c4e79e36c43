/** Decoders: Llama and its relatives, and the families that differ from it in more than sizes. */
import { invalidModel } from "../../model/errors/plan_errors.js";
import type { AttentionShape } from "./attention_shape.js";
import type { ModelConfig } from "./config.js";
import { type FamilyFacts, factsOf } from "./decoder_families.js";
import { attentionOf, mlpOf, moeOf } from "./decoder_parts.js";
import { labelsOf } from "./encoder.js";
import type {
  EmbeddingShape,
  HeadShape,
  LayerRun,
  NormShape,
  TowerShape,
  TransformerLayer,
} from "./model_shape.js";
import { NO_HEAD } from "./parts.js";

/** What a decoder's reader returns: its tower and head. */
export interface DecoderShape {
  readonly tower: TowerShape;
  readonly head: HeadShape;
  readonly longest: number;
  /** By `model_max_length`. */
  readonly declaredLongest?: number;
  readonly known: boolean;
}

/** With RoPE scaling, as vLLM reads it: llama3, longrope and Gemma 3 give the scaled length in max_position_embeddings. */
function scaled(longest: number, config: ModelConfig): number {
  const scaling = config.part("rope_scaling") ?? config.part("rope_parameters");
  const type = scaling?.text("rope_type", "type") ?? "";
  if (scaling === null || config.family.startsWith("gemma3") || !SCALED.includes(type)) {
    return longest;
  }
  const factor = scaling.fraction(1, "factor");
  const original = scaling.count(longest, "original_max_position_embeddings");
  return Math.max(longest, Math.round((type === "yarn" ? original : longest) * factor));
}

const SCALED = ["linear", "dynamic", "yarn"];

const LENGTHS = [
  "max_position_embeddings",
  "n_positions",
  "max_seq_len",
  "seq_length",
  "max_sequence_length",
  "max_seq_length",
  "seq_len",
] as const;

/** A table of positions has rows. @throws TidemarkError TM-E085 */
function requirePositions(config: ModelConfig): void {
  config.optionalSize(...LENGTHS);
}

/** @param family another name than the configuration's own `model_type` where its facts apply */
export function readDecoder(config: ModelConfig, family = config.family): DecoderShape {
  const own = factsOf(family);
  const facts = own ?? {};
  const hidden = config.size("hidden_size", "n_embd", "d_model", "model_dim");
  const layers = config.layers("num_hidden_layers", "n_layer", "n_layers", "num_layers");
  const vocabulary = config.size("vocab_size");
  const norm = normOf(config, facts);
  const longest = config.count(0, ...LENGTHS);
  const declared = config.optionalSize("model_max_length");
  const embedded = config.optionalSize("word_embed_proj_dim") ?? hidden;
  const embeddings: EmbeddingShape[] = [
    { name: "embed_tokens", rows: vocabulary, width: embedded },
  ];
  if (facts.positions === "learned") {
    requirePositions(config);
    embeddings.push({
      name: "embed_positions",
      rows: (longest === 0 ? 1024 : longest) + (facts.extraPositions ?? 0),
      width: hidden,
    });
  }
  return {
    tower: {
      name: "decoder",
      hidden,
      positions: "sequence",
      embeddings,
      embeddingNorm: facts.embeddingNorm === true ? norm : null,
      embeddingDropout: facts.dropout === true,
      stems: [],
      layers: layerRuns(config, facts, { hidden, layers, norm }),
      finalNorm:
        family === "opt" && config.flag(true, "do_layer_norm_before") === false ? null : norm,
      // OPT 350m projects between two widths, before the layers and after them.
      ...(embedded === hidden ? {} : { embeddingProjection: { bias: false } }),
      otherParameters:
        (embedded === hidden ? 0 : embedded * hidden) +
        (facts.indexer === true ? indexerParameters(config, hidden, layers) : 0),
    },
    head: headOf(config, facts, vocabulary),
    longest: facts.positions === "learned" ? longest : scaled(longest, config),
    ...(declared === undefined ? {} : { declaredLongest: scaled(declared, config) }),
    known: own !== null,
  };
}

/** The attention that chooses tokens: its queries, one head of keys with a norm, and a weight of each head. */
function indexerParameters(config: ModelConfig, hidden: number, layers: number): number {
  const heads = config.size("index_n_heads");
  const size = config.size("index_head_dim");
  const own = config.size("q_lora_rank") * heads * size + hidden * (size + heads) + 2 * size;
  const shared = config.words("indexer_types").filter((type) => type === "shared").length;
  return (layers - shared) * own;
}

/** The head that the architecture names: GPT2LMHeadModel, LlamaForSequenceClassification, MistralModel. */
function headOf(config: ModelConfig, facts: FamilyFacts, vocabulary: number): HeadShape {
  const base = { tied: false, bias: false, transform: false, softCap: false } as const;
  const architecture = config.architecture;
  if (architecture.endsWith("ForSequenceClassification")) {
    return { ...base, kind: "class", outputs: labelsOf(config, 2) };
  }
  if (architecture.endsWith("ForTokenClassification")) {
    return { ...base, kind: "language", outputs: labelsOf(config, 2), bias: true };
  }
  if (architecture.endsWith("Model") && !/(?:LMHead|DoubleHeads)Model$/.test(architecture)) {
    return NO_HEAD;
  }
  return {
    ...base,
    kind: "language",
    outputs: vocabulary,
    tied: config.flag(facts.tied === true, "tie_word_embeddings"),
    bias: facts.headBias === true,
    softCap: config.fraction(0, "final_logit_softcapping") > 0,
  };
}

function normOf(config: ModelConfig, { norm, wideNorm }: FamilyFacts): NormShape {
  const isLayer =
    norm === undefined
      ? config.has("layer_norm_eps", "layer_norm_epsilon") && !config.has("rms_norm_eps")
      : norm !== "rms" && norm !== "rms-plain";
  if (!isLayer) {
    return { kind: "rms", bias: false, affine: norm !== "rms-plain", wide: wideNorm === true };
  }
  return {
    kind: norm === "layer-parts" ? "layer-parts" : "layer",
    bias: norm === undefined || norm === "layer",
    affine: norm !== "layer-plain",
  };
}

interface Sizes {
  readonly hidden: number;
  readonly layers: number;
  readonly norm: NormShape;
}

function layerRuns(config: ModelConfig, facts: FamilyFacts, sizes: Sizes): LayerRun[] {
  const windows = windowsOf(config, sizes.layers);
  const dense = denseLayers(config, sizes.layers);
  const turned = turnedLayers(config, sizes.layers);
  const runs: { count: number; layer: TransformerLayer; key: string }[] = [];
  for (let index = 0; index < sizes.layers; index++) {
    const window = windows[index] ?? 0;
    const isDense = dense[index] === true;
    const isTurned = turned[index] !== false;
    const key = `${window} ${isDense} ${isTurned}`;
    const last = runs.at(-1);
    if (last?.key === key) {
      last.count += 1;
    } else {
      runs.push({
        count: 1,
        layer: layerOf(config, facts, sizes, { window, isDense, isTurned }),
        key,
      });
    }
  }
  return runs.map(({ count, layer }) => ({ count, layer }));
}

function layerOf(
  config: ModelConfig,
  facts: FamilyFacts,
  { hidden, norm }: Sizes,
  { window, isDense, isTurned }: { window: number; isDense: boolean; isTurned: boolean },
): TransformerLayer {
  const flag = /^(?:gpt_neox|stablelm)$/.test(config.family)
    ? "use_parallel_residual"
    : "parallel_attn";
  const parallel = facts.parallel !== undefined && config.flag(config.family !== "stablelm", flag);
  const twoNorms = facts.parallel === 2 || config.flag(false, "new_decoder_architecture");
  const mlp = mlpOf(config, facts, hidden);
  const attention = attentionOf(config, facts, hidden, window);
  // Llama 4: a dense layer is wider than an expert.
  const dense = { ...mlp, width: config.optionalSize("intermediate_size_mlp") ?? mlp.width };
  return {
    kind: "transformer",
    norm,
    placement:
      config.family === "opt" && !config.flag(true, "do_layer_norm_before")
        ? "after-residual"
        : (facts.placement ?? "before"),
    parallel,
    parallelNorms: twoNorms ? 2 : 1,
    attention: isTurned ? attention : withoutRotation(attention),
    cross: null,
    mlp: isDense ? dense : moeOf(config, facts, mlp),
    dropout:
      config.fraction(
        facts.dropout === true ? 0.1 : 0,
        "resid_pdrop",
        "residual_dropout",
        "dropout",
        "hidden_dropout",
      ) > 0,
    attentionDropout: config.fraction(0, "attn_pdrop", "attention_dropout") > 0,
    scales: 0,
    modulation: 0,
  };
}

/**
 * Layers of a mixture that are dense: the first ones (DeepSeek), those that a step leaves out (Qwen, Llama 4), those outside
 * a range (ERNIE 4.5), listed ones.
 */
function denseLayers(config: ModelConfig, layers: number): boolean[] {
  const every = (isDense: (index: number) => boolean): boolean[] =>
    Array.from({ length: layers }, (_, index) => isDense(index));
  const kinds = config.words("mlp_layer_types");
  if (kinds.length === layers) {
    return every((index) => kinds[index] === "dense");
  }
  if (config.has("moe_layers")) {
    const sparse = new Set(config.sizes("moe_layers"));
    return every((index) => !sparse.has(index));
  }
  const interval = config.optionalSize("interleave_moe_layer_step", "moe_layer_interval") ?? 1;
  if (config.has("interleave_moe_layer_step", "moe_layer_interval", "moe_layer_start_index")) {
    const from = config.count(0, "moe_layer_start_index");
    const end =
      config.values.moe_layer_end_index === -1
        ? layers - 1
        : config.count(layers - 1, "moe_layer_end_index");
    return every((index) => index < from || index > end || (index + 1) % interval !== 0);
  }
  const first = config.count(0, "first_k_dense_replace");
  const step = config.optionalSize("decoder_sparse_step", "moe_layer_freq") ?? 1;
  const listed = new Set(config.sizes("mlp_only_layers"));
  const isQwen = config.has("decoder_sparse_step");
  return every((index) => {
    const inStep = isQwen ? (index + 1) % step === 0 : index % step === 0;
    return index < first || listed.has(index) || !inStep;
  });
}

/** Layers without RoPE have a 0 in `no_rope_layers`, or are every so many. */
function turnedLayers(config: ModelConfig, layers: number): boolean[] {
  const listed = config.sizes("no_rope_layers");
  const interval =
    config.optionalSize("no_rope_layer_interval") ??
    (config.family === "llama4_text" ? usualPattern(config.family) : undefined);
  return Array.from({ length: layers }, (_, index) =>
    listed.length === layers
      ? listed[index] !== 0
      : interval === undefined || (index + 1) % interval !== 0,
  );
}

/** Llama 4 has no norms of queries and keys where it does not turn them. */
function withoutRotation(attention: AttentionShape): AttentionShape {
  const { plainNorm = false } = attention;
  return { ...attention, rotary: false, ...(plainNorm ? { queryKeyNorm: "none" } : {}) };
}

/** Tokens that each layer sees; 0: all. Of chunks, of which a position sees its own, at most the whole chunk. */
function windowsOf(config: ModelConfig, layers: number): number[] {
  const window = config.count(0, "sliding_window", "attention_chunk_size");
  if (window === 0 || !config.flag(true, "use_sliding_window")) {
    return Array.from({ length: layers }, () => 0);
  }
  const types = config.words("layer_types");
  if (types.length === layers) {
    return types.map((type) => (/^(?:sliding|chunked)_attention$/.test(type) ? window : 0));
  }
  const letters = config.text("sliding_window_pattern");
  if (letters !== "") {
    return Array.from({ length: layers }, (_, index) =>
      isLocal(config, letters, { index, layers }) ? window : 0,
    );
  }
  const { family } = config;
  const pattern =
    config.optionalSize("sliding_window_pattern", "no_rope_layer_interval") ?? usualPattern(family);
  const from = config.count(0, "max_window_layers");
  return Array.from({ length: layers }, (_, index) => {
    if (pattern > 0) {
      return (index + 1) % pattern === 0 ? 0 : window;
    }
    return index >= from || family === "mistral" ? window : 0;
  });
}

/** EXAONE 4: "LLLG" is repeated, L has a window and G has none; neither has the last layer. */
function isLocal(
  { source }: ModelConfig,
  letters: string,
  { index, layers }: { index: number; layers: number },
): boolean {
  if (!/^[LG]+$/.test(letters)) {
    throw invalidModel(
      source,
      `sliding_window_pattern is ${JSON.stringify(letters)}, neither a whole number nor letters L and G`,
    );
  }
  return index < layers - 1 && letters[index % letters.length] === "L";
}

/** Every how many layers one has no window; 0: all have one. Defaults of the families' configurations. */
function usualPattern(family: string): number {
  if (family.startsWith("gemma3")) {
    return 6;
  }
  return /^(?:gemma2|gpt_oss)$/.test(family)
    ? 2
    : /^(?:cohere2|olmo[23]|exaone4|llama4_text)$/.test(family)
      ? 4
      : 0;
}
