/**
 * The memory that a serving engine allocates.
 *
 * | engine | cache |
 * |---|---|
 * | transformers | grows with the sequences: context x concurrency |
 * | vllm | all that is left of `gpu_memory_utilization` x device after weights, the profiled peak of one forward pass and CUDA graphs, in blocks of 16 tokens |
 * | sglang | all that is left of `mem_fraction_static` x free memory after weights; activations and graphs lie outside |
 * | tgi | 95 % of what weights and a prefill leave; of encoder-decoders and state spaces, as transformers |
 * | llama.cpp | the whole context of each sequence at start (`-c`), plus a compute buffer for `-ub` 512 tokens in fp32, with their logits |
 */
import { formatBytes } from "../../model/base/numbers.js";
import type { Bytes } from "../../model/base/units.js";
import type { PlanPartJson, PlanPartName } from "../../model/documents/plan_document.js";
import { modelTape, type StageChoice } from "../blocks/model_tape.js";
import { allocatorParts, figureOf, type PartSketch, part } from "../device/allocator.js";
import { quantizationOf } from "../job/loading.js";
import { bytesOfCompute, convertsFile, type Engine, type ServeOptions } from "../job/options.js";
import { layerCount } from "../shape/layers.js";
import type { ModelShape } from "../shape/model_shape.js";
import { countedParameters, productsOf, productWords } from "../tape/products.js";
import type { Tape } from "../tape/tape.js";
import type { AllocationTrace } from "../tape/trace.js";
import { gapsOfPrefill } from "../train/replay.js";
import {
  bytesOfNextToken,
  bytesOfSequence,
  type CacheShape,
  cacheFormat,
  cacheShape,
} from "./attention_cache.js";
import { blockGroups, blocksOfRequests, inGroups, tokensOfBlocks } from "./block_groups.js";
import { type CacheRoom, shareOf } from "./cache_room.js";
import { passOf, servingRules, weightsTape } from "./forward_pass.js";
import { placedWeights } from "./llama_cpp.js";
import { fillsShare, generates, hasGraphs, servedShape } from "./served_by.js";
import { stagesOf } from "./stages.js";

const BLOCK_TOKENS: Readonly<Record<Engine, number>> = {
  transformers: 1,
  vllm: 16,
  sglang: 1,
  tgi: 1,
  "llama.cpp": 256,
};
/** Bytes of a sampled logit: fp32, probabilities, sorted copies. */
const SAMPLED_LOGIT_BYTES = 16;
const UNKNOWN_FACTOR = 2.5;

export interface ServingPlan {
  readonly tape: Tape;
  readonly parts: PlanPartJson[];
  readonly kvBytesPerToken: Bytes;
  /** Layers with a window: tokens that they keep, and bytes of one. */
  readonly windows: readonly { readonly tokens: number; readonly bytesPerToken: Bytes }[];
  /** Of the cache, at any length. */
  readonly bytesPerSequence: Bytes;
  /** Weights that stay in host memory. */
  readonly hostBytes: Bytes;
  /** Of an engine that gives its cache all that is left: what that holds. null for others, whose cache grows. */
  readonly room: CacheRoom | null;
  readonly parameters: number;
  /** "pipeline stage 1 of 4": the rank of which the figures are; "" for one. */
  readonly rank: string;
}

/** Of the rank of a pipeline that has least room for its cache, or needs most. */
export function planServing(whole: ModelShape, options: ServeOptions): ServingPlan {
  const model = servedShape(whole, options);
  const seen = new Set<string>();
  const [first, ...others] = stagesOf(model, options)
    .filter(({ index, count, layers: [from, to] }) => {
      // Ranks between the first and the last that have as many layers are alike, but for what their layers are.
      const kind = `${index === 0} ${index === count - 1} ${isUniform(model) ? to - from : index}`;
      const isNew = !seen.has(kind);
      seen.add(kind);
      return isNew;
    })
    .map((stage) => planStage(model, options, stage));
  return others.reduce(
    (worst, each) => (needsMore(each, worst, options) ? each : worst),
    first as ServingPlan,
  );
}

function isUniform({ towers }: ModelShape): boolean {
  return towers.at(-1)?.layers.length === 1;
}

function needsMore(one: ServingPlan, other: ServingPlan, { context }: ServeOptions): boolean {
  if (one.room === null || other.room === null) {
    return figureOf(one.parts, "device").bytes > figureOf(other.parts, "device").bytes;
  }
  const [held, most] = [one.room.sequencesOf(context), other.room.sequencesOf(context)];
  return held === most ? one.room.left < other.room.left : held < most;
}

function planStage(
  model: ModelShape,
  options: ServeOptions,
  stage: Required<StageChoice>,
): ServingPlan {
  const rules = servingRules(model, options);
  const { tape } = modelTape(model, rules, stage);
  const pass = passOf(model, options, { rules, tape, layers: stage.layers });
  const factor = model.known ? 1 : UNKNOWN_FACTOR;
  const isLlamaCpp = options.engine === "llama.cpp";
  const placed = isLlamaCpp
    ? placedWeights(model, options, { tape: weightsTape(model, options), stage })
    : null;
  const file = keepsFile(model, options);
  const weights =
    placed?.device ??
    (file ? fileBytes(model, options, stage) : undefined) ??
    tape.parameters.reduce((sum, each) => sum + each.bytes, 0);
  const sampler = samplerBytes(model, options, stage);
  const forward = Math.max(pass.bytes, sampler);
  const parts = [
    part("weights", weights, 0.006 * factor, {
      formula: placed?.formula ?? weightsFormula(model, options, tape),
      source: "the configuration's shapes; each matrix counted",
    }),
    part("temporaries", forward, 0.35 * factor, {
      formula:
        forward > pass.bytes
          ? `the sampler of ${counted(options.maxSequences, "sequence")}, after a pass over ${counted(options.batchedTokens, "token")}`
          : pass.formula,
      source: isLlamaCpp
        ? "lifetimes of all tensors of a batch; llama.cpp's compute buffer"
        : "lifetimes of all tensors of a prefill",
    }),
  ];
  if (hasGraphs(model, options)) {
    parts.push(
      part("cuda graphs", graphBytes(model, stage), 0.8, {
        formula: `memory pools of the captured batch sizes: 180 MiB + ${graphLayers(model, stage)} layers x 10 MiB`,
        source: `${options.engine === "vllm" ? "vLLM's log" : `assumed as in vLLM's log, because ${options.engine} publishes no figure`}: 0.5 to 1.3 GiB for 8e9 to 70e9 parameters`,
      }),
    );
  }
  const replayed =
    options.engine === "transformers"
      ? replayedGaps(tape, pass.trace, options, pass.peakBytes)
      : null;
  const hostBytes = placed?.host ?? 0;
  const rank = stage.count === 1 ? "" : `pipeline stage ${stage.index} of ${stage.count}`;
  return { ...withCache(model, options, { parts, tape, replayed, stage }), hostBytes, rank };
}

function replayedGaps(
  tape: Tape,
  trace: AllocationTrace,
  { gpu }: ServeOptions,
  passBytes: Bytes,
): number {
  const weights = tape.parameters.map(({ bytes }) => bytes).filter((bytes) => bytes > 0);
  const all = weights.reduce((sum, bytes) => sum + bytes, 0) + passBytes;
  const room = gpu.memoryBytes - gpu.contextBytes;
  return gapsOfPrefill(weights, trace, all < room ? room : Number.POSITIVE_INFINITY);
}

/** Measured on vLLM's logs: a fixed share for the graphs themselves, and the buffers that they pin. */
function graphBytes(model: ModelShape, stage: Required<StageChoice>): Bytes {
  const MIB = 2 ** 20;
  return (180 + 10 * graphLayers(model, stage)) * MIB;
}

/** Layers of the decoder: encoders of images and of speech run outside the graphs. */
function graphLayers(
  { towers }: ModelShape,
  { count, layers: [from, to] }: Required<StageChoice>,
): number {
  const tower = towers.at(-1);
  return count > 1 || tower === undefined ? to - from : layerCount(tower);
}

function withCache(
  model: ModelShape,
  options: ServeOptions,
  {
    parts,
    tape,
    replayed,
    stage,
  }: {
    parts: PlanPartJson[];
    tape: Tape;
    replayed: number | null;
    stage: Required<StageChoice>;
  },
): Omit<ServingPlan, "hostBytes" | "rank"> {
  const { engine, gpu } = options;
  const format = cacheFormat(model, options, stage.layers);
  const own = cacheShape(model, format);
  const blocks = engine === "vllm" ? blockGroups(model, format, options.batchedTokens) : null;
  const cache = blocks === null ? own : inGroups(own, blocks);
  const block = Math.max(BLOCK_TOKENS[engine], blocks?.tokens ?? 0);
  const oneSequence = bytesOfSequence(cache, options.context, block);
  const wanted = oneSequence * options.concurrency;
  const outside = (options.tensor > 2 ? 420 : options.tensor > 1 ? 250 : 0) * 2 ** 20;
  const others = [...parts, ...allocatorParts(parts, { gpu, threads: 1, outsideBytes: outside })];
  const preallocates = fillsShare(model, engine);
  const share = shareOf(options, others, model.known);
  const { left, formula: roomFormula } = share;
  const room = Math.max(0, left);
  const perToken = bytesOfNextToken(cache);
  const sketch: PartSketch = {
    formula: `${counted(options.concurrency, "sequence")} x ${cacheWords(cache, options, block)}`,
    source: "keys and values of each layer; one latent row with MLA",
  };
  const add = (name: PlanPartName, bytes: Bytes, how: PartSketch): void => {
    if (bytes > 0) {
      parts.push(part(name, bytes, 0.002, how));
    }
  };
  const isCut = preallocates && wanted > room;
  add("kv cache", isCut ? room : wanted, {
    ...sketch,
    formula: `${sketch.formula}${isCut ? `, cut to the room: ${roomFormula}` : ""}`,
    ...(isCut ? { interval: { low: share.low, high: Math.min(wanted, share.high) } } : {}),
  });
  if (preallocates && oneSequence > 0) {
    add("unused kv cache", room - Math.min(wanted, room), {
      formula: `${roomFormula}, less the cache above`,
      source: `${engine} gives its cache all memory that is left of its share`,
      interval: { low: share.low - wanted, high: share.high - wanted },
    });
  }
  const all = [
    ...parts,
    ...allocatorParts(
      parts.filter((each) => !preallocates || !each.part.includes("cache")),
      {
        gpu,
        threads: 1,
        outsideBytes: outside,
        isLlamaCpp: engine === "llama.cpp",
        ...(replayed === null ? {} : { replayedGaps: replayed }),
      },
    ),
  ];
  const bytesOf = (tokens: number, sequences: number): Bytes =>
    blocks === null
      ? sequences * bytesOfSequence(cache, tokens, block)
      : blocksOfRequests(blocks, tokens, sequences) * blocks.bytes;
  return {
    tape,
    parts: all,
    kvBytesPerToken: Math.round(perToken),
    windows: cache.windows.map(({ window, bytesPerToken }) => ({
      tokens: Math.ceil(window / block) * block,
      bytesPerToken: Math.round(bytesPerToken),
    })),
    bytesPerSequence: Math.round(cache.bytesPerSequence),
    parameters: tape.parameters.reduce((sum, each) => sum + each.elements, 0),
    room: preallocates
      ? {
          bytes: room,
          left,
          formula: roomFormula,
          bytesOf,
          tokens:
            blocks !== null
              ? tokensOfBlocks(blocks, Math.floor(room / blocks.bytes))
              : perToken > 0
                ? Math.floor(room / perToken / block) * block
                : 0,
          ...(blocks === null ? {} : { blocks }),
          sequencesOf: (tokens) => {
            const first = bytesOf(tokens, 1);
            const next = bytesOf(tokens, 2) - first;
            const all = next > 0 ? 1 + Math.floor((room - first) / next) : Number.POSITIVE_INFINITY;
            return room < first ? 0 : all;
          },
        }
      : null,
  };
}

function counted(count: number, what: string): string {
  return `${count} ${count === 1 ? what : `${what}s`}`;
}

/**
 * "2048 tokens x 131072 B", with what windows, an encoder and states add. The product is the cache of one sequence: tokens
 * are those that are held, in whole blocks.
 */
function cacheWords(cache: CacheShape, { context }: ServeOptions, block: number): string {
  const product = (tokens: number, of: string, bytes: Bytes): string[] =>
    bytes > 0 ? [`${Math.ceil(tokens / block) * block} tokens${of} x ${Math.round(bytes)} B`] : [];
  const state = cache.bytesPerSequence;
  const words = [
    ...product(context, "", cache.bytesPerToken),
    ...cache.windows.flatMap(({ window, bytesPerToken }) =>
      product(Math.min(context, window), " in layers with a window", bytesPerToken),
    ),
    ...product(context, " of the encoder", cache.bytesPerSourceToken),
    ...(state > 0 ? [`${Math.round(state)} B at any length`] : []),
  ];
  return words.length > 1 ? `(${words.join(" + ")})` : words.join("");
}

/**
 * The last rank of a pipeline alone samples, after its pass, whose last rows it still has (`profile_run` and
 * `_dummy_sampler_run` of vLLM).
 */
function samplerBytes(
  model: ModelShape,
  { engine, dtype, batchedTokens, maxSequences }: ServeOptions,
  { index, count }: StageChoice,
): Bytes {
  const { head, towers } = model;
  const rows = batchedTokens * (towers.at(-1)?.hidden ?? 0) * bytesOfCompute(dtype);
  return fillsShare(model, engine) && generates(model) && index === count - 1
    ? rows + maxSequences * head.outputs * SAMPLED_LOGIT_BYTES
    : 0;
}

/** Whether each tensor stays in the type that a GGUF file has. */
function keepsFile(model: ModelShape, options: ServeOptions): boolean {
  return (
    options.quantize === null &&
    !convertsFile(model, options) &&
    model.stored.fileBytes !== undefined
  );
}

/** Of each device: the layers of its stage, the table of tokens on the first, and the rest on the last. */
function fileBytes(
  { stored, head }: ModelShape,
  { tensor, pipeline }: ServeOptions,
  stage: Required<StageChoice>,
): Bytes {
  const { fileBytes: all = 0, fileParts } = stored;
  if (pipeline === 1 || fileParts === undefined) {
    return all / tensor;
  }
  const sum = (bytes: readonly Bytes[]): Bytes => bytes.reduce((total, each) => total + each, 0);
  const { embeddingBytes: table, layerBytes } = fileParts;
  const isLast = stage.index === stage.count - 1;
  const output = isLast ? all - table - sum(layerBytes) + (head.tied ? table : 0) : 0;
  const input = stage.index === 0 ? table : 0;
  return (input + sum(layerBytes.slice(...stage.layers)) + output) / tensor;
}

function weightsFormula(model: ModelShape, options: ServeOptions, tape: Tape): string {
  const elements = tape.parameters.reduce((sum, each) => sum + each.elements, 0);
  const quantization = quantizationOf(model, options);
  if (keepsFile(model, options)) {
    return `${countedParameters(elements)} parameters, each tensor in the type of the file`;
  }
  const words =
    quantization === null
      ? options.dtype
      : `${quantization.method === "mxfp4" ? "mxfp4" : quantization.dtype}, ${quantization.bytesPerWeight.toFixed(3)} B a weight of ${quantization.expertsAlone === true ? "the experts" : "linear layers"}${quantization.bytesPerMatrix === undefined ? "" : `, and codebooks of ${formatBytes(quantization.bytesPerMatrix)} a matrix`}`;
  return `${productWords(
    productsOf(tape.parameters, ({ bytes }) => bytes),
    "parameters",
  )}; in ${words}`;
}
