/** Decoders: Llama and its relatives, and the families that differ from it in more than sizes. */
import { invalidModel } from "../../model/errors/plan_errors.js";
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
      otherParameters: embedded === hidden ? 0 : embedded * hidden,
    },
    head: headOf(config, facts, vocabulary),
    longest: facts.positions === "learned" ? longest : scaled(longest, config),
    ...(declared === undefined ? {} : { declaredLongest: scaled(declared, config) }),
    known: own !== null,
  };
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

function normOf(config: ModelConfig, facts: FamilyFacts): NormShape {
  const kind =
    facts.norm === undefined && !config.has("layer_norm_eps", "layer_norm_epsilon")
      ? "rms"
      : "layer";
  const isLayer = facts.norm !== undefined || (kind === "layer" && !config.has("rms_norm_eps"));
  return isLayer
    ? {
        kind: facts.norm === "layer-parts" ? "layer-parts" : "layer",
        bias: facts.norm !== "layer-plain" && facts.norm !== "layer-parts",
        affine: facts.norm !== "layer-plain",
      }
    : { kind: "rms", bias: false, affine: true, wide: facts.wideNorm === true };
}

interface Sizes {
  readonly hidden: number;
  readonly layers: number;
  readonly norm: NormShape;
}

function layerRuns(config: ModelConfig, facts: FamilyFacts, sizes: Sizes): LayerRun[] {
  const windows = windowsOf(config, sizes.layers);
  const dense = denseLayers(config, sizes.layers);
  const runs: { count: number; layer: TransformerLayer; key: string }[] = [];
  for (let index = 0; index < sizes.layers; index++) {
    const window = windows[index] ?? 0;
    const isDense = dense[index] === true;
    const key = `${window} ${isDense}`;
    const last = runs.at(-1);
    if (last?.key === key) {
      last.count += 1;
    } else {
      runs.push({ count: 1, layer: layerOf(config, facts, sizes, { window, isDense }), key });
    }
  }
  return runs.map(({ count, layer }) => ({ count, layer }));
}

function layerOf(
  config: ModelConfig,
  facts: FamilyFacts,
  { hidden, norm }: Sizes,
  { window, isDense }: { window: number; isDense: boolean },
): TransformerLayer {
  const parallelDefault = config.family === "gpt_neox" ? "use_parallel_residual" : "parallel_attn";
  const parallel = facts.parallel !== undefined && config.flag(true, parallelDefault);
  const twoNorms = facts.parallel === 2 || config.flag(false, "new_decoder_architecture");
  const mlp = mlpOf(config, facts, hidden);
  return {
    kind: "transformer",
    norm,
    placement:
      config.family === "opt" && !config.flag(true, "do_layer_norm_before")
        ? "after-residual"
        : (facts.placement ?? "before"),
    parallel,
    parallelNorms: twoNorms ? 2 : 1,
    attention: attentionOf(config, facts, hidden, window),
    cross: null,
    mlp: isDense ? mlp : moeOf(config, mlp),
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

/** Layers of a mixture that are dense: the first ones (DeepSeek), those that a step leaves out (Qwen), listed ones. */
function denseLayers(config: ModelConfig, layers: number): boolean[] {
  const first = config.count(0, "first_k_dense_replace");
  const step = config.optionalSize("decoder_sparse_step", "moe_layer_freq") ?? 1;
  const listed = new Set(config.sizes("mlp_only_layers"));
  const isQwen = config.has("decoder_sparse_step");
  return Array.from({ length: layers }, (_, index) => {
    const inStep = isQwen ? (index + 1) % step === 0 : index % step === 0;
    return index < first || listed.has(index) || !inStep;
  });
}

/** Tokens that each layer sees; 0: all. */
function windowsOf(config: ModelConfig, layers: number): number[] {
  const window = config.count(0, "sliding_window");
  if (window === 0 || !config.flag(true, "use_sliding_window")) {
    return Array.from({ length: layers }, () => 0);
  }
  const types = config.words("layer_types");
  if (types.length === layers) {
    return types.map((type) => (type === "sliding_attention" ? window : 0));
  }
  const letters = config.text("sliding_window_pattern");
  if (letters !== "") {
    return Array.from({ length: layers }, (_, index) =>
      isLocal(config, letters, { index, layers }) ? window : 0,
    );
  }
  const { family } = config;
  const pattern = config.optionalSize("sliding_window_pattern") ?? usualPattern(family);
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
    : /^(?:cohere2|olmo[23]|exaone4)$/.test(family)
      ? 4
      : 0;
}
