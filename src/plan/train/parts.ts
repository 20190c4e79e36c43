/** The parts of a training job's peak, each with its formula, source and interval. */
import { formatBytes } from "../../model/base/numbers.js";
import type { Bytes } from "../../model/base/units.js";
import type { PlanPartJson, PlanPartName } from "../../model/documents/plan_document.js";
import { allocatorParts, type PartSketch, part } from "../device/allocator.js";
import { OPTIMIZER_FACTS } from "../job/optimizers.js";
import type { TrainOptions } from "../job/options.js";
import { readsText } from "../shape/layers.js";
import type { ModelShape } from "../shape/model_shape.js";
import { countedParameters, productWords } from "../tape/products.js";
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
    formula:
      states.whole === null || peak.stepIsPeak
        ? `${gradientWords(peak, gradients)}${divided(options, "gradients")}`
        : `${productWords(states.whole.products, "trained parameters")}; divided after the last microbatch`,
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
    const { running } = simulation.peak;
    if (communication !== null && running !== null) {
      const { keepsGathered = false } = options.parallelism.sharding;
      const width = keepsGathered ? WIDTHS.activations : WIDTHS.communication;
      add("communication", simulation.peak.communication, width, {
        formula: communication.formulaOf(running.unit, running.backward),
        source: communication.source,
      });
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
  const { peak, savedBytes } = simulation;
  const here = sumOf(peak.saved, (name) => name !== "head and loss");
  const isText = readsText(model);
  const others =
    inFlight > 1
      ? ` + ${inFlight - 1} microbatches x ${perPosition(savedBytes, options, isText)}`
      : "";
  add("activations", here + (inFlight - 1) * savedBytes, WIDTHS.activations, {
    formula: `${perPosition(here, options, isText)}${others}${layerWords(peak.saved, options, isText)}`,
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

/** "2048 tokens x 528.0 KiB". */
function perPosition(bytes: Bytes, { batch, sequence }: TrainOptions, isText: boolean): string {
  const positions = isText ? batch * sequence : batch;
  const unit = isText ? "token" : "image";
  const each = bytes / positions;
  return `${positions} ${unit}${positions === 1 ? "" : "s"} x ${fourDigits(each)}`;
}

/** In a unit that leaves at least four digits. */
function fourDigits(bytes: Bytes): string {
  const KIB = 1024;
  return bytes < 100 * KIB
    ? `${Number(bytes.toFixed(bytes < 1000 ? 2 : 0))} B`
    : bytes < 100 * KIB * KIB
      ? `${(bytes / KIB).toFixed(1)} KiB`
      : `${(bytes / KIB / KIB).toFixed(1)} MiB`;
}

/** What the layers have saved at the peak, of one token: "; mlp 30.0 KiB, attention 12.0 KiB". */
function layerWords(
  saved: ReadonlyMap<TapePart, Bytes>,
  { batch, sequence }: TrainOptions,
  isText: boolean,
): string {
  const positions = isText ? batch * sequence : batch;
  const shown = [...saved]
    .filter(([name, bytes]) => name !== "head and loss" && bytes / positions / 1024 >= 0.05)
    .sort((a, b) => b[1] - a[1])
    .map(([name, bytes]) => {
      const each = bytes / positions;
      return `${name} ${isText ? `${(each / 1024).toFixed(1)} KiB` : formatBytes(each)}`;
    });
  return shown.length === 0 ? "" : `; ${shown.join(", ")}`;
}

function sumOf(saved: ReadonlyMap<TapePart, Bytes>, wanted: (name: TapePart) => boolean): Bytes {
  return [...saved].reduce((sum, [name, bytes]) => sum + (wanted(name) ? bytes : 0), 0);
}

function weightsFormula({ states }: DevicePeak, options: TrainOptions): string {
  const { quantized } = states.counts;
  const words = quantized > 0 ? `; ${countedParameters(quantized)} are quantized` : "";
  const rank = options.parallelism.pipeline * options.parallelism.tensor > 1 ? " on this rank" : "";
  return `${productWords(states.products.weights, `parameters${rank}`)}${words}${divided(options, "weights")}`;
}

/** At the peak, gradients of some parameters are there, or of some a second time. */
function gradientWords({ states }: DevicePeak, bytes: Bytes): string {
  const { products, counts, gradients } = states;
  const what = "trained parameters";
  const share = gradients > 0 ? bytes / gradients : 0;
  const all = countedParameters(counts.trainable);
  const some = (part: number): string =>
    productWords(products.gradients, part < 0.9995 ? `of ${all} ${what}` : what, part);
  return share > 1.0005
    ? `${some(1)} + ${some(share - 1)}; accumulated, and of this pass`
    : some(share);
}

function adaptersFormula(
  { states }: DevicePeak,
  { adapterRank, adapterDetails, ...options }: TrainOptions,
): string {
  const { saved } = states.counts;
  const { ranks, dora, tokens } = adapterDetails;
  const words = [
    `rank ${adapterRank} of each target, inputs + outputs${ranks.length > 0 ? ", other ranks as in rank_pattern" : ""}${dora ? ", and a magnitude for each output (DoRA)" : ""}${tokens > 0 ? `, and ${tokens} rows of the embedding` : ""}: ${productWords(states.products.adapters, "parameters")}`,
    ...(saved > 0
      ? [`${countedParameters(saved)} of modules_to_save, beside their originals`]
      : []),
  ];
  return `${words.join("; ")}${divided(options, "weights")}`;
}

function optimizerSketch({ states }: DevicePeak, options: TrainOptions): PartSketch {
  const { formula, source, ofMatrices = false } = OPTIMIZER_FACTS[options.optimizer];
  const master = states.master > 0 ? " and 4 B of master weights" : "";
  const products = productWords(states.products.optimizer, "parameters");
  return {
    formula: `${ofMatrices ? `${formula}${master}: ${products}` : `${products}; ${formula}${master}`}${divided(options, "states")}`,
    source,
  };
}

function divided({ parallelism }: Pick<TrainOptions, "parallelism">, what: keyof Divisors): string {
  const { kind, devices } = parallelism.sharding;
  return divisorsOf(parallelism.sharding)[what] === 1
    ? ""
    : `; divided by ${kind === "fsdp" ? "FSDP" : kind.replace("zero", "ZeRO")} over ${devices} devices${parallelism.expert > 1 ? ", experts by --ep" : ""}`;
}
