/** A plan as its JSON document. Pure: the page calls it as the command line does. */

import { formatBytes } from "../model/base/numbers.js";
import type { Bytes } from "../model/base/units.js";
import type { PlanJson, PlanPartJson } from "../model/documents/plan_document.js";
import { badUsage } from "../model/errors/errors.js";
import { assumptionsOf } from "./assumptions.js";
import { type PlanRequest, planOptions, withJobConfig } from "./defaults.js";
import { figureOf } from "./device/allocator.js";
import { requireDivisible, requireTargets } from "./divisible.js";
import { fitOf } from "./fit.js";
import {
  deviceCount,
  type PlanOptions,
  type ServeOptions,
  type TrainOptions,
} from "./job/options.js";
import { limitsOf } from "./limits.js";
import { describeModel } from "./model_facts.js";
import { type PlanFigures, savingsOf } from "./savings.js";
import { blocksOfRequest } from "./serve/block_groups.js";
import { planServing, type ServingPlan } from "./serve/plan_serving.js";
import { generates } from "./serve/served_by.js";
import type { ModelShape } from "./shape/model_shape.js";
import type { DevicePeak } from "./train/device_peak.js";
import { hostParts } from "./train/host.js";
import { planTraining } from "./train/plan_training.js";

/** The whole document. @throws TidemarkError TM-E002, TM-E086 where the model cannot be trained or divided as asked */
export function planMemory(model: ModelShape, request: PlanRequest): PlanJson {
  const options = planOptions(model, request);
  requireDivisible(model, options);
  const { plan, serving, notes } =
    options.mode === "train"
      ? trainingPlan(model, options)
      : servingPlan(model, options, request.serve);
  requirePossible(plan);
  const fits = fitOf(model, request);
  return {
    ...plan,
    savings: savingsOf(model, request, figuresOf),
    fits,
    ...(serving === null ? {} : { serving: servingWith(model, request, { serving, fits }) }),
    limits: limitsOf(model, request, [...plan.limits, ...notes]),
  };
}

/** @throws TidemarkError TM-E002 for bytes that a double no longer counts one by one: 8 PiB */
function requirePossible({ totalBytes, parts }: Unsaved): void {
  const largest = Math.max(...parts.map(({ bytes }) => bytes));
  if (!Number.isSafeInteger(totalBytes)) {
    const part = parts.find(({ bytes }) => bytes === largest)?.part ?? "";
    throw badUsage(
      `the job takes more than ${formatBytes(Number.MAX_SAFE_INTEGER)}, most of it for ${part}`,
      "use a smaller --batch, --seq, --context or --concurrency",
    );
  }
}

/** @throws TidemarkError TM-E086 */
function figuresOf(model: ModelShape, options: PlanOptions): PlanFigures {
  requireDivisible(model, options);
  if (options.mode === "train") {
    const { parts } = planTraining(model, options);
    return { deviceBytes: figureOf(parts, "device").bytes, gapBytes: gapsOf(parts) };
  }
  const { parts, room } = planServing(model, options);
  return {
    deviceBytes: figureOf(parts, "device").bytes,
    gapBytes: gapsOf(parts),
    ...(room === null
      ? {}
      : { room: { tokens: room.tokens, sequences: room.sequencesOf(options.context) } }),
  };
}

function gapsOf(parts: readonly PlanPartJson[]): number {
  return parts.find(({ part }) => part === "fragmentation")?.bytes ?? 0;
}

type Unsaved = Omit<PlanJson, "savings" | "fits" | "serving">;

interface ModePlan {
  readonly plan: Unsaved;
  readonly serving: (ServingPlan & { readonly options: ServeOptions }) | null;
  readonly notes: readonly string[];
}

function trainingPlan(model: ModelShape, options: TrainOptions): ModePlan {
  const { peak, parts } = planTraining(model, options);
  const unknown = requireTargets(peak.tape, options, model.family);
  const plan = finished(
    {
      schema: "tidemark.plan/1",
      model: describeModel(model, options, peak.states.counts.trainable),
      mode: "train",
      assumptions: assumptionsOf(model, options),
      devices: devicesOf(options, peak.rank),
      savedActivations: [...peak.simulation.savedAfterForward].map(([name, bytes]) => ({
        part: name,
        bytes: Math.round(bytes),
      })),
      peak: trainingPeak(peak, options),
      host: hostParts(model, options, peak),
      limits: [],
    },
    parts,
    deviceCount(options),
  );
  const notes = unknown.length === 0 ? [] : [`no layer is named ${unknown.join(" or ")}`];
  return { plan, serving: null, notes };
}

/** The largest gradients may be those that are not there yet: a reader of the parts would miss them. */
function trainingPeak(
  { stepIsPeak, simulation, states }: DevicePeak,
  { optimizerInBackward }: TrainOptions,
): string {
  if (stepIsPeak) {
    return "optimizer step";
  }
  const { where, gradients } = simulation.peak;
  const words = where
    .replace(/\b([a-z]+)\.(\d+)\b/, "layer $2 of the $1")
    .replace(/\b([a-z]+)\.(embedding|norm)\b/, "the $2 of the $1");
  const later = states.gradients - gradients;
  return !optimizerInBackward && later > LATER_SHARE * simulation.peak.bytes
    ? `${words}, before gradients of ${formatBytes(later)} are made`
    : words;
}

/** Of the peak; fewer gradients are not worth a remark. */
const LATER_SHARE = 0.02;

function servingPlan(
  model: ModelShape,
  options: ServeOptions,
  given: PlanRequest["serve"],
): ModePlan {
  const serving = planServing(model, options);
  const plan = finished(
    {
      schema: "tidemark.plan/1",
      model: describeModel(model, options, 0),
      mode: "serve",
      assumptions: assumptionsOf(model, options, given),
      devices: devicesOf(options, serving.rank),
      savedActivations: [],
      peak: generates(model) ? "prefill" : "forward pass",
      host:
        serving.hostBytes > 0
          ? [
              {
                part: "weights",
                bytes: Math.round(serving.hostBytes),
                formula: "weights that are not on the device",
              },
            ]
          : [],
      limits: [],
    },
    serving.parts,
    deviceCount(options),
    serving.room === null ? undefined : options.gpu.memoryBytes,
  );
  return { plan, serving: { ...serving, options }, notes: [] };
}

/** What the cache holds, by the same search as what fits. */
function servingWith(
  model: ModelShape,
  request: PlanRequest,
  {
    serving: { options, kvBytesPerToken, windows, bytesPerSequence, room },
    fits,
  }: { serving: NonNullable<ModePlan["serving"]>; fits: PlanJson["fits"] },
): NonNullable<PlanJson["serving"]> {
  const alone = withJobConfig({ mode: "serve", serve: { concurrency: 1 } }, request);
  const longestContext =
    options.concurrency === 1 ? fits.maxSequence : fitOf(model, alone).maxSequence;
  return {
    engine: options.engine,
    kvBytesPerToken,
    ...(windows.length > 0 ? { windows: [...windows] } : {}),
    ...(bytesPerSequence > 0 ? { bytesPerSequence } : {}),
    kvTokens: room?.tokens ?? Math.max(fits.maxBatch * options.context, longestContext),
    maxConcurrency: fits.maxBatch,
    longestContext,
    utilization: options.utilization,
    ...(room?.blocks === undefined
      ? {}
      : {
          blocks: room.blocks,
          logConcurrency:
            Math.floor(room.bytes / room.blocks.bytes) /
            blocksOfRequest(room.blocks, options.context),
        }),
  };
}

function finished(
  plan: Omit<Unsaved, "parts" | "totalBytes" | "perDeviceBytes" | "low" | "high" | "memory">,
  parts: PlanPartJson[],
  devices: number,
  filled?: Bytes,
): Unsaved {
  const facts = { known: plan.model.known, ...(filled === undefined ? {} : { filled }) };
  const device = figureOf(parts, "device", facts);
  return {
    ...plan,
    parts,
    totalBytes: device.bytes * devices,
    perDeviceBytes: device.bytes,
    low: device.low,
    high: device.high,
    memory: {
      allocated: figureOf(parts, "allocated", facts),
      reserved: figureOf(parts, "reserved", facts),
      device,
    },
  };
}

function devicesOf(options: PlanOptions, worstRank: string): PlanJson["devices"] {
  return {
    count: deviceCount(options),
    name: options.gpu.name,
    memoryBytes: options.gpu.memoryBytes,
    worstRank,
  };
}
