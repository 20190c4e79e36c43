/** UNets of diffusers. */
import { invalidModel } from "../../model/errors/plan_errors.js";
import type { ModelConfig } from "./config.js";
import type { ConvolutionLayer, LayerRun, TowerShape } from "./model_shape.js";
import { NO_TEXT } from "./parts.js";

export function readUnet(config: ModelConfig): TowerShape {
  const channels = config.sizes("block_out_channels");
  const kinds = config.words("down_block_types");
  if (
    channels.length === 0 ||
    channels.length > 8 ||
    kinds.length !== channels.length ||
    channels.includes(0)
  ) {
    throw invalidModel(config.source, "block_out_channels and down_block_types do not match");
  }
  return {
    ...NO_TEXT,
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
    const side = config.optionalSize("sample_size") ?? 64;
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
      throw invalidModel(
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
