/** Encoders of speech that read samples: Wav2Vec2, HuBERT, WavLM. */
import { invalidModel, noReader } from "../../model/errors/plan_errors.js";
import type { ModelConfig } from "./config.js";
import { LAYER_NORM, labelsOf, plainAttention, plainLayer, plainMlp } from "./encoder.js";
import type { FramesLayer, HeadShape, LayerRun, TowerShape } from "./model_shape.js";
import { NO_HEAD, NO_TEXT } from "./parts.js";
import { CLASS_HEAD } from "./vision.js";

export const SPEECH_FAMILIES: readonly string[] = ["wav2vec2", "hubert", "wavlm"];

interface SpeechRead {
  readonly tower: TowerShape;
  readonly head: HeadShape;
  readonly remarks: readonly string[];
}

/** Of the published models; `to_diff_dict` leaves out what is the same. */
const CHANNELS = [512, 512, 512, 512, 512, 512, 512];
const STRIDES = [5, 2, 2, 2, 2, 2, 2];
const KERNELS = [10, 3, 3, 3, 3, 2, 2];
const MOST_CONVOLUTIONS = 32;
const SAMPLES_IN_A_SECOND = 16_000;

/** Baevski et al. 2020, "wav2vec 2.0". @throws TidemarkError TM-E085 */
export function readSpeech(config: ModelConfig): SpeechRead {
  const { architecture } = config;
  if (/PreTraining|XVector|AudioFrame/.test(architecture) || config.flag(false, "add_adapter")) {
    throw noReader(
      config.source,
      `${architecture === "" ? "an adapter behind the encoder" : architecture} has no reader`,
    );
  }
  const hidden = config.size("hidden_size");
  const width = config.size("intermediate_size");
  // "Stable": norms before the parts, and one at the end.
  const isStable = config.flag(false, "do_stable_layer_norm");
  const dropout = config.fraction(0.1, "hidden_dropout") > 0;
  const convolutions = framesLayers(config);
  const heads = config.size("num_attention_heads");
  const isGated = config.family === "wavlm";
  const layer = plainLayer(
    plainAttention(heads, hidden, {
      narrowSoftmax: true,
      ...(isGated ? { scoreBias: "gated" } : {}),
    }),
    width,
    {
      placement: isStable ? "before" : "after-residual",
      dropout,
      attentionDropout: config.fraction(0.1, "attention_dropout") > 0,
      mlp: {
        ...plainMlp(config, width),
        dropout: config.fraction(0.1, "activation_dropout") > 0,
      },
    },
  );
  const { step = 0 } = convolutions[0]?.samples ?? {};
  const runs: LayerRun[] = [...convolutions, ...afterConvolutions(config, hidden, isStable)].map(
    (each) => ({ count: 1, layer: each, isPart: true }),
  );
  const masks =
    config.fraction(0.05, "mask_time_prob") > 0 || config.fraction(0, "mask_feature_prob") > 0;
  const { head, parameters } = headOf(config, hidden);
  return {
    tower: {
      ...NO_TEXT,
      name: "encoder",
      hidden,
      positions: "sequence",
      layers: [...runs, { count: config.layers("num_hidden_layers"), layer }],
      finalNorm: isStable ? LAYER_NORM : null,
      otherParameters:
        (masks ? hidden : 0) +
        parameters +
        (isGated ? heads * config.count(320, "num_buckets") : 0),
    },
    head,
    remarks: [
      `a position is ${step} samples: --seq ${Math.round((10 * SAMPLES_IN_A_SECOND) / step)} is 10 seconds of audio at 16 kHz; the convolutions are planned as trained, without freeze_feature_encoder()`,
    ],
  };
}

/** Convolutions from samples to frames. */
function framesLayers(config: ModelConfig): FramesLayer[] {
  const named = (name: string, otherwise: number[]): number[] =>
    config.has(name) ? config.sizes(name) : otherwise;
  const channels = named("conv_dim", CHANNELS);
  const strides = named("conv_stride", STRIDES);
  const kernels = named("conv_kernel", KERNELS);
  const all = [...channels, ...strides, ...kernels];
  if (
    channels.length === 0 ||
    channels.length > MOST_CONVOLUTIONS ||
    strides.length !== channels.length ||
    kernels.length !== channels.length ||
    all.some((each) => each === 0 || each > 1e5)
  ) {
    throw invalidModel(config.source, "conv_dim, conv_stride and conv_kernel do not match");
  }
  const step = strides.reduce((product, stride) => product * stride, 1);
  const first = kernels.reduceRight(
    (samples, kernel, index) => (samples - 1) * (strides[index] as number) + kernel,
    1,
  );
  const isGroup = config.text("feat_extract_norm") !== "layer";
  return channels.map((outputs, index) => ({
    kind: "frames",
    block: "convolution",
    inputs: channels[index - 1] ?? 1,
    outputs,
    kernel: kernels[index] as number,
    stride: strides[index] as number,
    groups: 1,
    bias: config.flag(false, "conv_bias"),
    norm: isGroup ? (index === 0 ? "channels" : "none") : "rows",
    ...(index === 0 ? { samples: { step, first } } : {}),
  }));
}

function afterConvolutions(config: ModelConfig, hidden: number, isStable: boolean): FramesLayer[] {
  const inputs = config.has("conv_dim")
    ? (config.sizes("conv_dim").at(-1) as number)
    : (CHANNELS.at(-1) as number);
  const groups = config.optionalSize("num_conv_pos_embedding_groups") ?? 16;
  if (hidden % groups !== 0) {
    throw invalidModel(config.source, `${groups} groups do not divide a hidden size of ${hidden}`);
  }
  const shared = { kind: "frames", stride: 1, outputs: hidden, bias: true } as const;
  return [
    {
      ...shared,
      block: "projection",
      inputs,
      kernel: 1,
      groups: 1,
      norm: config.flag(true, "feat_proj_layer_norm") ? "rows" : "none",
    },
    {
      ...shared,
      block: "positions",
      inputs: hidden,
      kernel: config.optionalSize("num_conv_pos_embeddings") ?? 128,
      groups,
      norm: isStable ? "none" : "rows",
    },
  ];
}

/** Letters of each frame (CTC), or one class of the mean of projected rows. */
function headOf(
  config: ModelConfig,
  hidden: number,
): { readonly head: HeadShape; readonly parameters: number } {
  const { architecture } = config;
  if (architecture.endsWith("ForSequenceClassification")) {
    const projected = config.optionalSize("classifier_proj_size") ?? 256;
    const labels = labelsOf(config, 2);
    // The classifier reads projected rows, which are narrower than those of the layers.
    const parameters = projected * (hidden + 1) + (projected - hidden) * labels;
    return { head: { ...CLASS_HEAD, outputs: labels }, parameters };
  }
  return architecture.endsWith("Model")
    ? { head: NO_HEAD, parameters: 0 }
    : {
        head: { ...CLASS_HEAD, kind: "language", outputs: config.optionalSize("vocab_size") ?? 32 },
        parameters: 0,
      };
}
