/** What fits on a device: the largest batch, the longest sequence, and a table of methods and devices. */
import type { Bytes } from "../model/base/units.js";
import type { PlanFitJson, PlanJson } from "../model/documents/plan_document.js";
import { type PlanRequest, planOptions, withJobConfig } from "./defaults.js";
import { figureOf } from "./device/allocator.js";
import type { Gpu } from "./device/gpus.js";
import { requireDivisible } from "./divisible.js";
import type { ServeOptions, TrainOptions } from "./job/options.js";
import { planServing } from "./serve/plan_serving.js";
import type { ModelShape } from "./shape/model_shape.js";
import type { DevicePeak } from "./train/device_peak.js";
import { planTraining, trainingPeak } from "./train/plan_training.js";

const LARGEST_BATCH = 2 ** 20;
const LONGEST = 2 ** 20;
/** Sequences are searched in steps of so many tokens. */
const STEP = 64;

/** Each figure is that of a plan of its own: a plan of `maxBatch` fits, and one more does not. */
export function fitOf(
  model: ModelShape,
  request: PlanRequest,
  known: Rough = new Map(),
): PlanJson["fits"] {
  const options = planOptions(model, request);
  const limit = longestOf(model);
  if (options.mode === "serve") {
    return servingFit(model, options, limit);
  }
  const at = (batch: number, sequence: number): TrainOptions =>
    planOptions(
      model,
      withJobConfig({ mode: "train", train: { batch, sequence } }, request),
    ) as TrainOptions;
  const { gpu } = options;
  let latest: { readonly key: string; readonly peak: DevicePeak } | null = null;
  const peakOf = (job: TrainOptions, key: string): DevicePeak => {
    const peak = latest?.key === key ? latest.peak : trainingPeak(model, job);
    latest = { key, peak };
    return peak;
  };
  // Close to the limit the allocator returns what is free: tensors decide.
  const rough = (job: TrainOptions): Bytes => {
    const key = keyOf(job);
    const bytes = known.get(key) ?? peakOf(job, key).allocatedBytes;
    known.set(key, bytes);
    return bytes;
  };
  const room = gpu.memoryBytes - gpu.contextBytes;
  const fits = (job: TrainOptions): boolean =>
    rough(job) <= room + ROUNDING &&
    figureOf(planTraining(model, job, peakOf(job, keyOf(job))).parts, "device").bytes <=
      gpu.memoryBytes;
  const search = (most: number, jobOf: (value: number) => TrainOptions): number =>
    largest(most, {
      fits: (value) => fits(jobOf(value)),
      shareOf: (value) => rough(jobOf(value)) / room,
    });
  return {
    deviceBytes: gpu.memoryBytes,
    fits: fits(options),
    maxBatch: search(LARGEST_BATCH, (batch) => at(batch, options.sequence)),
    maxSequence: longestLength(limit, (most) =>
      search(most, (units) => at(options.batch, Math.min(limit, units * STEP))),
    ),
  };
}

/** Parts are whole bytes: their sum may differ by so much from that of the tensors. */
const ROUNDING = 1024;

/** What the tensors of a job depend on, of all that a search changes. */
function keyOf({ batch, sequence, gpu }: TrainOptions): string {
  return `${batch} ${sequence} ${gpu.old} ${gpu.workspaceBytes}`;
}

/** Rough figures by batch and length, shared by devices of one kind. */
type Rough = Map<string, Bytes>;

function longestOf({ longestSequence }: ModelShape): number {
  return longestSequence === 0 ? LONGEST : Math.min(LONGEST, longestSequence);
}

/** In whole steps, and at most what the model was made for. */
function longestLength(limit: number, search: (most: number) => number): number {
  return Math.min(limit, STEP * search(Math.ceil(limit / STEP)));
}

function servingFit(model: ModelShape, options: ServeOptions, limit: number): PlanJson["fits"] {
  const { gpu, context, concurrency } = options;
  const { parts, room } = planServing(model, options);
  const deviceFits = figureOf(parts, "device").bytes <= gpu.memoryBytes;
  if (room !== null) {
    const sequences = Math.min(LARGEST_BATCH, room.bytes > 0 ? room.sequencesOf(context) : 0);
    const search = (most: number): number =>
      largest(most, {
        fits: (units) => room.sequencesOf(Math.min(limit, units * STEP)) >= concurrency,
        shareOf: (units) => concurrency / room.sequencesOf(units * STEP),
      });
    return {
      deviceBytes: gpu.memoryBytes,
      fits: deviceFits && sequences >= concurrency,
      maxBatch: deviceFits ? sequences : 0,
      maxSequence: deviceFits && room.bytes > 0 ? longestLength(limit, search) : 0,
    };
  }
  const bytesOf = (changed: Partial<ServeOptions>): Bytes =>
    figureOf(planServing(model, { ...options, ...changed }).parts, "device").bytes;
  const search = (most: number, changeOf: (value: number) => Partial<ServeOptions>): number =>
    largest(most, {
      fits: (value) => bytesOf(changeOf(value)) <= gpu.memoryBytes,
      shareOf: (value) => bytesOf(changeOf(value)) / gpu.memoryBytes,
    });
  return {
    deviceBytes: gpu.memoryBytes,
    fits: deviceFits,
    maxBatch: search(LARGEST_BATCH, (sequences) => ({ concurrency: sequences })),
    maxSequence: longestLength(limit, (most) =>
      search(most, (units) => ({ context: Math.min(limit, units * STEP) })),
    ),
  };
}

interface Search {
  readonly fits: (value: number) => boolean;
  /** About how much of the device a value takes, as a share of it: where the search starts. */
  readonly shareOf: (value: number) => number;
}

/** The largest whole number up to `limit` that fits, next to one that does not; 0 where 1 does not fit. */
function largest(limit: number, { fits, shareOf }: Search): number {
  if (!fits(1)) {
    return 0;
  }
  const guess = guessed(limit, shareOf);
  let low = 1;
  let high = limit + 1;
  let step = 1;
  if (guess === 1 || fits(guess)) {
    low = guess;
    while (low < limit && fits(Math.min(limit, low + step))) {
      low = Math.min(limit, low + step);
      step *= 2;
    }
    high = Math.min(limit + 1, low + step);
  } else {
    high = guess;
    while (high - step > 1 && !fits(high - step)) {
      high -= step;
      step *= 2;
    }
    low = Math.max(1, high - step);
  }
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (fits(middle)) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

/** Doubles until it is too much, then interpolates. */
function guessed(limit: number, shareOf: (value: number) => number): number {
  let low = 1;
  let below = shareOf(1);
  while (low < limit) {
    const high = Math.min(limit, low * 2);
    const above = shareOf(high);
    if (above > 1) {
      const share = (1 - below) / (above - below);
      return Math.max(1, Math.floor(low + share * (high - low)));
    }
    low = high;
    below = above;
  }
  return limit;
}

/** Each method on each device, with the request's other options. @param shared by method: for calls with one device each */
export function fitTable(
  model: ModelShape,
  request: PlanRequest,
  gpus: readonly Gpu[],
  shared = new Map<string, Rough>(),
): PlanFitJson[] {
  const jobs = jobsOf(model, request).map((job) => {
    const known = shared.get(job.name) ?? new Map<string, Bytes>();
    shared.set(job.name, known);
    return { ...job, known };
  });
  return gpus.flatMap((gpu) =>
    jobs.flatMap(({ name, job, known }) => {
      const own = { ...job, gpu };
      requireDivisible(model, planOptions(model, own));
      return [{ device: gpu.name, method: name, ...fitOf(model, own, known) }];
    }),
  );
}

interface Job {
  readonly name: string;
  readonly job: PlanRequest;
}

function jobsOf(model: ModelShape, request: PlanRequest): Job[] {
  const options = planOptions(model, request);
  if (options.mode === "serve") {
    return [{ name: options.engine, job: request }];
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
  return [
    ...checkpointed("full", { method: "full" }),
    ...checkpointed("full, 8-bit AdamW", { method: "full", train: { optimizer: "adamw8bit" } }),
    ...checkpointed("lora", { method: "lora" }),
    ...checkpointed("qlora", { method: "qlora", ...(quantize === undefined ? {} : { quantize }) }),
  ];
}
