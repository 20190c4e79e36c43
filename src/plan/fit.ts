/** What fits on a device: the largest batch, the longest sequence, and a table of methods and devices. */
import { formatBytes, formatExactCount } from "../model/base/numbers.js";
import type { PlanFitJson, PlanJson } from "../model/documents/plan_document.js";
import { engineOf, libraryOf, type PlanRequest, planOptions, withJobConfig } from "./defaults.js";
import { figureOf } from "./device/allocator.js";
import type { Gpu } from "./device/gpus.js";
import { requireDivisible } from "./divisible.js";
import { loadsWide } from "./job/loading.js";
import { longestFor } from "./job/longest.js";
import {
  canDequantize,
  convertsFile,
  type PlanOptions,
  type ServeOptions,
  type TrainOptions,
} from "./job/options.js";
import { largest } from "./largest.js";
import { unlessRefused } from "./refusal.js";
import { blocksOfRequest } from "./serve/block_groups.js";
import type { CacheRoom } from "./serve/cache_room.js";
import { planServing } from "./serve/plan_serving.js";
import { readsText } from "./shape/layers.js";
import type { ModelShape } from "./shape/model_shape.js";
import { Footprints, KnownFootprints } from "./train/footprint.js";
import { LARGEST_SEARCHED } from "./wording.js";

const LARGEST_BATCH = LARGEST_SEARCHED;
const LONGEST = LARGEST_SEARCHED;
/** Sequences are searched in steps of so many tokens. */
const STEP = 64;

/** Each figure is that of a plan of its own: a plan of `maxBatch` fits, and one more does not. */
export function fitOf(
  model: ModelShape,
  request: PlanRequest,
  {
    known = new KnownFootprints(),
    isRow = false,
  }: { known?: KnownFootprints; isRow?: boolean } = {},
): PlanJson["fits"] {
  const options = planOptions(model, request);
  const limit = longestOf(model, options);
  if (options.mode === "serve") {
    return servingFit(model, options, { limit, isRow });
  }
  const at = (batch: number, sequence: number): TrainOptions =>
    planOptions(
      model,
      withJobConfig({ mode: "train", train: { batch, sequence } }, request),
    ) as TrainOptions;
  const { gpu } = options;
  const footprints = new Footprints(model, known);
  const room = gpu.memoryBytes - gpu.contextBytes;
  // Close to the limit the allocator returns what is free: tensors decide first.
  const fits = (job: TrainOptions): boolean =>
    footprints.allocatedBytes(job) <= room + ROUNDING &&
    footprints.deviceBytes(job) <= gpu.memoryBytes;
  const beyond = new Beyond();
  const search = (
    most: number,
    jobOf: (value: number) => TrainOptions,
    onHole: (found: number) => void,
  ): number =>
    largest(most, {
      fits: (value) => fits(jobOf(value)),
      shareOf: (value) => footprints.allocatedBytes(jobOf(value)) / room,
      isRow,
      onHole,
    });
  const fit: PlanJson["fits"] = {
    deviceBytes: gpu.memoryBytes,
    fits: fits(options),
    maxBatch: search(LARGEST_BATCH, (batch) => at(batch, options.sequence), beyond.batch),
    maxSequence: longestLength(model, limit, (most) =>
      search(
        most,
        (units) => at(options.batch, Math.min(limit, units * STEP)),
        (units) => beyond.sequence(Math.min(limit, units * STEP)),
      ),
    ),
  };
  return isRow ? fit : beyond.named(fit, options.batch, readsText(model) ? options.sequence : 0);
}

/** Sizes that fit although smaller ones do not: gaps of the caching allocator come and go with sizes. */
class Beyond {
  #batch = 0;
  #sequence = 0;
  readonly batch = (found: number): void => {
    this.#batch = Math.max(this.#batch, found);
  };
  readonly sequence = (found: number): void => {
    this.#sequence = Math.max(this.#sequence, found);
  };

  /** @param batch of the plan, which may itself be such a size. @param sequence 0: none */
  named(fit: PlanJson["fits"], batch: number, sequence: number): PlanJson["fits"] {
    const { fits, maxBatch, maxSequence } = fit;
    const sizes = [
      ["sequences", Math.max(this.#batch, fits ? batch : 0), maxBatch],
      ["tokens", Math.max(this.#sequence, fits ? sequence : 0), maxSequence],
    ] as const;
    const words = sizes
      .filter(([, found, most]) => found > most)
      .map(
        ([what, found, most]) =>
          `${formatExactCount(found)} ${what} also fit, but not every ${what === "tokens" ? "length" : "number"} between ${formatExactCount(most)} and ${formatExactCount(found)}`,
      );
    return words.length === 0
      ? fit
      : {
          ...fit,
          beyond: `${words.join("; ")}: the caching allocator's gaps come and go with the sizes of tensors`,
        };
  }
}

/** Parts are whole bytes: their sum may differ by so much from that of the tensors. */
const ROUNDING = 1024;

function longestOf(model: ModelShape, options: PlanOptions): number {
  const longest = longestFor(model, options);
  return longest === 0 ? LONGEST : Math.min(LONGEST, longest);
}

/** In whole steps, and at most what the model was made for; 0 for models without a sequence. */
function longestLength(model: ModelShape, limit: number, search: (most: number) => number): number {
  return readsText(model) ? Math.min(limit, STEP * search(Math.ceil(limit / STEP))) : 0;
}

function servingFit(
  model: ModelShape,
  options: ServeOptions,
  { limit, isRow }: { limit: number; isRow: boolean },
): PlanJson["fits"] {
  const { gpu, context, concurrency } = options;
  const { parts, room } = planServing(model, options);
  const deviceFits = figureOf(parts, "device").bytes <= gpu.memoryBytes;
  if (room !== null) {
    const sequences = Math.min(LARGEST_BATCH, room.bytes > 0 ? room.sequencesOf(context) : 0);
    // Of more sequences than run at once, the others wait.
    const running = options.engine === "vllm" ? options.maxSequences : Number.POSITIVE_INFINITY;
    const search = (most: number): number =>
      largest(most, {
        fits: (units) =>
          room.sequencesOf(Math.min(limit, units * STEP)) >= Math.min(concurrency, running),
        shareOf: (units) => concurrency / room.sequencesOf(units * STEP),
        isRow,
      });
    const fits = deviceFits && sequences >= Math.min(concurrency, running);
    return {
      deviceBytes: gpu.memoryBytes,
      fits,
      ...(fits || !deviceFits ? {} : { reason: reasonOf(room, options) }),
      maxBatch: deviceFits ? Math.min(sequences, running) : 0,
      maxSequence: deviceFits && room.bytes > 0 ? longestLength(model, limit, search) : 0,
    };
  }
  const bytesOf = (changed: Partial<ServeOptions>): number =>
    figureOf(planServing(model, { ...options, ...changed }).parts, "device").bytes;
  const beyond = new Beyond();
  const search = (
    most: number,
    changeOf: (value: number) => Partial<ServeOptions>,
    onHole: (found: number) => void,
  ): number =>
    largest(most, {
      fits: (value) => bytesOf(changeOf(value)) <= gpu.memoryBytes,
      shareOf: (value) => bytesOf(changeOf(value)) / gpu.memoryBytes,
      isRow,
      onHole,
    });
  const fit: PlanJson["fits"] = {
    deviceBytes: gpu.memoryBytes,
    fits: deviceFits,
    maxBatch: search(LARGEST_BATCH, (sequences) => ({ concurrency: sequences }), beyond.batch),
    maxSequence: longestLength(model, limit, (most) =>
      search(
        most,
        (units) => ({ context: Math.min(limit, units * STEP) }),
        (units) => beyond.sequence(Math.min(limit, units * STEP)),
      ),
    ),
  };
  return isRow ? fit : beyond.named(fit, concurrency, readsText(model) ? context : 0);
}

/** "1 % of 79.2 GiB, less 15.4 GiB of weights, leaves nothing; 1 sequence of 2,048 tokens takes 256 MiB" */
function reasonOf(room: CacheRoom, { context, concurrency, engine }: ServeOptions): string {
  const left = room.bytes > 0 ? formatBytes(room.bytes) : "nothing";
  const sequences = `${formatExactCount(concurrency)} ${concurrency === 1 ? "sequence" : "sequences"}`;
  const taken = room.bytesOf(context, concurrency);
  if (taken === 0) {
    return `the share of ${engine}, ${room.formula}, is ${left}`;
  }
  return `the share of ${engine} for the cache, ${room.formula}, is ${left}; ${sequences} of ${formatExactCount(context)} tokens ${concurrency === 1 ? "takes" : "take"} ${formatBytes(taken)}${prefillWords(room, context)}`;
}

/** Of a prefill, layers with a window keep the tokens of a pass beside those of the window. */
function prefillWords({ blocks }: CacheRoom, context: number): string {
  if (blocks === undefined) {
    return "";
  }
  const added =
    blocksOfRequest(blocks, context) - blocksOfRequest({ ...blocks, batchedTokens: 1 }, context);
  return added === 0
    ? ""
    : `, of which ${formatBytes(added * blocks.bytes)} are for the prefill of one sequence, where layers with a window also keep the ${formatExactCount(blocks.batchedTokens)} tokens of a pass`;
}

/**
 * The rows of {@link fitTable}, each searched for when it is called; null for a method that is refused on the device.
 * @param shared by method: for calls with one device each
 */
export function fitRows(
  model: ModelShape,
  request: PlanRequest,
  gpus: readonly Gpu[],
  shared = new Map<string, KnownFootprints>(),
): (() => PlanFitJson | null)[] {
  return gpus.flatMap((gpu) =>
    jobsOf(model, { ...request, gpu }).map(({ name, job }) => () => {
      const known = shared.get(name) ?? new KnownFootprints();
      shared.set(name, known);
      return unlessRefused(() => {
        requireDivisible(model, planOptions(model, job));
        return { device: gpu.name, method: name, ...fitOf(model, job, { known, isRow: true }) };
      });
    }),
  );
}

/** Each method on each device, with the request's other options. */
export function fitTable(...of: Parameters<typeof fitRows>): PlanFitJson[] {
  return fitRows(...of)
    .map((row) => row())
    .filter((row) => row !== null);
}

interface Job {
  readonly name: string;
  readonly job: PlanRequest;
}

/** On the request's own device, which decides how some checkpoints are loaded. */
function jobsOf(model: ModelShape, request: PlanRequest & { readonly gpu: Gpu }): Job[] {
  if (request.mode === "serve") {
    return [{ name: engineOf(model, request), job: request }];
  }
  const { quantize, ...rest } = request;
  const checkpointed = (name: string, changes: Partial<PlanRequest>): Job[] =>
    (["none", "full"] as const).map((checkpointing) => ({
      name: checkpointing === "none" ? name : `${name}, checkpointing`,
      job: withJobConfig(
        { mode: "train", ...changes, train: { ...changes.train, checkpointing } },
        rest,
      ),
    }));
  const { mode, gpu } = request;
  const library = libraryOf(request);
  const stored = convertsFile(model, { mode }) ? null : model.stored.quantization;
  return [
    ...(stored === null || canDequantize(stored)
      ? [
          ...checkpointed("full", { method: "full" }),
          ...checkpointed("full, 8-bit AdamW", {
            method: "full",
            train: { optimizer: "adamw8bit" },
          }),
        ]
      : []),
    ...checkpointed("lora", { method: "lora" }),
    ...(stored !== null && loadsWide(model, { mode, gpu, library }) !== null
      ? []
      : checkpointed("qlora", {
          method: "qlora",
          ...(quantize === undefined ? {} : { quantize }),
        })),
  ];
}
