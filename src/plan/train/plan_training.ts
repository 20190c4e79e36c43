/** The peak of a training job, by part, on the device that needs most. */

import type { Bytes } from "../../model/base/units.js";
import type { PlanPartJson } from "../../model/documents/plan_document.js";
import { modelTape, type StageChoice } from "../blocks/model_tape.js";
import type { Gpu } from "../device/gpus.js";
import type { TrainOptions } from "../job/options.js";
import type { ModelShape } from "../shape/model_shape.js";
import { simulateStep } from "../tape/simulate.js";
import { AllocationTrace } from "../tape/trace.js";
import { trainingRules } from "./block_rules.js";
import { communicationOf, ncclBytes } from "./communication.js";
import type { DevicePeak } from "./device_peak.js";
import { allParts, tensorParts } from "./parts.js";
import { replayed } from "./replay.js";
import { type States, statesOf } from "./states.js";

export interface TrainingPlan {
  readonly peak: DevicePeak;
  readonly parts: PlanPartJson[];
}

export function planTraining(model: ModelShape, options: TrainOptions): TrainingPlan {
  const peak = trainingPeak(model, options);
  const { ncclBytes } = peak;
  const { gaps } = replayed(peak, options.gpu);
  return { peak, parts: allParts(tensorParts(peak, options, model), options, { ncclBytes, gaps }) };
}

/** States of each pipeline stage, which depend on neither batch nor length: searches for what fits share them. */
export type KnownStates = Map<number, States>;

/** Of the thread of the forward pass, and of that of the backward pass. */
export function workspacesOf({ workspaceBytes }: Pick<Gpu, "workspaceBytes">): Bytes {
  return 2 * workspaceBytes;
}

/** The peak of the device that needs most. */
export function trainingPeak(
  model: ModelShape,
  options: TrainOptions,
  known: KnownStates = new Map(),
): DevicePeak {
  const stages = options.parallelism.pipeline;
  // In 1F1B the first stage has the most microbatches in flight, and the last one the head.
  const candidates =
    stages === 1 ? [0] : [...new Set([0, 1, stages - 1])].filter((index) => index < stages);
  return candidates
    .map((index) => devicePeak(model, options, { index, count: stages }, known))
    .reduce((worst, each) => (each.allocatedBytes > worst.allocatedBytes ? each : worst));
}

function devicePeak(
  model: ModelShape,
  options: TrainOptions,
  stage: StageChoice,
  known: KnownStates,
): DevicePeak {
  const { sharding } = options.parallelism;
  const { tape } = modelTape(model, trainingRules(model, options), stage);
  const states = known.get(stage.index) ?? statesOf(tape, options);
  known.set(stage.index, states);
  const communication = communicationOf(tape, options);
  const trace = new AllocationTrace();
  const simulation = simulateStep(
    tape,
    {
      checkpointing: options.checkpointing,
      gradientBytesOf: states.gradientBytesOf,
      gradientsStay: states.held !== "made",
      gradientsTwice: states.held === "twice",
      gradientsConsumed: options.optimizerInBackward,
      offloadsInputs: options.activationOffload,
      communicationOf: communication?.bytesOf ?? (() => 0),
      fsdpVersion: sharding.kind === "fsdp" && sharding.devices > 1 ? sharding.version : null,
    },
    trace,
  );
  const inFlight = microbatchesInFlight(options, stage);
  const fixed = states.weights + states.adapters + states.optimizer + states.master;
  const backward = fixed + simulation.peak.bytes + (inFlight - 1) * simulation.savedBytes;
  const step = fixed + (options.optimizerInBackward ? 0 : states.gradients) + states.stepTemporary;
  return {
    tape,
    trace,
    simulation,
    states,
    communication,
    ncclBytes: ncclBytes(options),
    inFlight,
    stepIsPeak: step > backward,
    allocatedBytes: Math.max(step, backward) + workspacesOf(options.gpu),
    rank: stage.count === 1 ? "" : `pipeline stage ${stage.index} of ${stage.count}`,
  };
}

/**
 * GPipe runs all microbatches forward before the first backward pass. 1F1B: stage i of p starts p - i microbatches before
 * its first backward pass. Interleaved with v pieces of the model on each device, (p - i - 1) 2 + (v - 1) p + 1 pieces of a
 * v-th each are in flight (Narayanan et al., 2021, section 2.2). There are never more than the step has.
 */
function microbatchesInFlight(
  { accumulation, parallelism }: TrainOptions,
  { index, count }: StageChoice,
): number {
  if (count === 1) {
    return 1;
  }
  const { virtualStages: pieces, schedule } = parallelism;
  if (schedule === "gpipe") {
    return accumulation;
  }
  const warmUp =
    pieces === 1 ? count - index : ((count - index - 1) * 2 + (pieces - 1) * count + 1) / pieces;
  return Math.min(accumulation, warmUp);
}
