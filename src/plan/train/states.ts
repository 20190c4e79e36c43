/**
 * Weights, gradients and optimizer states of one device, by how the job divides them.
 *
 * | sharding | weights | gradients | states and master weights |
 * |---|---|---|---|
 * | none, DDP | whole | whole | whole |
 * | ZeRO-1 | whole | whole | 1/N |
 * | ZeRO-2 | whole | 1/N | 1/N |
 * | ZeRO-3, FSDP | 1/N | 1/N | 1/N |
 *
 * Rajbhandari et al., "ZeRO" (2020), figure 1. DeepSpeed keeps 16-bit weights and gradients and an fp32 master copy;
 * FSDP keeps the fp32 weights themselves and makes 16-bit copies of the layers that it gathers.
 *
 * ZeRO-3 allocates its part of the gradients at start and keeps it (stage3.py, `grad_partitions_flat_buffer`); ZeRO-2
 * makes a new one in each backward pass, beside the one to which it adds (stage_1_and_2.py, `grads_in_partition` and
 * `all_grad_tensors`); ZeRO-1 keeps each gradient until all are reduced. Where the optimizer is on the host, divided
 * gradients are there, too, and once more in fp32; ZeRO-2 has them in 16 bits only if it accumulates them
 * (`accumulated_grads_in_cpu`). FSDP does none of this, but see {@link keepsWholeGradients}.
 */
import type { Bytes } from "../../model/base/units.js";
import { expertDivision } from "../job/experts.js";
import { OPTIMIZER_FACTS, stateBytes, stepTemporary } from "../job/optimizers.js";
import type { Library, TrainOptions } from "../job/options.js";
import { bytesOfCompute } from "../job/options.js";
import { type Product, productsOf } from "../tape/products.js";
import type { Parameter, Tape } from "../tape/tape.js";

export interface States {
  readonly weights: Bytes;
  readonly adapters: Bytes;
  /** At the end of the backward pass. */
  readonly gradients: Bytes;
  /** How they are held from one backward pass to the next. */
  readonly held: HeldGradients;
  readonly optimizer: Bytes;
  readonly master: Bytes;
  /** Before FSDP divides them; null where it does so in each microbatch. */
  readonly whole: { readonly bytes: Bytes; readonly products: Product[] } | null;
  /** Beside states and gradients, while the optimizer steps. */
  readonly stepTemporary: Bytes;
  /** Moved to host memory: states of paged or offloaded optimizers, offloaded weights. */
  readonly host: Bytes;
  readonly counts: {
    readonly parameters: number;
    readonly trainable: number;
    /** Of the trainable ones: copies of whole modules beside their originals. */
    readonly saved: number;
    readonly quantized: number;
  };
  /** The same as sums of products. */
  readonly products: Readonly<
    Record<"weights" | "adapters" | "gradients" | "optimizer", Product[]>
  >;
  /** Bytes of the gradient of one parameter as the simulation sees it, after division. */
  readonly gradientBytesOf: (parameter: Parameter) => Bytes;
  /** The same tensors one by one, in the order in which a program makes them. */
  readonly tensors: {
    readonly weights: readonly Bytes[];
    readonly states: readonly Bytes[];
    readonly stepTemporaries: readonly Bytes[];
  };
}

/** `twice`: those that were added up, and those of the current pass beside them. */
export type HeldGradients = "made" | "kept" | "twice";

function heldGradients({
  accumulation,
  optimizerInBackward,
  parallelism,
}: TrainOptions): HeldGradients {
  const { kind } = parallelism.sharding;
  if (optimizerInBackward) {
    return "made";
  }
  const accumulates = accumulation > 1;
  return kind === "zero-3" || (accumulates && kind !== "zero-2")
    ? "kept"
    : accumulates
      ? "twice"
      : "made";
}

/**
 * Libraries that accumulate under `no_sync`: accelerate and the Trainer, unless `sync_each_batch` is set, and Fabric's
 * `no_backward_sync` in litgpt. torchtune and torchtitan reduce in each microbatch.
 */
const DEFERS_REDUCTION: Readonly<Record<Library, boolean>> = {
  transformers: true,
  litgpt: true,
  torchtune: false,
  torchtitan: false,
};

/**
 * Whether FSDP keeps whole gradients on each device up to the last microbatch, in the type of {@link gatheredBytes}, in
 * accelerate the compute type, which is that of its reduction, too (fully_shard: `set_requires_gradient_sync(False)`, `to_accumulated_grad_if_needed`).
 */
export function keepsWholeGradients({
  accumulation,
  library,
  parallelism: { sharding, pipeline },
}: Pick<TrainOptions, "accumulation" | "library" | "parallelism">): boolean {
  // One device alone has whole gradients in any case; those that are offloaded leave it in their reduction.
  const isReduced =
    sharding.kind === "fsdp" && (sharding.devices > 1 || sharding.offload !== "none");
  return isReduced && accumulation > 1 && pipeline === 1 && DEFERS_REDUCTION[library];
}

/**
 * Bytes of the weights that FSDP gathers, and of their gradients before they are reduced: fp32 in Fabric's "bf16-mixed" and
 * "16-mixed", whose products are 16 bit by autocast and whose reductions are 16 bit (`FSDPPrecision.mixed_precision_config`).
 */
export function gatheredBytes({
  library,
  fp32Weights,
  dtype,
}: Pick<TrainOptions, "library" | "fp32Weights" | "dtype">): 2 | 4 {
  return library === "litgpt" && fp32Weights ? 4 : bytesOfCompute(dtype);
}

/**
 * Whether adapters share a flat parameter with the frozen weights of their layer in version 1 of FSDP (Fabric, of whole
 * blocks). The Trainer wraps each trained module by itself (`update_fsdp_plugin_peft`, `fsdp_auto_wrap_policy` of PEFT); biases
 * that are trained stay with the frozen weights of their layer.
 */
export function sharesFlatParameters({
  method,
  library,
  adapterDetails,
  parallelism: { sharding },
}: Pick<TrainOptions, "method" | "library" | "adapterDetails" | "parallelism">): boolean {
  return (
    sharding.kind === "fsdp" &&
    sharding.version === 1 &&
    method !== "full" &&
    (library !== "transformers" || adapterDetails.bias !== "none")
  );
}

export interface Divisors {
  readonly weights: number;
  readonly gradients: number;
  readonly states: number;
}

export function divisorsOf({ kind, devices }: TrainOptions["parallelism"]["sharding"]): Divisors {
  return {
    weights: kind === "fsdp" || kind === "zero-3" ? devices : 1,
    gradients: kind === "fsdp" || kind === "zero-3" || kind === "zero-2" ? devices : 1,
    states: kind === "ddp" ? 1 : devices,
  };
}

/** DeepSpeed keeps fp32 copies of 16-bit weights in any case; of adapters, their own weights are in fp32. */
export function hasMasterWeights({
  method,
  dtype,
  fp32Weights,
  parallelism,
}: TrainOptions): boolean {
  const isZero = parallelism.sharding.kind.startsWith("zero");
  return isZero && bytesOfCompute(dtype) < 4 && (fp32Weights || method === "full");
}

export function statesOf(tape: Tape, options: TrainOptions): States {
  const { sharding } = options.parallelism;
  const divisors = divisorsOf(sharding);
  const { copies } = expertDivision(options);
  // Expert parallelism takes its ranks from those that data parallelism would divide over.
  const over = (each: Parameter, divisor: number): number =>
    each.ofExperts === true ? Math.max(1, divisor / copies) : divisor;
  const computeBytes = bytesOfCompute(options.dtype);
  const hasMaster = hasMasterWeights(options);
  // FSDP's own weights, also frozen ones, are wider than the copies that the tape computes with; PEFT's adapters always.
  const isFsdpWide = ({ trainable, quantized }: Parameter): boolean =>
    sharding.kind === "fsdp" &&
    computeBytes < 4 &&
    quantized !== true &&
    (options.fp32Weights ||
      (trainable && options.method !== "full" && options.library === "transformers"));
  const widening = (each: Parameter): number =>
    isFsdpWide(each) ? (4 * each.elements) / each.bytes : 1;
  const stateWidth = (each: Parameter): number =>
    hasMaster || isFsdpWide(each) ? 4 : each.bytes / each.elements;
  const sum = (of: (each: Parameter) => number): number =>
    tape.parameters.reduce((total, each) => total + of(each), 0);
  const trained = (of: (each: Parameter) => number): number =>
    sum((each) => (each.trainable ? of(each) : 0));
  // Also on one device, where they are whole; stage 1 keeps them (`partition_gradients` of stage_1_and_2.py).
  const onHost = sharding.offload !== "none" && sharding.kind !== "zero-1";
  const gradientOf = (each: Parameter): Bytes =>
    (each.bytes * widening(each)) / over(each, divisors.gradients);
  const steppedGradientOf = (each: Parameter): Bytes => (onHost ? 0 : gradientOf(each));
  const wholeOf = keepsWholeGradients(options)
    ? (each: Parameter): Bytes => each.elements * gatheredBytes(options)
    : null;
  const gradientBytesOf = wholeOf ?? steppedGradientOf;
  const stateOf = (each: Parameter): Bytes =>
    stateBytes(options.optimizer, each, stateWidth(each)) / over(each, divisors.states);
  const masterOf = (each: Parameter): Bytes =>
    hasMaster ? (4 * each.elements) / over(each, divisors.states) : 0;
  const weightOf = (each: Parameter): Bytes =>
    (each.bytes * widening(each)) / over(each, divisors.weights);
  const states = trained(stateOf);
  const master = trained(masterOf);
  const paged = OPTIMIZER_FACTS[options.optimizer].paged || sharding.offload !== "none";
  const isAdded = (each: Parameter): boolean =>
    each.role === "adapter" || each.originalBytes !== undefined;
  // The tape of litgpt, which computes by autocast, has them in fp32 already.
  const originalWidening =
    sharding.kind === "fsdp" && options.fp32Weights && options.library !== "litgpt"
      ? 4 / computeBytes
      : 1;
  const originalOf = (each: Parameter): Bytes =>
    ((each.originalBytes ?? 0) * originalWidening) / over(each, divisors.weights);
  const weights = sum((each) => (isAdded(each) ? originalOf(each) : weightOf(each)));
  const offloadsAll = sharding.offload === "all";
  const largest = Math.max(
    0,
    ...tape.parameters.map((each) =>
      each.trainable ? (each.elements * 4) / over(each, divisors.states) : 0,
    ),
  );
  // DeepSpeed steps with a flat copy of its gradients, converted to fp32; stage 3 in groups of 1e9 elements.
  const stepped = trained((each) => each.elements / over(each, divisors.states));
  const copied =
    sharding.kind === "zero-3"
      ? Math.min(sharding.deepSpeed?.subGroup ?? SUB_GROUP, stepped)
      : stepped;
  // The kernels of paged optimizers need no copy of their own, and offloaded states none on the device.
  const temporary =
    (paged
      ? 0
      : stepTemporary(
          options.optimizer,
          trained((each) => (each.bytes * widening(each)) / over(each, divisors.states)),
          largest,
        )) + (hasMaster && sharding.offload === "none" ? copied * (computeBytes + 4) : 0);
  // Beside them in fp32, as the optimizer on the host reads them.
  const keepsNarrow =
    sharding.kind === "zero-3" || (sharding.kind === "zero-2" && options.accumulation > 1);
  const hostGradients =
    sharding.offload === "none" || sharding.kind === "fsdp"
      ? onHost
        ? trained(gradientOf)
        : 0
      : (hasMaster ? 4 * stepped : 0) + (keepsNarrow ? trained(gradientOf) : 0);
  return {
    weights: offloadsAll ? 0 : weights,
    adapters: sum((each) => (isAdded(each) ? weightOf(each) : 0)),
    gradients: trained(steppedGradientOf),
    whole:
      wholeOf === null
        ? null
        : {
            bytes: trained(wholeOf),
            products: productsOf(
              tape.parameters.filter(({ trainable }) => trainable),
              wholeOf,
              () => 1,
            ),
          },
    held: heldGradients(options),
    optimizer: paged ? 0 : states,
    master: sharding.offload === "none" ? master : 0,
    stepTemporary: temporary,
    host:
      (paged ? states : 0) +
      (sharding.offload === "none" ? 0 : master) +
      (offloadsAll ? weights : 0) +
      hostGradients,
    counts: {
      parameters: sum((each) => (each.role === "adapter" ? 0 : each.elements)),
      trainable: trained(({ elements }) => elements),
      saved: sum(({ elements, originalBytes }) => (originalBytes === undefined ? 0 : elements)),
      quantized: sum((each) => (each.quantized ? each.elements : 0)),
    },
    products: {
      weights: productsOf(
        tape.parameters,
        (each) =>
          isAdded(each)
            ? (each.originalBytes ?? 0) * originalWidening
            : each.bytes * widening(each),
        (each) => over(each, divisors.weights),
      ),
      adapters: productsOf(
        tape.parameters.filter(isAdded),
        (each) => each.bytes * widening(each),
        (each) => over(each, divisors.weights),
      ),
      gradients: productsOf(
        tape.parameters.filter(({ trainable }) => trainable),
        (each) => each.bytes * widening(each),
        (each) => over(each, divisors.gradients),
      ),
      optimizer: productsOf(
        tape.parameters.filter(({ trainable }) => trainable),
        (each) =>
          ((paged ? 0 : stateOf(each)) + (sharding.offload === "none" ? masterOf(each) : 0)) *
          over(each, divisors.states),
        (each) => over(each, divisors.states),
      ),
    },
    gradientBytesOf,
    tensors: tensorsOf(tape, options, {
      weights: (each) => (offloadsAll ? [] : [weightOf(each), originalOf(each)]),
      state: (each) => (paged ? 0 : stateOf(each)),
      master: (each) => (sharding.offload === "none" ? masterOf(each) : 0),
      temporary,
    }),
  };
}

/** `sub_group_size` of DeepSpeed, unless the job sets it. */
const SUB_GROUP = 1e9;

interface TensorBytes {
  /** Of a trained copy: itself and its original. */
  readonly weights: (each: Parameter) => readonly Bytes[];
  readonly state: (each: Parameter) => Bytes;
  readonly master: (each: Parameter) => Bytes;
  /** Beside states, while the optimizer steps. */
  readonly temporary: Bytes;
}

function tensorsOf(
  tape: Tape,
  { optimizer }: TrainOptions,
  { weights, state, master, temporary }: TensorBytes,
): States["tensors"] {
  const trained = tape.parameters.filter((each) => each.trainable);
  const elements = trained.reduce((sum, each) => sum + each.elements, 0);
  const { foreach = false, moments = 1 } = OPTIMIZER_FACTS[optimizer];
  const existing = (sizes: readonly Bytes[]): Bytes[] => sizes.filter((bytes) => bytes > 0);
  return {
    weights: existing([...tape.parameters.flatMap(weights), ...trained.map(master)]),
    states: existing(
      trained.flatMap((each) => Array.from({ length: moments }, () => state(each) / moments)),
    ),
    stepTemporaries: existing(
      foreach ? trained.map((each) => (temporary * each.elements) / elements) : [temporary],
    ),
  };
}
