/** Encoders of text: BERT and its relatives. */

import type { AttentionShape } from "./attention_shape.js";
import type { ModelConfig } from "./config.js";
import { activationOf } from "./decoder_parts.js";
import type {
  HeadShape,
  LayerRun,
  MlpShape,
  NormShape,
  TowerShape,
  TransformerLayer,
} from "./model_shape.js";

export const ENCODER_FAMILIES: readonly string[] = [
  "bert",
  "roberta",
  "xlm-roberta",
  "camembert",
  "electra",
  "distilbert",
  "mpnet",
  "ernie",
  "deberta",
  "deberta-v2",
  "modernbert",
];

export const LAYER_NORM: NormShape = { kind: "layer", bias: true, affine: true };

/** Attention with biases everywhere, all heads of their own. */
export function plainAttention(
  heads: number,
  hidden: number,
  changes: Partial<AttentionShape> = {},
): AttentionShape {
  return {
    heads,
    kvHeads: heads,
    headSize: hidden / heads,
    bias: true,
    outputBias: true,
    fused: false,
    rotary: false,
    rotaryShare: 0,
    queryKeyNorm: "none",
    window: 0,
    softCap: false,
    scoreBias: "none",
    bidirectional: true,
    ...changes,
  };
}

/** A layer with norms before its parts and biases everywhere; `changes` are the differences. */
export function plainLayer(
  attention: AttentionShape | null,
  width: number,
  changes: Partial<TransformerLayer> = {},
): TransformerLayer {
  return {
    kind: "transformer",
    norm: LAYER_NORM,
    placement: "before",
    parallel: false,
    parallelNorms: 1,
    attention,
    cross: null,
    mlp: { width, gated: false, activation: "gelu", bias: true, fused: false },
    dropout: false,
    attentionDropout: false,
    scales: 0,
    modulation: 0,
    ...changes,
  };
}

/** With the activation that the configuration names, and biases. */
export function plainMlp(config: ModelConfig, width: number): MlpShape {
  const activation = activationOf(config, "gelu");
  return { width, gated: false, activation, bias: true, fused: false };
}

interface EncoderRead {
  readonly tower: TowerShape;
  readonly head: HeadShape;
  readonly longest: number;
}

export function readEncoder(config: ModelConfig): EncoderRead {
  if (config.family === "modernbert") {
    return readModernBert(config);
  }
  const isDeberta = config.family.startsWith("deberta");
  const hidden = config.size("hidden_size", "dim");
  const heads = config.size("num_attention_heads", "n_heads");
  const width = config.size("intermediate_size", "hidden_dim");
  const longest = config.size("max_position_embeddings");
  const embedded = config.optionalSize("embedding_size") ?? hidden;
  const types = /^(?:distilbert|mpnet)$/.test(config.family)
    ? 0
    : config.count(isDeberta ? 0 : 2, "type_vocab_size");
  const dropout = config.fraction(0.1, "hidden_dropout_prob", "dropout") > 0;
  const relative = isDeberta ? relativeRows(config) : 0;
  const attention = plainAttention(heads, hidden, {
    narrowSoftmax: true,
    ...(isDeberta
      ? {
          contiguous: true,
          scoreBias: "relative",
          ...(config.family === "deberta" ? { fused: true, keyBias: false } : {}),
        }
      : {}),
    ...(relative > 0 ? { relativeRows: relative } : {}),
  });
  const layer = plainLayer(attention, width, {
    placement: "after-residual",
    dropout,
    attentionDropout: config.fraction(0.1, "attention_probs_dropout_prob", "attention_dropout") > 0,
    mlp: plainMlp(config, width),
  });
  const layers = config.layers("num_hidden_layers", "n_layers");
  return {
    tower: {
      name: "encoder",
      hidden,
      positions: "sequence",
      embeddings: [
        { name: "word_embeddings", rows: config.size("vocab_size"), width: embedded },
        ...(isDeberta && !config.flag(true, "position_biased_input")
          ? []
          : [{ name: "position_embeddings", rows: longest, width: embedded }]),
        ...(types > 0 ? [{ name: "token_type_embeddings", rows: types, width: embedded }] : []),
      ],
      embeddingNorm: LAYER_NORM,
      ...(embedded === hidden ? {} : { embeddingProjection: { bias: true } }),
      embeddingDropout: dropout,
      stems: [],
      layers: [{ count: layers, layer }],
      finalNorm: null,
      otherParameters:
        poolerOf(config, hidden) +
        (relative > 0 ? relativeParameters(config, { hidden, layers, relative }) : 0) +
        (config.family === "mpnet"
          ? heads * config.count(32, "relative_attention_num_buckets")
          : 0),
      ...(poolerOf(config, hidden) > 0 ? { otherBiases: hidden } : {}),
    },
    head: headOf(config, embedded === hidden ? null : embedded),
    longest,
  };
}

/** Distances between two tokens that DeBERTa learns rows for, in both directions; 0: none. */
function relativeRows(config: ModelConfig): number {
  if (!config.flag(false, "relative_attention")) {
    return 0;
  }
  const buckets = config.values.position_buckets;
  const most = config.values.max_relative_positions;
  const known = (value: unknown): value is number => typeof value === "number" && value >= 1;
  const span = known(buckets)
    ? config.size("position_buckets")
    : known(most)
      ? config.size("max_relative_positions")
      : config.size("max_position_embeddings");
  return 2 * span;
}

/** The table of distances with its norm, and the matrices that turn its rows into keys and queries. */
function relativeParameters(
  config: ModelConfig,
  { hidden, layers, relative }: { hidden: number; layers: number; relative: number },
): number {
  const kinds = config.values.pos_att_type;
  const named = Array.isArray(kinds) ? kinds.join("|") : config.text("pos_att_type");
  const norm = config.text("norm_rel_ebd").includes("layer_norm") ? 2 * hidden : 0;
  const first = config.family === "deberta";
  const shares = !first && config.flag(false, "share_att_key");
  const keys = !shares && named.includes("c2p") ? hidden * (hidden + (first ? 0 : 1)) : 0;
  const queries = !shares && named.includes("p2c") ? hidden * (hidden + 1) : 0;
  // Version 2 XLarge: a convolution of the embeddings beside the first layer, and a norm.
  const kernel = config.count(0, "conv_kernel_size");
  const convolution = kernel > 0 ? kernel * hidden * hidden + 3 * hidden : 0;
  return relative * hidden + norm + layers * (keys + queries) + convolution;
}

/** Parameters between the encoder and the logits of a classifier: a pooler, or a dense layer of the head. */
function poolerOf(config: ModelConfig, hidden: number): number {
  const architecture = config.architecture;
  const dense = hidden * hidden + hidden;
  if (
    /MaskedLM|PreTraining|CausalLM|LMHead|TokenClassification|QuestionAnswering/.test(architecture)
  ) {
    return /^(?:bert|ernie)$/.test(config.family) && architecture.includes("PreTraining")
      ? dense
      : 0;
  }
  if (/^(?:bert|ernie)$/.test(config.family)) {
    return dense;
  }
  // The others have their dense layer in the head of a classifier alone.
  return architecture.includes("ForSequenceClassification") ? dense : 0;
}

function headOf(config: ModelConfig, projected: number | null): HeadShape {
  const architecture = config.architecture;
  const base = { tied: false, bias: true, transform: false, softCap: false } as const;
  if (/MaskedLM|PreTraining|CausalLM|LMHead/.test(architecture)) {
    return {
      ...base,
      kind: "language",
      outputs: config.size("vocab_size"),
      tied: config.flag(true, "tie_word_embeddings"),
      narrowLoss: !/CausalLM|LMHead/.test(architecture) && config.family !== "modernbert",
      transform: true,
      ...(config.family === "modernbert"
        ? { transformBias: config.flag(false, "classifier_bias") }
        : {}),
      ...(projected === null ? {} : { transformWidth: projected }),
    };
  }
  if (/TokenClassification|QuestionAnswering/.test(architecture)) {
    return { ...base, kind: "language", outputs: labelsOf(config, 2), narrowLoss: true };
  }
  return { ...base, kind: "class", outputs: labelsOf(config, 2) };
}

/** ModernBERT: no biases, rotated queries and keys, a gated MLP of one matrix, windows in two of three layers. */
function readModernBert(config: ModelConfig): EncoderRead {
  const hidden = config.size("hidden_size");
  const width = config.size("intermediate_size");
  const count = config.layers("num_hidden_layers");
  const norm: NormShape = { kind: "layer", bias: config.flag(false, "norm_bias"), affine: true };
  const bias = config.flag(false, "attention_bias");
  const local = config.count(128, "local_attention");
  const every = config.optionalSize("global_attn_every_n_layers") ?? 3;
  const types = config.words("layer_types");
  const layers: LayerRun[] = Array.from({ length: count }, (_, index) => {
    const isGlobal =
      types.length === count ? types[index] !== "sliding_attention" : index % every === 0;
    const attention = plainAttention(config.size("num_attention_heads"), hidden, {
      bias,
      outputBias: bias,
      fused: true,
      rotary: true,
      rotaryShare: 1,
      window: isGlobal ? 0 : local,
    });
    const mlp = {
      width,
      gated: true,
      activation: activationOf(config, "gelu"),
      bias: config.flag(false, "mlp_bias"),
      fused: true,
    };
    const readsNormed = index === 0 ? { readsNormed: true as const } : {};
    return { count: 1, layer: plainLayer(attention, width, { norm, mlp, ...readsNormed }) };
  });
  const head = headOf(config, null);
  return {
    tower: {
      name: "encoder",
      hidden,
      positions: "sequence",
      embeddings: [{ name: "tok_embeddings", rows: config.size("vocab_size"), width: hidden }],
      embeddingNorm: norm,
      embeddingDropout: false,
      stems: [],
      layers,
      finalNorm: norm,
      // A classifier has the dense layer and the norm of the language model's head, too.
      otherParameters: head.transform ? 0 : hidden * hidden + hidden,
    },
    head,
    longest: config.count(8192, "max_position_embeddings"),
  };
}

/** `num_labels`, or the entries of `id2label`. */
export function labelsOf(config: ModelConfig, otherwise: number): number {
  const labels = config.part("id2label");
  return (
    config.optionalSize("num_labels") ??
    (labels === null ? otherwise : Math.max(1, Object.keys(labels.values).length))
  );
}
