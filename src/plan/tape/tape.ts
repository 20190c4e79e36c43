/**
 * A tape of the operations of one training step or one prefill: which tensors each operation reads and makes, which it
 * keeps for its backward pass, and which parameters it has. Nothing is computed but sizes.
 *
 *   Tape.op({ name: "silu", inputs: [gate], makes: [sizes], saves: [gate] })
 *
 * What an operation saves is what PyTorch's autograd saves (derivatives.yaml of PyTorch: `silu` saves its input,
 * `softmax` its output, `linear` its input for the weight's gradient and its weight for the input's gradient).
 * A view shares the storage of its base, so that a slice keeps the whole product alive.
 */
import type { Bytes } from "../../model/base/units.js";

/** The purposes of memory: the parts of the plan's document. */
export const TAPE_PARTS = [
  "embedding",
  "attention",
  "mlp",
  "moe",
  "norm",
  "residual",
  "state-space",
  "convolution",
  "head and loss",
] as const;
export type TapePart = (typeof TAPE_PARTS)[number];

export interface Storage {
  readonly id: number;
  readonly bytes: Bytes;
  readonly part: TapePart;
  /** Made by a pointwise operation of other storages: a compiler computes it again instead of saving it. */
  readonly recomputedFrom: readonly Storage[] | null;
  /** Held by a variable of the program until the step ends. */
  held: boolean;
}

export interface Tensor {
  readonly elements: number;
  readonly itemBytes: number;
  readonly needsGradient: boolean;
  readonly storage: Storage;
}

/** A parameter of the model, once for each layer. */
export interface Parameter {
  readonly name: string;
  readonly elements: number;
  /** Of one element as it lies in memory. */
  readonly bytes: Bytes;
  readonly trainable: boolean;
  /** Belongs to a quantized matrix. */
  readonly quantized: boolean;
  /** `buffer`: lies with the weights, but is no parameter. */
  readonly role: "matrix" | "vector" | "embedding" | "adapter" | "buffer";
  /** Of experts, adapters included: expert parallelism divides it already. */
  readonly ofExperts?: boolean;
  /** Rows and columns of a matrix, which factored optimizers and sharding need. */
  readonly rows: number;
  readonly unit: number;
  /** A trained copy (modules_to_save of PEFT): bytes of the original, which stays beside it. */
  readonly originalBytes?: Bytes;
  /** Its gradient is added to that of a tied matrix: only a temporary one is made. */
  readonly tied?: boolean;
}

export interface Operation {
  readonly name: string;
  readonly part: TapePart;
  readonly inputs: readonly Tensor[];
  readonly outputs: readonly Tensor[];
  readonly saves: readonly Storage[];
  readonly parameters: readonly Parameter[];
  /** Live while the operation runs, beside its inputs and outputs. */
  readonly forwardTemporary: Bytes;
  readonly backwardTemporary: Bytes;
  /** Kept by selective checkpointing. */
  readonly expensive: "matmul" | "attention" | null;
  /** The gradient of each input is the gradient of the output itself (addition, views). */
  readonly passesGradient: boolean;
  /** Checkpointing does not free what it saves, which is not among autograd's saved tensors. */
  readonly outlivesCheckpoints: boolean;
}

/** A unit of the tape: a layer, the embedding, or the head. */
export interface Unit {
  readonly name: string;
  readonly checkpointable: boolean;
  /** The tensors that must be kept to recompute the unit. */
  readonly inputs: readonly Storage[];
  /** Those of another unit, if this one is a copy of it. */
  operations: readonly Operation[];
  copy: UnitCopy | null;
}

/** How a copy of a unit differs from the original, whose operations it shares: in its input and its storages. */
export interface UnitCopy {
  readonly originalInput: Storage;
  readonly input: Storage;
  /** In place of the storages with the ids from `firstStorage` on. */
  readonly firstStorage: number;
  readonly storages: readonly Storage[];
}

/** What an operation of the unit means by a storage. */
export function storageIn({ copy }: Unit, storage: Storage): Storage {
  if (copy === null) {
    return storage;
  }
  if (storage === copy.originalInput) {
    return copy.input;
  }
  const index = storage.id - copy.firstStorage;
  return index >= 0 && index < copy.storages.length ? (copy.storages[index] as Storage) : storage;
}

export interface OperationSketch {
  readonly name: string;
  readonly inputs: readonly Tensor[];
  readonly makes: readonly { readonly elements: number; readonly itemBytes: number }[];
  /** "output": its own first output. */
  readonly saves?: readonly (Tensor | "output")[];
  readonly parameters?: readonly Parameter[];
  /** Tensors that exist for the backward pass alone: masks, log-sum-exp, casts. */
  readonly extraSaved?: readonly Bytes[];
  readonly forwardTemporary?: Bytes;
  readonly backwardTemporary?: Bytes;
  readonly expensive?: "matmul" | "attention";
  readonly pointwise?: boolean;
  /** The output shares the storage of the first input. */
  readonly view?: boolean;
  readonly passesGradient?: boolean;
  readonly outlivesCheckpoints?: boolean;
}

export class Tape {
  readonly parameters: Parameter[] = [];
  readonly storages: Storage[] = [];
  readonly units: Unit[] = [];
  part: TapePart = "embedding";
  /** Of keys and values that stay after the pass. */
  cachedBytes: Bytes = 0;
  #operations: Operation[] = [];

  /** @param compiled pointwise results are recomputed, as torch.compile's partitioner does */
  constructor(
    readonly compiled: boolean,
    readonly training: boolean,
  ) {}

  get unit(): number {
    return this.units.length - 1;
  }

  /** Of all units, in the order in which they run. */
  get operations(): Operation[] {
    return this.units.flatMap(({ operations }) => operations);
  }

  /** Starts a layer whose recomputation needs `inputs`. */
  beginUnit(name: string, inputs: readonly Tensor[], checkpointable: boolean): void {
    this.#operations = [];
    this.units.push({
      name,
      checkpointable,
      inputs: inputs.map(({ storage }) => storage),
      operations: this.#operations,
      copy: null,
    });
  }

  storage(bytes: Bytes, recomputedFrom: readonly Storage[] | null = null): Storage {
    return this.#stored({
      id: this.storages.length,
      bytes,
      part: this.part,
      recomputedFrom,
      held: false,
    });
  }

  /** The same, of another tensor. */
  copyOf({ bytes, part, held }: Storage, recomputedFrom: readonly Storage[] | null): Storage {
    return this.#stored({ id: this.storages.length, bytes, part, recomputedFrom, held });
  }

  #stored(storage: Storage): Storage {
    this.storages.push(storage);
    return storage;
  }

  /** A tensor that comes from outside: token ids, masks, another tower's output. */
  input(elements: number, itemBytes: number, needsGradient = false): Tensor {
    return { elements, itemBytes, needsGradient, storage: this.storage(elements * itemBytes) };
  }

  /** A view of `base` with fewer elements. */
  slice(base: Tensor, elements: number): Tensor {
    const [view] = this.op({
      name: "slice",
      inputs: [base],
      makes: [{ elements, itemBytes: base.itemBytes }],
      view: true,
    });
    return view as Tensor;
  }

  op(sketch: OperationSketch): Tensor[] {
    const { inputs, parameters = [] } = sketch;
    const trains = parameters.some(({ trainable }) => trainable);
    const needsGradient = this.training && (trains || inputs.some((each) => each.needsGradient));
    const sources = sketch.pointwise === true ? inputs.map(({ storage }) => storage) : null;
    const outputs = sketch.makes.map(({ elements, itemBytes }, index): Tensor => {
      const base = sketch.view === true ? (inputs[index] ?? inputs[0]) : undefined;
      return {
        elements,
        itemBytes,
        needsGradient,
        storage: base?.storage ?? this.storage(elements * itemBytes, sources),
      };
    });
    this.parameters.push(...parameters);
    this.#operations.push({
      name: sketch.name,
      part: this.part,
      inputs,
      outputs,
      saves: needsGradient ? this.#saved(sketch, outputs) : [],
      parameters,
      forwardTemporary: sketch.forwardTemporary ?? 0,
      backwardTemporary: sketch.backwardTemporary ?? 0,
      expensive: sketch.expensive ?? null,
      passesGradient: sketch.passesGradient === true || sketch.view === true,
      outlivesCheckpoints: sketch.outlivesCheckpoints === true,
    });
    return outputs;
  }

  #saved(sketch: OperationSketch, outputs: readonly Tensor[]): Storage[] {
    const named = (sketch.saves ?? []).map((each) =>
      each === "output" ? (outputs[0] as Tensor).storage : each.storage,
    );
    // A compiled step does not recompute what a matrix product of the backward pass reads, because recomputing it would
    // still write the result to memory (ban_recompute_materialized_backward in torch._functorch.config).
    const recomputes = this.compiled && sketch.expensive === undefined;
    const wanted = recomputes ? named.flatMap(cheapestSources) : named;
    const extra = (sketch.extraSaved ?? []).filter((bytes) => bytes > 0);
    return [...new Set([...wanted, ...extra.map((bytes) => this.storage(bytes))])];
  }
}

/**
 * The storages that must be kept to recompute `storage`: itself, or the results of matrix products that it was
 * computed from.
 */
function cheapestSources(storage: Storage): Storage[] {
  if (storage.recomputedFrom === null) {
    return [storage];
  }
  const sources = [...new Set(storage.recomputedFrom.flatMap(cheapestSources))];
  const total = sources.reduce((sum, { bytes }) => sum + bytes, 0);
  // A sum of several products costs more to keep than itself.
  return total > 2.5 * storage.bytes ? [storage] : sources;
}
