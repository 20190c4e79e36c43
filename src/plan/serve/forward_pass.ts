/** One forward pass of an engine: its rules, and what it needs beside weights and cache. */
import type { Bytes } from "../../model/base/units.js";
import { firstTokenTape, modelTape, readsEncoder } from "../blocks/model_tape.js";
import type { BlockRules } from "../blocks/rules.js";
import { expertDivision } from "../job/experts.js";
import { quantizationOf } from "../job/loading.js";
import { bytesOfCompute, type ServeOptions } from "../job/options.js";
import { hasWholeTable, undividedBy } from "../job/tensor_plan.js";
import { readsText } from "../shape/layers.js";
import type { ModelShape } from "../shape/model_shape.js";
import { NO_HEAD } from "../shape/parts.js";
import { simulateStep } from "../tape/simulate.js";
import type { Tape } from "../tape/tape.js";
import { AllocationTrace } from "../tape/trace.js";
import { masksOf } from "../train/block_rules.js";
import {
  bytesOfSequence,
  type CacheFormat,
  cacheFormat,
  cacheShape,
  MICRO_BATCH,
} from "./attention_cache.js";

const MOST_TOKENS = 2 ** 24;

export interface Pass {
  /** Beside weights and the cache. */
  readonly bytes: Bytes;
  readonly formula: string;
  readonly trace: AllocationTrace;
  readonly peakBytes: Bytes;
}

function simulated(tape: Tape): { trace: AllocationTrace; peakBytes: Bytes } {
  const trace = new AllocationTrace();
  const { peak } = simulateStep(
    tape,
    {
      checkpointing: "none",
      gradientBytesOf: () => 0,
      gradientsStay: false,
      gradientsTwice: false,
      gradientsConsumed: false,
      offloadsInputs: false,
      communicationOf: () => 0,
      fsdpVersion: null,
    },
    trace,
  );
  return { trace, peakBytes: peak.bytes };
}

export function passOf(
  model: ModelShape,
  options: ServeOptions,
  { rules, tape, layers }: { rules: BlockRules; tape: Tape; layers: CacheFormat["layers"] },
): Pass {
  const tower = model.towers.at(-1);
  if (tower !== undefined && readsEncoder(tower) && model.towers.length > 1) {
    return encodedPass(model, options, rules);
  }
  const { trace, peakBytes } = simulated(tape);
  return {
    // Keys and values are a part of their own; those of layers with a window stay whole until the first token.
    bytes: Math.max(
      peakBytes - tape.cachedBytes + outsideWindows(model, options, layers),
      scoreBytes(model, options),
    ),
    formula: `intermediate results of one forward pass over ${readWords(model, options, rules)}`,
    trace,
    peakBytes,
  };
}

/** "2048 tokens", "8 images of 197 positions". */
function readWords(model: ModelShape, options: ServeOptions, { batch }: BlockRules): string {
  if (readsText(model)) {
    return `${tokensOfPass(options)} tokens`;
  }
  const positions = Math.max(0, ...model.towers.map((tower) => Number(tower.positions)));
  const images = `${batch} ${batch === 1 ? "image" : "images"}`;
  return positions > 1 ? `${images} of ${positions} positions` : images;
}

/** The encoder runs before anything is cached, then the decoder token by token. */
function encodedPass(model: ModelShape, options: ServeOptions, rules: BlockRules): Pass {
  const encoder: ModelShape = { ...model, towers: model.towers.slice(0, -1), head: NO_HEAD };
  const encoding = simulated(modelTape(encoder, rules, { index: 0, count: 1 }).tape);
  const { tape } = firstTokenTape(model, rules);
  const decoding = simulated(tape);
  const cache = cacheShape(model, cacheFormat(model, options));
  // Of engines that allocate the cache at start, it exists beside the encoder's results.
  const later =
    options.engine === "transformers"
      ? options.concurrency * bytesOfSequence(cache, options.context)
      : 0;
  const first = decoding.peakBytes - tape.cachedBytes;
  const isEncoder = encoding.peakBytes - later > first;
  const read = model.towers.at(-2)?.positions;
  const tokens = read === "sequence" ? tokensOfPass(options) : (read ?? 0) * rules.batch;
  return {
    bytes: Math.max(encoding.peakBytes - later, first),
    formula: isEncoder
      ? `intermediate results of the encoder over ${tokens} positions${later > 0 ? ", less the cache, which is made after them" : ""}`
      : `the encoder's result of ${tokens} positions, and intermediate results of one token`,
    ...(isEncoder ? encoding : decoding),
  };
}

/**
 * Without its flash attention, llama.cpp's compute buffer holds the scores of a batch, in fp32, beside six rows of the
 * hidden size: residual, norm, queries, keys, values, result.
 */
function scoreBytes(model: ModelShape, options: ServeOptions): Bytes {
  const tower = model.towers.at(-1);
  if (options.engine !== "llama.cpp" || options.attention !== "eager" || tower === undefined) {
    return 0;
  }
  const heads = Math.max(
    0,
    ...tower.layers.map(({ layer }) =>
      layer.kind === "transformer" ? (layer.attention?.heads ?? 0) : 0,
    ),
  );
  const row = (heads / options.tensor) * options.context + 6 * tower.hidden;
  return row * tokensOfPass(options) * 4;
}

/** In the types of the file or the quantization: llama.cpp's activations are in fp32, whatever the weights are. */
export function weightsTape(model: ModelShape, options: ServeOptions): Tape {
  const rules = servingRules(model, options);
  const bytes = bytesOfCompute(options.dtype);
  return modelTape(
    model,
    { ...rules, weightBytes: bytes, quantization: quantizationOf(model, options) },
    { index: 0, count: 1 },
  ).tape;
}

/** A slice of the prompt's keys keeps all of them alive: cached windows are whole until the first token is appended. */
function outsideWindows(
  model: ModelShape,
  options: ServeOptions,
  layers: CacheFormat["layers"],
): Bytes {
  const { engine, context, concurrency } = options;
  if (engine !== "transformers") {
    return 0;
  }
  const { windows } = cacheShape(model, {
    ...cacheFormat(model, options, layers),
    besideWindow: 0,
  });
  return windows.reduce(
    (sum, { window, bytesPerToken }) =>
      sum + concurrency * bytesPerToken * Math.max(0, context - window),
    0,
  );
}

function tokensOfPass({ engine, batchedTokens, context, concurrency }: ServeOptions): number {
  if (engine === "transformers") {
    return context * concurrency;
  }
  return engine === "llama.cpp" ? Math.min(context, MICRO_BATCH) : batchedTokens;
}

export function servingRules(model: ModelShape, options: ServeOptions): BlockRules {
  const { engine, context, concurrency, tensor } = options;
  const whole = engine === "transformers";
  const isLlamaCpp = engine === "llama.cpp";
  // ggml's activations are in fp32, and its products read quantized matrices as they are.
  const computeBytes = isLlamaCpp ? 4 : bytesOfCompute(options.dtype);
  const experts = expertDivision(options);
  const attention = whole ? options.attention : "flash";
  return {
    training: false,
    batch: whole ? concurrency : 1,
    sequence: whole ? context : Math.min(tokensOfPass(options), MOST_TOKENS),
    context: whole ? context : 0,
    computeBytes,
    weightBytes: computeBytes,
    autocast: false,
    quantization: isLlamaCpp ? null : quantizationOf(model, options),
    trainBase: false,
    adapter: null,
    inputNeedsGradient: false,
    attention,
    masks: masksOf({ attention, padded: options.padded, library: "transformers" }, concurrency),
    repeatsGroups: false,
    onCpu: false,
    fusesGroups: computeBytes < 4 && !options.gpu.old,
    cachesKeys: whole,
    headRows: isLlamaCpp ? "all" : "last",
    holdsInputs: !isLlamaCpp,
    loss: "full",
    compiled: false,
    lossCompiled: false,
    fusedGelu: engine !== "transformers",
    fusedProjection: engine !== "transformers",
    lossChunkRows: null,
    holdsLogits: "made",
    quantizedKeepsInput: false,
    dropout: false,
    tensorParallel: tensor,
    ...(whole ? { undivided: undividedBy(model.family) } : {}),
    castsInputs: false,
    flatGradients: false,
    gathersLogits: false,
    wholeTables: whole && hasWholeTable(model.family),
    sequenceParallel: false,
    experts,
    // transformers gathers the rows of all experts, also of absent ones.
    routedOver: whole ? 1 : tensor / experts.tensor,
    ...(whole || isLlamaCpp ? {} : { fusedExperts: true as const }),
    imbalance: 1,
  };
}
