/** The parts of a training job's peak, each with its formula, source and interval. */
import { formatBytes } from "../../model/base/numbers.js";
import type { Bytes } from "../../model/base/units.js";
import type { PlanPartJson, PlanPartName } from "../../model/documents/plan_document.js";
import { allocatorParts, type PartSketch, part } from "../device/allocator.js";
import { OPTIMIZER_FACTS } from "../job/optimizers.js";
import type { TrainOptions } from "../job/options.js";
import { countedParameters } from "../job/options.js";
import { type ModelShape, readsText } from "../shape/model_shape.js";
import type { TapePart } from "../tape/tape.js";
import type { DevicePeak } from "./device_peak.js";
import { type Divisors, divisorsOf } from "./states.js";

/** Half widths of intervals, as shares of the part. Parts that are counted exactly have small ones. */
const WIDTHS = {
  weights: 0.004,
  gradients: 0.02,
  optimizer: 0.02,
  activations: 0.1,
  head: 0.15,
  working: 0.25,
  communication: 0.4,
} as const;
/** A model without a reader. */
const UNKNOWN_FACTOR = 2.5;

/** Those of tensors: what a job has on any device of one kind. */
export function tensorParts(
  peak: DevicePeak,
  options: TrainOptions,
  model: ModelShape,
): PlanPartJson[] {
  const { states, simulation, communication } = peak;
  const factor = model.known ? 1 : UNKNOWN_FACTOR;
  const parts: PlanPartJson[] = [];
  const add = (name: PlanPartName, bytes: Bytes, width: number, sketch: PartSketch): void => {
    if (bytes > 0) {
      parts.push(part(name, bytes, width * factor, sketch));
    }
  };
  add("weights", states.weights, WIDTHS.weights, {
    formula: weightsFormula(peak, options),
    source: "the configuration's shapes; each matrix counted",
  });
  add("adapters", states.adapters, WIDTHS.weights, {
    formula: adaptersFormula(peak, options),
    source: "Hu et al., LoRA (2021), section 4.1",
  });
  const gradients = peak.stepIsPeak
    ? options.optimizerInBackward
      ? 0
      : states.gradients
    : simulation.peak.gradients;
  add("gradients", gradients, WIDTHS.gradients, {
    formula: `${countedParameters(states.counts.trainable)} trained parameters in the type of the weights${divided(options, "gradients")}`,
    source: "torch.autograd: a leaf's gradient has its type",
  });
  add(
    "optimizer",
    states.optimizer + states.master,
    WIDTHS.optimizer,
    optimizerSketch(peak, options),
  );
  if (peak.stepIsPeak) {
    add("temporaries", states.stepTemporary, WIDTHS.working, {
      formula: "temporary copies of the optimizer step",
      source: OPTIMIZER_FACTS[options.optimizer].source,
    });
  } else {
    addActivations(add, peak, { options, model });
    if (communication !== null) {
      add("communication", simulation.peak.communication, WIDTHS.communication, communication);
    }
  }
  return parts;
}

/** With those of the allocator and the device. @param gaps what a replay reserved beside tensors, as a share of them */
export function allParts(
  parts: readonly PlanPartJson[],
  { gpu }: Pick<TrainOptions, "gpu">,
  { ncclBytes, gaps }: { ncclBytes: Bytes; gaps: number },
): PlanPartJson[] {
  const facts = { gpu, threads: 2, outsideBytes: ncclBytes, replayedGaps: gaps } as const;
  return [...parts, ...allocatorParts(parts, facts)];
}

type Add = (name: PlanPartName, bytes: Bytes, width: number, sketch: PartSketch) => void;

function addActivations(
  add: Add,
  { simulation, inFlight }: DevicePeak,
  { options, model }: { options: TrainOptions; model: ModelShape },
): void {
  const { peak, savedAfterForward, savedBytes } = simulation;
  const others =
    sumOf(peak.saved, (name) => name !== "head and loss") + (inFlight - 1) * savedBytes;
  add("activations", others, WIDTHS.activations, {
    formula: `${layerWords(savedAfterForward, options, readsText(model))}${inFlight > 1 ? `; ${inFlight.toFixed(1)} microbatches in flight` : ""}`,
    source: "tensors that autograd saves, operation by operation (tools/autograd/derivatives.yaml)",
  });
  const head = peak.saved.get("head and loss") ?? 0;
  const inHead = peak.where.includes("loss");
  add("head and loss", head + (inHead ? peak.working : 0), WIDTHS.head, {
    formula:
      model.head.kind === "language"
        ? `logits, their fp32 copies and their gradients; loss: ${options.loss}`
        : "the prediction, its fp32 copy and their gradients",
    source: "torch.nn.functional.cross_entropy: log_softmax keeps its output",
  });
  if (!inHead) {
    add("temporaries", peak.working, WIDTHS.working, {
      formula: "intermediate results, their gradients, and scratch memory of kernels",
      source: "lifetimes of all tensors of the step",
    });
  }
}

function layerWords(
  saved: ReadonlyMap<TapePart, Bytes>,
  { batch, sequence }: TrainOptions,
  isText: boolean,
): string {
  const positions = isText ? batch * sequence : batch;
  const unit = isText ? "token" : "image";
  const shown = [...saved]
    .filter(([name, bytes]) => name !== "head and loss" && bytes / positions / 1024 >= 0.05)
    .sort((a, b) => b[1] - a[1])
    .map(([name, bytes]) => {
      const each = bytes / positions;
      return `${name} ${isText ? `${(each / 1024).toFixed(1)} KiB` : formatBytes(each)}`;
    });
  const all = `${positions} ${unit}${positions === 1 ? "" : "s"}`;
  return `${all}${shown.length === 0 ? "" : `; per ${unit} in all layers: ${shown.join(", ")}`}`;
}

function sumOf(saved: ReadonlyMap<TapePart, Bytes>, wanted: (name: TapePart) => boolean): Bytes {
  return [...saved].reduce((sum, [name, bytes]) => sum + (wanted(name) ? bytes : 0), 0);
}

function weightsFormula({ states }: DevicePeak, options: TrainOptions): string {
  const { parameters, quantized } = states.counts;
  const words = quantized > 0 ? `, of which ${countedParameters(quantized)} are quantized` : "";
  const rank = options.parallelism.pipeline * options.parallelism.tensor > 1 ? " on this rank" : "";
  return `${countedParameters(parameters)} parameters${rank}${words}${divided(options, "weights")}`;
}

function adaptersFormula(
  { states }: DevicePeak,
  { adapterRank, adapterDetails }: TrainOptions,
): string {
  const { trainable, saved } = states.counts;
  const { ranks, dora, tokens } = adapterDetails;
  const words = [
    `rank ${adapterRank} x (inputs + outputs) of each target${ranks.length > 0 ? ", other ranks as in rank_pattern" : ""}${dora ? ", and a magnitude for each output (DoRA)" : ""}${tokens > 0 ? `, and ${tokens} rows of the embedding` : ""}: ${countedParameters(trainable - saved)} parameters`,
    ...(saved > 0
      ? [`${countedParameters(saved)} of modules_to_save, beside their originals`]
      : []),
  ];
  return words.join("; ");
}

function optimizerSketch({ states }: DevicePeak, options: TrainOptions): PartSketch {
  const { formula, source, ofMatrices = false } = OPTIMIZER_FACTS[options.optimizer];
  const parameters = `${countedParameters(states.counts.trainable)} parameters`;
  const master = states.master > 0 ? " + 4 B of master weights" : "";
  const added = states.master > 0 ? ` + ${parameters} x 4 B of master weights` : "";
  return {
    formula: `${ofMatrices ? `${formula}${added}` : `${parameters} x (${formula}${master})`}${divided(options, "states")}`,
    source,
  };
}

function divided({ parallelism }: TrainOptions, what: keyof Divisors): string {
  const { kind, devices } = parallelism.sharding;
  return divisorsOf(parallelism.sharding)[what] === 1
    ? ""
    : `; divided by ${kind === "fsdp" ? "FSDP" : kind.replace("zero", "ZeRO")} over ${devices} devices`;
}
