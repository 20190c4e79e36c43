/** Encoder and decoder: T5 and its relatives, BART, Whisper. */
import { noReader } from "../../model/errors/plan_errors.js";
import type { ModelConfig } from "./config.js";
import { activationOf } from "./decoder_parts.js";
import { LAYER_NORM, plainAttention, plainLayer } from "./encoder.js";
import type {
  HeadShape,
  MlpShape,
  NormShape,
  TowerShape,
  TransformerLayer,
} from "./model_shape.js";

export const SEQUENCE_FAMILIES: readonly string[] = [
  "t5",
  "mt5",
  "umt5",
  "longt5",
  "bart",
  "mbart",
  "whisper",
  "m2m_100",
];

interface Read {
  readonly towers: readonly TowerShape[];
  readonly head: HeadShape;
  readonly longest: number;
}

export function readSequenceToSequence(config: ModelConfig): Read {
  const { architecture } = config;
  if (/Encoder|CausalLM|Classification|QuestionAnswering/.test(architecture)) {
    throw noReader(config.source, `${architecture} has no reader`);
  }
  return config.has("d_kv") ? readT5(config) : readBart(config);
}

/** T5LayerNorm multiplies its input itself, and squares a copy in fp32. */
const RMS: NormShape = { kind: "rms", bias: false, affine: true, keepsInput: true };

function readT5(config: ModelConfig): Read {
  const hidden = config.size("d_model");
  const heads = config.size("num_heads");
  const vocabulary = config.size("vocab_size");
  const layers = config.layers("num_layers");
  const projection = config.text("feed_forward_proj");
  const gated = projection.startsWith("gated");
  const mlp: MlpShape = {
    width: config.size("d_ff"),
    gated,
    // transformers runs "gated-gelu" as gelu_new, one kernel for each operation.
    activation: gated ? "gelu_python" : "relu",
    bias: false,
    fused: false,
  };
  const attention = plainAttention(heads, hidden, {
    headSize: config.size("d_kv"),
    bias: false,
    outputBias: false,
    scoreBias: "relative",
    narrowSoftmax: true,
  });
  const dropout = config.fraction(0.1, "dropout_rate") > 0;
  const layer = plainLayer(attention, mlp.width, {
    norm: RMS,
    mlp,
    dropout,
    attentionDropout: dropout,
  });
  const buckets = config.count(32, "relative_attention_num_buckets") * heads;
  const relative = config.family === "umt5" ? layers : 1;
  const tower = (
    name: string,
    count: number,
    own: TransformerLayer,
    shared: boolean,
  ): TowerShape => ({
    name,
    hidden,
    positions: "sequence",
    embeddings: [{ name: "embed_tokens", rows: vocabulary, width: hidden, shared }],
    embeddingNorm: null,
    embeddingDropout: dropout,
    stems: [],
    layers: [{ count, layer: own }],
    finalNorm: RMS,
    otherParameters: buckets * relative,
  });
  const decoding = {
    ...layer,
    attention: { ...attention, bidirectional: false },
    cross: { ...attention, scoreBias: "none" as const, headMask: true },
  };
  return {
    towers: [
      tower("encoder", layers, layer, false),
      tower("decoder", config.count(layers, "num_decoder_layers"), decoding, true),
    ],
    head: {
      kind: "language",
      outputs: vocabulary,
      tied: config.flag(true, "tie_word_embeddings"),
      bias: false,
      narrowLoss: true,
      transform: false,
      softCap: false,
    },
    longest: config.count(512, "n_positions"),
  };
}

/** BART, mBART, M2M and Whisper, whose encoder reads mel frames through two convolutions. */
function readBart(config: ModelConfig): Read {
  const isSpeech = config.has("num_mel_bins");
  const hidden = config.size("d_model");
  const vocabulary = config.size("vocab_size");
  const activation = activationOf(config, "gelu");
  const before = isSpeech || config.family !== "bart";
  const dropout = config.fraction(0, "dropout") > 0;
  const source = config.count(0, "max_source_positions");
  const positions = config.optionalSize("max_position_embeddings", "max_target_positions") ?? 1024;
  const extra = isSpeech ? 0 : 2;
  const tower = (side: "encoder" | "decoder"): TowerShape => {
    const heads = config.size(`${side}_attention_heads`);
    const width = config.size(`${side}_ffn_dim`);
    const own = isSpeech
      ? { keyBias: false, contiguous: true, narrowSoftmax: true }
      : { narrowSoftmax: true };
    const attention = plainAttention(heads, hidden, {
      bidirectional: side === "encoder",
      ...own,
    });
    const reads = isSpeech && side === "encoder";
    return {
      name: side,
      hidden,
      positions: reads ? source : "sequence",
      embeddings: [
        ...(reads
          ? []
          : [
              {
                name: "embed_tokens",
                rows: vocabulary,
                width: hidden,
                shared: side === "decoder" && !isSpeech,
              },
            ]),
        ...(config.family === "m2m_100"
          ? []
          : [
              {
                name: "embed_positions",
                rows: (reads ? source : positions) + extra,
                width: hidden,
              },
            ]),
      ],
      embeddingNorm: isSpeech || config.family === "m2m_100" ? null : LAYER_NORM,
      embeddingDropout: dropout,
      // A convolution of three frames as a matrix.
      stems: reads
        ? [
            { name: "conv1", input: 3 * config.size("num_mel_bins"), output: hidden, bias: true },
            { name: "conv2", input: 3 * hidden, output: hidden, bias: true },
          ]
        : [],
      layers: [
        {
          count: config.layers(`${side}_layers`),
          layer: plainLayer(attention, width, {
            placement: before ? "before" : "after-residual",
            dropout,
            attentionDropout: config.fraction(0, "attention_dropout") > 0,
            cross: side === "decoder" ? plainAttention(heads, hidden, own) : null,
            mlp: { width, gated: false, activation, bias: true, fused: false },
          }),
        },
      ],
      finalNorm: before ? LAYER_NORM : null,
      otherParameters: 0,
    };
  };
  return {
    towers: [tower("encoder"), tower("decoder")],
    head: {
      kind: "language",
      outputs: vocabulary,
      tied: true,
      bias: false,
      narrowLoss: true,
      transform: false,
      softCap: false,
    },
    longest: positions,
  };
}
