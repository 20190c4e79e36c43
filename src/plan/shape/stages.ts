/** Image models whose stages have fewer and wider rows: Swin, ConvNeXt. */
import { invalidModel } from "../../model/errors/plan_errors.js";
import type { ModelConfig } from "./config.js";
import { activationOf } from "./decoder_parts.js";
import { LAYER_NORM, labelsOf, plainAttention, plainLayer } from "./encoder.js";
import type { HeadShape, LayerRun, MlpShape, StageLayer, TowerShape } from "./model_shape.js";
import { NO_HEAD, NO_TEXT } from "./parts.js";
import { CLASS_HEAD } from "./vision.js";

export const STAGE_FAMILIES: readonly string[] = ["swin", "convnext", "convnextv2"];

interface StageRead {
  readonly tower: TowerShape;
  readonly head: HeadShape;
}

/** @throws TidemarkError TM-E085 */
export function readStages(config: ModelConfig): StageRead {
  return config.family === "swin" ? readSwin(config) : readConvNext(config);
}

interface Stage {
  readonly depth: number;
  readonly hidden: number;
}

const DEEPEST = 200;

function stagesOf(config: ModelConfig, widths: readonly number[]): Stage[] {
  const depths = config.sizes("depths");
  if (
    depths.length === 0 ||
    depths.length !== widths.length ||
    depths.some((each) => each > DEEPEST)
  ) {
    throw invalidModel(config.source, "depths do not match the widths of the stages");
  }
  return depths.map((depth, index) => ({ depth, hidden: widths[index] as number }));
}

/** The image's patches: the first layer, and the number of rows along one side. */
function patches(config: ModelConfig, hidden: number): StageLayer {
  const image = config.optionalSize("image_size") ?? 224;
  const patch = config.count(4, "patch_size") || 1;
  if (patch > image) {
    throw invalidModel(config.source, `patches of ${patch} in an image of ${image}`);
  }
  return {
    kind: "stage",
    block: "patches",
    side: Math.floor(image / patch),
    hidden,
    inputSide: image,
    inputHidden: config.count(3, "num_channels"),
  };
}

function towerOf(
  layers: readonly LayerRun[],
  hidden: number,
  changes: Partial<TowerShape>,
): TowerShape {
  return {
    ...NO_TEXT,
    name: "encoder",
    hidden,
    positions: 1,
    layers,
    otherParameters: 0,
    ...changes,
  };
}

const one = (layer: StageLayer): LayerRun => ({ count: 1, layer });

function mlpOf(config: ModelConfig, width: number): MlpShape {
  return {
    width,
    gated: false,
    activation: activationOf(config, "gelu"),
    bias: true,
    fused: false,
  };
}

/** Liu et al. 2021: windows whose rows attend to each other, and 2 x 2 rows that become one after each stage. */
function readSwin(config: ModelConfig): StageRead {
  const first = config.size("embed_dim");
  const heads = config.sizes("num_heads");
  const depths = config.sizes("depths");
  const stages = stagesOf(
    config,
    depths.map((_, index) => first * 2 ** index),
  );
  const window = config.count(7, "window_size") || 7;
  const bias = config.flag(true, "qkv_bias");
  const start = patches(config, first);
  const layers: LayerRun[] = [{ ...one(start), isPart: true }];
  let { side } = start;
  for (const [index, { depth, hidden }] of stages.entries()) {
    const ownHeads = heads[index] ?? 0;
    if (ownHeads === 0 || hidden % ownHeads !== 0) {
      throw invalidModel(config.source, `${ownHeads} heads do not divide a width of ${hidden}`);
    }
    const attention = plainAttention(ownHeads, hidden, {
      bias,
      ...{ scoreBias: "relative", fusesBias: true },
    });
    const width = Math.floor(config.fraction(4, "mlp_ratio") * hidden);
    const layer = plainLayer(attention, width, {
      mlp: mlpOf(config, width),
      dropout: config.fraction(0, "hidden_dropout_prob") > 0,
      attentionDropout: config.fraction(0, "attention_probs_dropout_prob") > 0,
    });
    const own = { kind: "stage", side, hidden, inputSide: side, inputHidden: hidden } as const;
    layers.push({
      count: depth,
      layer: {
        ...own,
        block: "windows",
        layer,
        window: Math.min(window, side),
        tableRows: (2 * window - 1) ** 2,
      },
    });
    if (index < stages.length - 1) {
      side = Math.ceil(side / 2);
      layers.push({ ...one({ ...own, block: "merging", side, hidden: 2 * hidden }), isPart: true });
    }
  }
  const tower = towerOf(layers, first * 2 ** (stages.length - 1), {
    finalNorm: LAYER_NORM,
    // Positions of the patches, where they have any of their own.
    otherParameters: config.flag(false, "use_absolute_embeddings") ? start.side ** 2 * first : 0,
  });
  return { tower, head: headOf(config) };
}

function headOf(config: ModelConfig): HeadShape {
  return config.architecture.endsWith("Model")
    ? NO_HEAD
    : { ...CLASS_HEAD, outputs: labelsOf(config, 2) };
}

/** Liu et al. 2022: a convolution of each channel and an MLP; the second version normalizes the MLP's activations. */
function readConvNext(config: ModelConfig): StageRead {
  const isSecond = config.family === "convnextv2";
  const stages = stagesOf(config, config.sizes("hidden_sizes"));
  const scaled = !isSecond && config.fraction(1e-6, "layer_scale_init_value") > 0;
  const start = patches(config, (stages[0] as Stage).hidden);
  const layers: LayerRun[] = [{ ...one(start), isPart: true }];
  let before: StageLayer = start;
  for (const [index, { depth, hidden }] of stages.entries()) {
    if (index > 0) {
      before = {
        kind: "stage",
        block: "reduction",
        side: Math.max(1, Math.floor(before.side / 2)),
        hidden,
        inputSide: before.side,
        inputHidden: before.hidden,
      };
      layers.push({ ...one(before), isPart: true });
    }
    const { side } = before;
    const layer = plainLayer(null, 4 * hidden, {
      mlp: mlpOf(config, 4 * hidden),
      scales: scaled ? 1 : 0,
    });
    layers.push({
      count: depth,
      layer: {
        kind: "stage",
        block: "depthwise",
        side,
        hidden,
        inputSide: side,
        inputHidden: hidden,
        layer,
        ...(isSecond ? { responseNorm: true } : {}),
      },
    });
  }
  layers.push({ ...one({ ...before, block: "pool", side: 1 }), isPart: true });
  return { tower: towerOf(layers, before.hidden, { finalNorm: LAYER_NORM }), head: headOf(config) };
}
