/** The documents of `tidemark plan`: a model's plan, the same compared with a measurement, and its page. */
import { basename } from "node:path";
import { formatBytes } from "../../model/base/numbers.js";
import type { Bytes, OnProgress } from "../../model/base/units.js";
import type {
  PlanComparisonJson,
  PlanFitJson,
  PlanJson,
} from "../../model/documents/plan_document.js";
import { nothingThere } from "../../model/errors/errors.js";
import { type DeviceFigureName, deviceMetric, MOST_DEVICES } from "../../model/profile/series.js";
import {
  comparePlan,
  compareVllm,
  fitRows,
  GPUS,
  type ModelShape,
  otherJob,
  otherProgram,
  type PlanPageDocument,
  type PlanRequest,
  planMemory,
  readLog,
  readModel,
  readVllmLog,
  withJobConfigs,
} from "../../plan/index.js";
import type { Recording } from "../../recording/types.js";
import { analyseSnapshot } from "./gpu/gpu_snapshot.js";

/** A model with the request of a plan. */
export interface Planned {
  readonly model: ModelShape;
  readonly request: PlanRequest;
  readonly plan: PlanJson;
}

/**
 * @param configs files of the job: adapter_config.json, configurations of DeepSpeed and accelerate
 * @throws TidemarkError TM-E003, TM-E004, TM-E008, TM-E085, TM-E086
 */
export function planDocument(
  path: string,
  words: PlanRequest,
  { configs }: { configs: readonly string[] },
): Planned {
  const model = readModel(path);
  const request = withJobConfigs(words, configs);
  return { model, request, plan: planMemory(model, request) };
}

/** With what fits on the request's device, or on all common ones. `onProgress` counts rows. */
export async function planWithFitTable(
  { model, request, plan }: Planned,
  onProgress: OnProgress,
): Promise<PlanJson> {
  const gpus = request.gpu === undefined ? GPUS : [request.gpu];
  const all = fitRows(model, request, gpus);
  const rows: PlanFitJson[] = [];
  for (const [index, row] of all.entries()) {
    await onProgress(index, all.length);
    rows.push(...[row()].filter((found) => found !== null));
  }
  return { ...plan, fitTable: rows };
}

/**
 * Compares the plan with the peak of PyTorch's allocator in a snapshot. `onProgress` counts MiB. @throws TidemarkError
 * for a damaged file
 */
export async function planComparedWithSnapshot(
  plan: PlanJson,
  path: string,
  onProgress: OnProgress,
): Promise<PlanJson> {
  const { devices } = await analyseSnapshot(path, onProgress);
  const device = devices
    .filter((each) => each.device >= 0)
    .reduce<(typeof devices)[number] | null>(
      (most, each) =>
        most === null || each.peak.requestedBytes > most.peak.requestedBytes ? each : most,
      null,
    );
  if (device === null) {
    throw nothingThere(
      `${path} holds no device's memory`,
      "take the snapshot while the job trains",
    );
  }
  const categories = new Map<string, Bytes>();
  for (const { category, bytes } of device.peak.sites) {
    categories.set(category, (categories.get(category) ?? 0) + bytes);
  }
  return withComparison(
    plan,
    comparePlan(plan, {
      file: path,
      kind: "allocated",
      bytes: device.peak.requestedBytes,
      categories,
    }),
  );
}

function withComparison(plan: PlanJson, comparison: PlanComparisonJson): PlanJson {
  return { ...plan, comparison, limits: [...plan.limits, ...otherProgram(comparison)] };
}

/** Compares the plan with the highest figures of a device's allocator in a recording. @throws TidemarkError TM-E014 */
export function planComparedWithRecording(
  plan: PlanJson,
  recording: Recording,
  path: string,
): PlanJson {
  const highest = (name: DeviceFigureName): Bytes =>
    recording.series.reduce((most, { values }) => {
      for (let device = 0; device < MOST_DEVICES; device++) {
        for (const value of values.get(deviceMetric(device, name)) ?? []) {
          most = value > most ? value : most; // NaN is not
        }
      }
      return most;
    }, 0);
  const allocated = Math.max(highest("peakAllocatedBytes"), highest("allocatedBytes"));
  if (allocated === 0) {
    throw nothingThere(
      `${path} holds no figures of a device's allocator`,
      "plans are of the memory of GPUs; record a program that uses one with: tidemark run --gpu",
    );
  }
  return withComparison(
    plan,
    comparePlan(plan, {
      file: path,
      kind: "allocated",
      bytes: allocated,
      categories: new Map(),
    }),
  );
}

/** Compares the plan with vLLM's start-up log. @throws TidemarkError TM-E014 if the log has no memory figures */
export function planComparedWithLog(plan: PlanJson, path: string): PlanJson {
  const log = readVllmLog(readLog(path));
  const comparison = compareVllm(plan, log, path);
  const { freeBytes, totalBytes } = log;
  if (comparison === null && freeBytes !== undefined && totalBytes !== undefined) {
    throw nothingThere(
      `vLLM stopped before it loaded weights (${path}): ${formatBytes(freeBytes)} of the device's ${formatBytes(totalBytes)} were free, less than its share`,
      "end the other programs on the device (tidemark gpu top), or lower --gpu-memory-utilization",
    );
  }
  if (comparison === null) {
    throw nothingThere(
      `${path} holds no line of vLLM about memory`,
      "keep the log of its start, at level INFO",
    );
  }
  return { ...plan, comparison, limits: [...plan.limits, ...otherJob(comparison)] };
}

export function planPage({ model, request, plan: { comparison } }: Planned): PlanPageDocument {
  const name = model.name === "" ? model.family : basename(model.name);
  return {
    schema: "tidemark.planPage/1",
    title: `plan ${name}`,
    model,
    request,
    ...(comparison === undefined ? {} : { comparison }),
  };
}
