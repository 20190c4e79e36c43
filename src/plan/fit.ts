/** Computes what fits on a device: the largest batch, the longest sequence, and a table of methods and devices. */
import type { Bytes } from "../model/base/units.js";
import type { PlanFitJson, PlanJson } from "../model/documents/plan_document.js";
import type { Gpu } from "./device/gpus.js";
import type { PlanOptions, TrainOptions } from "./job/options.js";
import { fillsDevice } from "./serve/plan_serving.js";
import type { ModelShape } from "./shape/model_shape.js";

/** What the device shows for a plan. */
export type Measure = (model: ModelShape, options: PlanOptions) => Bytes;

const LARGEST_BATCH = 4096;
const LONGEST = 2 ** 20;

export function fitOf(model: ModelShape, options: PlanOptions, measure: Measure): PlanJson["fits"] {
  const deviceBytes = options.gpu.memoryBytes;
  const room = deviceBytes * shareOf(options);
  const fits = (changed: PlanOptions): boolean => measure(model, changed) <= room;
  const withBatch = (batch: number): PlanOptions =>
    options.mode === "train"
      ? { ...options, batch }
      : { ...options, concurrency: batch, cacheAsNeeded: true };
  const withLength = (length: number): PlanOptions =>
    options.mode === "train"
      ? { ...options, sequence: length }
      : { ...options, context: length, cacheAsNeeded: true };
  const fitsNow = fits(options.mode === "train" ? options : { ...options, cacheAsNeeded: true });
  return {
    deviceBytes,
    fits: fitsNow,
    maxBatch: largest((batch) => fits(withBatch(batch)), LARGEST_BATCH),
    maxSequence: largestLength((length) => fits(withLength(length)), model.longestSequence),
  };
}

/** In steps of 64, up to what the model was made for. @param longest of the model; 0: not known */
function largestLength(fits: (length: number) => boolean, longest: number): number {
  const limit = longest === 0 ? LONGEST : Math.min(LONGEST, longest);
  const found = 64 * largest((units) => fits(64 * units), Math.max(1, Math.floor(limit / 64)));
  return Math.min(found, limit);
}

/** An engine that fills its share always fits: the question is whether its cache holds the sequences. */
function shareOf(options: PlanOptions): number {
  return options.mode === "serve" && fillsDevice(options) ? options.utilization : 1;
}

/** The largest whole number up to `limit` for which `holds`; 0 where it does not for 1. `holds` is monotonic. */
function largest(holds: (value: number) => boolean, limit: number): number {
  if (!holds(1)) {
    return 0;
  }
  let low = 1;
  while (low < limit && holds(Math.min(limit, low * 2))) {
    low = Math.min(limit, low * 2);
  }
  let high = Math.min(limit, low * 2);
  if (low === limit) {
    return limit;
  }
  while (high - low > Math.max(1, low / 64)) {
    const middle = Math.floor((low + high) / 2);
    if (holds(middle)) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

/** Each method on each device, with the plan's other options. */
export function fitTable(
  model: ModelShape,
  options: PlanOptions,
  gpus: readonly Gpu[],
  measureFrom: (model: ModelShape, options: PlanOptions) => Measure,
): PlanFitJson[] {
  const jobs = options.mode === "train" ? methodsOf(options) : [{ name: options.engine, options }];
  const measured = jobs.map((job) =>
    measuredOnce(job.options.gpu, measureFrom(model, job.options)),
  );
  return gpus.flatMap((gpu) =>
    jobs.map((job, index) => {
      const fit = fitOf(model, { ...job.options, gpu }, measured[index] as Measure);
      return { device: gpu.name, method: job.name, ...fit };
    }),
  );
}

/**
 * Plans that differ only in the device are computed once: with a cache that grows as needed, a device adds its context
 * and workspace and changes nothing else.
 */
function measuredOnce(base: Gpu, measure: Measure): Measure {
  const known = new Map<string, Bytes>();
  return (model, options) => {
    const key =
      options.mode === "train"
        ? `${options.batch} ${options.sequence}`
        : `${options.concurrency} ${options.context}`;
    const bytes = known.get(key) ?? measure(model, { ...options, gpu: base });
    known.set(key, bytes);
    const own = (gpu: Gpu): Bytes => gpu.contextBytes + gpu.workspaceBytes;
    return bytes + own(options.gpu) - own(base);
  };
}

function methodsOf(options: TrainOptions): { name: string; options: PlanOptions }[] {
  const checkpointing = (name: string, job: TrainOptions) => [
    { name, options: job },
    { name: `${name}, checkpointing`, options: { ...job, checkpointing: "full" } as TrainOptions },
  ];
  const plain: TrainOptions = { ...options, quantize: null, checkpointing: "none" };
  return [
    ...checkpointing("full", { ...plain, method: "full" }),
    ...checkpointing("full, 8-bit AdamW", { ...plain, method: "full", optimizer: "adamw8bit" }),
    ...checkpointing("lora", { ...plain, method: "lora" }),
    ...checkpointing("qlora", { ...plain, method: "qlora", quantize: options.quantize ?? "nf4" }),
  ];
}
