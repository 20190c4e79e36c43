/** A plan as its JSON document. Pure: the page calls it as the command line does. */
import type { PlanJson, PlanPartJson } from "../model/documents/plan_document.js";
import { assumptionsOf } from "./assumptions.js";
import { figureOf } from "./device/allocator.js";
import { requireDivisible } from "./divisible.js";
import { fitOf, type Measure } from "./fit.js";
import {
  deviceCount,
  type PlanOptions,
  type ServeOptions,
  type TrainOptions,
} from "./job/options.js";
import { describeModel } from "./model_facts.js";
import { savingsOf } from "./savings.js";
import { planServing } from "./serve/plan_serving.js";
import type { ModelShape } from "./shape/model_shape.js";
import { hostParts } from "./train/host.js";
import { planTraining } from "./train/plan_training.js";

/** The whole document. @throws TidemarkError TM-E086 where the model cannot be divided as asked */
export function planMemory(model: ModelShape, options: PlanOptions): PlanJson {
  requireDivisible(model, options);
  const { plan, gaps } =
    options.mode === "train" ? trainingDocument(model, options) : servingDocument(model, options);
  const measure = withGaps(gaps);
  return {
    ...plan,
    savings: savingsOf(model, options, plan.perDeviceBytes, measure),
    fits: fitOf(model, options, measure),
  };
}

/** For searches that start at `options`: the allocator is replayed once, and its gaps are the same share of all plans. */
export function measureFrom(model: ModelShape, options: PlanOptions): Measure {
  const { gaps } =
    options.mode === "train" ? planTraining(model, options) : planServing(model, options);
  return withGaps(gaps);
}

/** What the device shows. */
function withGaps(gaps: number): Measure {
  return (model, options) => {
    const { parts } =
      options.mode === "train"
        ? planTraining(model, options, gaps)
        : planServing(model, options, gaps);
    return figureOf(parts, "device").bytes;
  };
}

type Unsaved = Omit<PlanJson, "savings" | "fits">;
type Finished = PlanJson;
/** A document, and the share of the allocator's gaps in it. */
interface Planned {
  readonly plan: Finished;
  readonly gaps: number;
}

function trainingDocument(model: ModelShape, options: TrainOptions): Planned {
  const { peak, parts, gaps } = planTraining(model, options);
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
      peak: peak.stepIsPeak ? "optimizer step" : peak.simulation.peak.where,
      host: hostParts(model, options, peak),
      limits: [...model.remarks],
    },
    parts,
    deviceCount(options),
  );
  return { plan, gaps };
}

function servingDocument(model: ModelShape, options: ServeOptions): Planned {
  const { parts, serving, gaps } = planServing(model, options);
  const plan = finished(
    {
      schema: "tidemark.plan/1",
      model: describeModel(model, options, 0),
      mode: "serve",
      assumptions: assumptionsOf(model, options),
      devices: devicesOf(options, ""),
      savedActivations: [],
      peak: "prefill",
      host: [],
      serving,
      limits: [...model.remarks],
    },
    parts,
    deviceCount(options),
  );
  return { plan, gaps };
}

function finished(
  plan: Omit<Unsaved, "parts" | "totalBytes" | "perDeviceBytes" | "low" | "high" | "memory">,
  parts: PlanPartJson[],
  devices: number,
): Finished {
  const { known } = plan.model;
  const device = figureOf(parts, "device", known);
  return {
    ...plan,
    parts,
    totalBytes: device.bytes * devices,
    perDeviceBytes: device.bytes,
    low: device.low,
    high: device.high,
    memory: {
      allocated: figureOf(parts, "allocated", known),
      reserved: figureOf(parts, "reserved", known),
      device,
    },
    savings: [],
    fits: { deviceBytes: 0, fits: false, maxBatch: 0, maxSequence: 0 },
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
