/** Encoders of text: BERT and its relatives. */
import type { ModelConfig } from "./config.js";
import { activationOf } from "./decoder.js";
import type {
  AttentionShape,
  HeadShape,
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

export function readEncoder(config: ModelConfig): {
  tower: TowerShape;
  head: HeadShape;
  longest: number;
} {
  const hidden = config.size("hidden_size", "dim");
  const heads = config.size("num_attention_heads", "n_heads");
  const width = config.size("intermediate_size", "hidden_dim");
  const vocabulary = config.size("vocab_size");
  const longest = config.size("max_position_embeddings");
  const embedded = config.optionalSize("embedding_size") ?? hidden;
  const types = config.family === "distilbert" ? 0 : config.count(2, "type_vocab_size");
  const dropout = config.fraction(0.1, "hidden_dropout_prob", "dropout") > 0;
  const architecture = config.words("architectures")[0] ?? "";
  const layer = plainLayer(plainAttention(heads, hidden, { narrowSoftmax: true }), width, {
    placement: "after-residual",
    dropout,
    attentionDropout: config.fraction(0.1, "attention_probs_dropout_prob", "attention_dropout") > 0,
    mlp: {
      width,
      gated: false,
      activation: activationOf(config, "gelu"),
      bias: true,
      fused: false,
    },
  });
  const pools = /^(?:bert|ernie)$/.test(config.family) && !architecture.includes("MaskedLM");
  return {
    tower: {
      name: "encoder",
      hidden,
      positions: "sequence",
      embeddings: [
        { name: "word_embeddings", rows: vocabulary, width: embedded },
        { name: "position_embeddings", rows: longest, width: embedded },
        ...(types > 0 ? [{ name: "token_type_embeddings", rows: types, width: embedded }] : []),
      ],
      embeddingNorm: LAYER_NORM,
      embeddingDropout: dropout,
      stems: [],
      layers: [{ count: config.layers("num_hidden_layers", "n_layers"), layer }],
      finalNorm: null,
      otherParameters:
        (pools ? hidden * hidden + hidden : 0) +
        (embedded === hidden ? 0 : (embedded + 1) * hidden),
    },
    head: headOf(config, architecture, vocabulary),
    longest,
  };
}

function headOf(config: ModelConfig, architecture: string, vocabulary: number): HeadShape {
  const base = { tied: false, bias: true, transform: false, softCap: false } as const;
  if (architecture.includes("MaskedLM") || architecture.includes("PreTraining")) {
    return {
      ...base,
      kind: "language",
      outputs: vocabulary,
      tied: config.flag(true, "tie_word_embeddings"),
      transform: true,
    };
  }
  return { ...base, kind: "class", outputs: labelsOf(config, 2) };
}

/** `num_labels`, or the entries of `id2label`. */
export function labelsOf(config: ModelConfig, otherwise: number): number {
  const labels = config.part("id2label");
  return (
    config.optionalSize("num_labels") ??
    (labels === null ? otherwise : Math.max(1, Object.keys(labels.values).length))
  );
}
