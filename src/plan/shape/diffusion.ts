/** Diffusion models of diffusers: UNets, and DiT, a transformer over patches. */
import { notAModel } from "../../model/errors/plan_errors.js";
import type { ModelConfig } from "./config.js";
import { plainAttention, plainLayer } from "./encoder.js";
import type {
  ConvolutionLayer,
  HeadShape,
  LayerRun,
  ModelShape,
  TowerShape,
} from "./model_shape.js";

export const NO_HEAD: HeadShape = {
  kind: "none",
  outputs: 0,
  tied: false,
  bias: false,
  transform: false,
  softCap: false,
};

const EMPTY = {
  embeddings: [],
  embeddingNorm: null,
  embeddingDropout: false,
  stems: [],
  finalNorm: null,
} as const;

export function readUnet(config: ModelConfig): TowerShape {
  const channels = config.sizes("block_out_channels");
  const kinds = config.words("down_block_types");
  if (
    channels.length === 0 ||
    channels.length > 8 ||
    kinds.length !== channels.length ||
    channels.includes(0)
  ) {
    throw notAModel(config.source, "block_out_channels and down_block_types do not match");
  }
  return {
    ...EMPTY,
    name: "unet",
    hidden: channels[0] ?? 1,
    positions: 1,
    layers: new UnetLayers(config, channels, kinds).all(),
    otherParameters: embeddingParameters(config, channels[0] ?? 1),
  };
}

/** Two dense layers of the time step, and of the added conditions (SDXL). */
function embeddingParameters(config: ModelConfig, first: number): number {
  const time = 4 * first;
  const added = config.count(0, "projection_class_embeddings_input_dim");
  return (
    (first + 1) * time +
    (time + 1) * time +
    (added > 0 ? (added + 1) * time + (time + 1) * time : 0)
  );
}

class UnetLayers {
  readonly #runs: LayerRun[] = [];
  readonly #config: ModelConfig;
  readonly #channels: readonly number[];
  readonly #kinds: readonly string[];
  readonly #perBlock: number;
  /** Channels of what the way down left for the way up. */
  readonly #left: number[] = [];

  constructor(config: ModelConfig, channels: readonly number[], kinds: readonly string[]) {
    this.#config = config;
    this.#channels = channels;
    this.#kinds = kinds;
    this.#perBlock = Math.min(8, config.count(2, "layers_per_block"));
  }

  all(): LayerRun[] {
    const config = this.#config;
    const side = config.count(64, "sample_size");
    const [first = 1] = this.#channels;
    const inputs = config.count(4, "in_channels");
    this.#convolve("resample", inputs, first, side);
    this.#left.push(first);
    const levels = this.#channels.length;
    let before = first;
    let now = side;
    for (const [level, size] of this.#channels.entries()) {
      for (let block = 0; block < this.#perBlock; block++) {
        this.#block(block === 0 ? before : size, size, now, level);
        this.#left.push(size);
      }
      before = size;
      if (level < levels - 1) {
        now = Math.ceil(now / 2);
        this.#convolve("resample", size, size, now);
        this.#left.push(size);
      }
    }
    this.#unet(before, before, now);
    this.#attend(before, now, levels - 1, true);
    this.#unet(before, before, now);
    this.#up(before, now);
    this.#convolve("unet-output", first, config.count(4, "out_channels"), side);
    return this.#runs;
  }

  #up(from: number, smallest: number): void {
    let before = from;
    let now = smallest;
    for (const [step, size] of [...this.#channels].reverse().entries()) {
      const level = this.#channels.length - 1 - step;
      for (let block = 0; block <= this.#perBlock; block++) {
        this.#block(before + (this.#left.pop() ?? 0), size, now, level);
        before = size;
      }
      if (level > 0) {
        now *= 2;
        this.#convolve("upsample", size, size, now);
      }
    }
  }

  #block(inputs: number, outputs: number, side: number, level: number): void {
    this.#unet(inputs, outputs, side);
    this.#attend(outputs, side, level, this.#kinds[level]?.includes("Attn") === true);
  }

  #unet(inputs: number, outputs: number, side: number): void {
    this.#convolve("unet", inputs, outputs, side);
  }

  #convolve(block: ConvolutionLayer["block"], inputs: number, outputs: number, side: number): void {
    this.#runs.push({
      count: 1,
      layer: {
        kind: "convolution",
        name: block,
        inputChannels: inputs,
        outputChannels: outputs,
        inputSide: side,
        outputSide: side,
        block,
        conditionSize: 4 * (this.#channels[0] ?? 1),
      },
    });
  }

  #attend(channels: number, side: number, level: number, attends: boolean): void {
    if (!attends) {
      return;
    }
    const config = this.#config;
    const isPlain = config.text("_class_name") === "UNet2DModel";
    const sizes = config.sizes("attention_head_dim");
    const size = sizes[level] ?? config.count(8, "attention_head_dim");
    // UNet2DConditionModel calls the number of heads attention_head_dim.
    const heads = isPlain ? (size === 0 ? 1 : channels / size) : size;
    if (heads === 0 || !Number.isInteger(heads) || channels % heads !== 0) {
      throw notAModel(
        config.source,
        `attention_head_dim ${size} does not divide ${channels} channels`,
      );
    }
    this.#runs.push({
      count: 1,
      layer: {
        kind: "unet-attention",
        channels,
        side,
        heads,
        depth: isPlain
          ? 0
          : Math.min(
              40,
              config.sizes("transformer_layers_per_block")[level] ??
                config.count(1, "transformer_layers_per_block"),
            ),
        contextSize: isPlain ? 0 : config.count(768, "cross_attention_dim"),
      },
    });
  }
}

/** DiT: patches of the latent image; each layer's norms are shifted and scaled by the condition. */
export function readDiffusionTransformer(config: ModelConfig): Pick<ModelShape, "towers" | "head"> {
  const heads = config.size("num_attention_heads");
  const hidden = heads * config.size("attention_head_dim");
  const patch = config.count(2, "patch_size") || 1;
  const positions = Math.max(1, Math.floor(config.count(32, "sample_size") / patch)) ** 2;
  const channels = config.count(4, "in_channels");
  const layers = config.layers("num_layers");
  if (config.text("norm_type") !== "ada_norm_zero" || config.has("cross_attention_dim")) {
    throw notAModel(config.source, "a transformer over patches that is not DiT has no reader");
  }
  const tower: TowerShape = {
    ...EMPTY,
    name: "transformer",
    hidden,
    positions,
    stems: [{ name: "patch_embedding", input: channels * patch ** 2, output: hidden, bias: true }],
    layers: [
      {
        count: layers,
        layer: plainLayer(plainAttention(heads, hidden), 4 * hidden, {
          norm: { kind: "layer", bias: false, affine: false },
          cross: null,
          modulation: 6,
          mlp: { width: 4 * hidden, gated: false, activation: "gelu", bias: true, fused: false },
        }),
      },
    ],
    // Each layer embeds the time step and the class by itself; one more class stands for none.
    otherParameters:
      layers *
      (256 * hidden +
        hidden * hidden +
        2 * hidden +
        (config.count(0, "num_embeds_ada_norm") + 1) * hidden),
  };
  const outputs = patch ** 2 * (config.count(0, "out_channels") || channels);
  return { towers: [tower], head: { ...NO_HEAD, kind: "patches", outputs } };
}
