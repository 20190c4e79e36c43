/**
 * Runs a tape forwards and backwards and follows every byte: results live until their last use, saved tensors until the
 * backward pass has used them, gradients until they were passed on. The peak is the largest sum.
 */
import type { Bytes } from "../../model/base/units.js";
import { SavedByPart } from "./saved_by_part.js";
import type { Operation, Parameter, Storage, Tape, TapePart, Tensor, Unit } from "./tape.js";
import type { AllocationTrace } from "./trace.js";

export type Checkpointing = "none" | "selective" | "full";

/** The live memory at one moment, in addition to weights and optimizer states. */
export interface Moment {
  /** "forward pass", "loss", "backward pass of decoder.31". */
  readonly where: string;
  readonly bytes: Bytes;
  readonly saved: ReadonlyMap<TapePart, Bytes>;
  /** Results, gradients of results and temporary buffers. */
  readonly working: Bytes;
  readonly gradients: Bytes;
  readonly communication: Bytes;
  /** The unit that runs, and in which pass; null before the first. */
  readonly running: { readonly unit: Unit; readonly backward: boolean } | null;
}

export interface StepSimulation {
  readonly peak: Moment;
  /** Saved by each part when the forward pass ends: what a sum over saved-tensor hooks gives. */
  readonly savedAfterForward: ReadonlyMap<TapePart, Bytes>;
  readonly savedBytes: Bytes;
  /** Of one unit that is recomputed, the largest. */
  readonly recomputedBytes: Bytes;
  readonly gradientBytes: Bytes;
  readonly operations: number;
}

export interface SimulationRules {
  readonly checkpointing: Checkpointing;
  /** Bytes of the gradient of one parameter. */
  readonly gradientBytesOf: (parameter: Parameter) => Bytes;
  /** Gradients are there from the step's start: accumulation, ZeRO-3. */
  readonly gradientsStay: boolean;
  /** Those of this pass are all there beside them. */
  readonly gradientsTwice: boolean;
  /** The optimizer consumes each gradient as it appears. */
  readonly gradientsConsumed: boolean;
  /** Saved inputs of recomputed units lie in host memory. */
  readonly offloadsInputs: boolean;
  /** Buffers of communication while a unit runs. */
  readonly communicationOf: (unit: Unit, backward: boolean) => Bytes;
  /**
   * With FSDP: gathers and reductions run in streams of their own. Version 2 gathers into a buffer of such a stream and
   * copies from it; version 1 keeps the gathered weights there. Divided gradients belong to the stream of reductions.
   */
  readonly fsdpVersion: 1 | 2 | null;
}

const GATHER_STREAM = 1;
const REDUCE_STREAM = 2;

/** @param trace filled with the step's allocations and frees, in their order */
export function simulateStep(
  tape: Tape,
  rules: SimulationRules,
  trace?: AllocationTrace,
): StepSimulation {
  return new Simulation(tape, rules, trace).run();
}

class Simulation {
  readonly #tape: Tape;
  readonly #rules: SimulationRules;
  readonly #trace: AllocationTrace | undefined;
  /** How many operations that have not run backwards yet keep a storage, by its id. */
  readonly #keepers: number[];
  readonly #saved = new SavedByPart();
  readonly #gradientOf = new Map<Storage, { readonly bytes: Bytes }>();
  readonly #uses: Uses;
  readonly #heldOnly = new Set<Storage>();
  /** Results of the unit that runs forward, until their last use. */
  readonly #live = new Set<Storage>();
  /** Of live results that are kept, too: they count once. */
  #twice = 0;
  #savedBytes = 0;
  #working = 0;
  #gradients = 0;
  #recomputed = 0;
  #communication = 0;
  #running: Moment["running"] = null;
  readonly #gathered: { bytes: Bytes }[] = [];
  /** The buffer of the last gather: it lives until the next one. */
  #gatherBuffer: { bytes: Bytes } | null = null;
  readonly #peakSaved = new SavedByPart();
  #peak: Omit<Moment, "saved"> | null = null;

  constructor(tape: Tape, rules: SimulationRules, trace?: AllocationTrace) {
    this.#tape = tape;
    this.#rules = rules;
    this.#trace = trace;
    this.#uses = usesOf(tape);
    this.#keepers = new Array(tape.storageCount).fill(0);
    this.#gradients = rules.gradientsStay ? this.#allGradients() : 0;
    if (rules.gradientsStay) {
      for (const parameter of tape.parameters) {
        const bytes = parameter.trainable ? rules.gradientBytesOf(parameter) : 0;
        if (bytes > 0) {
          trace?.hold(parameter, bytes);
        }
      }
    }
  }

  run(): StepSimulation {
    for (const unit of this.#tape.units) {
      this.#forward(unit);
    }
    const savedAfterForward = this.#saved.asMap();
    // What only a variable of the program holds is not saved by autograd.
    let savedBytes = this.#savedBytes;
    for (const storage of this.#heldOnly) {
      savedBytes -= storage.bytes;
      savedAfterForward.set(
        storage.part,
        (savedAfterForward.get(storage.part) ?? 0) - storage.bytes,
      );
    }
    if (this.#tape.training) {
      for (const unit of [...this.#tape.units].reverse()) {
        this.#backward(unit);
      }
    }
    return {
      peak: { ...(this.#peak ?? this.#moment("start", 0)), saved: this.#peakSaved.asMap() },
      savedAfterForward,
      savedBytes,
      recomputedBytes: this.#recomputed,
      gradientBytes: this.#rules.gradientsConsumed ? 0 : this.#allGradients(),
      operations: this.#tape.operations.length,
    };
  }

  #allGradients(): Bytes {
    return this.#tape.parameters.reduce(
      (sum, each) => sum + (each.trainable ? this.#rules.gradientBytesOf(each) : 0),
      0,
    );
  }

  #recomputes(unit: Unit): boolean {
    return this.#tape.training && unit.checkpointable && this.#rules.checkpointing !== "none";
  }

  /** Gathered weights and buckets while `unit` runs. What a unit needs beyond the one before it is a block of its own. */
  #communicate(unit: Unit, backward: boolean): void {
    this.#communication = this.#rules.communicationOf(unit, backward);
    this.#running = { unit, backward };
    if (this.#trace === undefined) {
      return;
    }
    let held = this.#gathered.reduce((sum, { bytes }) => sum + bytes, 0);
    while (held > this.#communication) {
      const last = this.#gathered.pop() as { bytes: Bytes };
      held -= last.bytes;
      this.#trace.drop(last);
    }
    if (held < this.#communication) {
      const block = { bytes: this.#communication - held };
      this.#gathered.push(block);
      this.#trace.hold(block, block.bytes, this.#rules.fsdpVersion === 1 ? GATHER_STREAM : 0);
      if (this.#rules.fsdpVersion === 2) {
        const buffer = { bytes: block.bytes };
        this.#trace.hold(buffer, buffer.bytes, GATHER_STREAM);
        if (this.#gatherBuffer !== null) {
          this.#trace.drop(this.#gatherBuffer);
        }
        this.#gatherBuffer = buffer;
      }
    }
  }

  #forward(unit: Unit): void {
    this.#communicate(unit, false);
    const recomputes = this.#recomputes(unit);
    if (recomputes && !this.#rules.offloadsInputs) {
      for (const storage of unit.inputs) {
        this.#keep(storage);
      }
    }
    const kept = recomputes ? this.#selected(unit) : null;
    this.#runForward(
      unit,
      kept === null ? (op) => op.saves : (op) => kept.get(op) ?? [],
      "forward pass",
    );
  }

  /**
   * The tensors that checkpointing keeps of a unit: what outlives it, and with `selective` attention and every second
   * product (the policy of torchtitan).
   */
  #selected(unit: Unit): Map<Operation, Storage[]> {
    const kept = new Map<Operation, Storage[]>();
    const isSelective = this.#rules.checkpointing === "selective";
    let products = 0;
    for (const op of this.#operationsOf(unit)) {
      if (op.outlivesCheckpoints) {
        kept.set(op, [...op.saves]);
      }
      if (!isSelective) {
        continue;
      }
      if (op.expensive === "matmul") {
        products += 1;
      }
      if (op.expensive === "attention" || (op.expensive === "matmul" && products % 2 === 1)) {
        kept.set(op, [...(kept.get(op) ?? []), ...op.outputs.map(({ storage }) => storage)]);
      }
    }
    return kept;
  }

  #operationsOf({ firstOperation, endOperation }: Unit): readonly Operation[] {
    return this.#tape.operations.slice(firstOperation, endOperation);
  }

  #runForward(unit: Unit, savedBy: (op: Operation) => readonly Storage[], pass: string): void {
    for (const storage of unit.inputs) {
      this.#enter(storage);
    }
    for (let index = unit.firstOperation; index < unit.endOperation; index++) {
      const op = this.#tape.operations[index] as Operation;
      for (const { storage } of op.outputs) {
        this.#enter(storage);
        if (storage.held && pass === "forward pass") {
          this.#keep(storage);
          this.#heldOnly.add(storage);
        }
      }
      for (const storage of savedBy(op)) {
        this.#keep(storage);
        this.#heldOnly.delete(storage);
      }
      this.#note(op.part === "head and loss" ? "loss" : pass, op.forwardTemporary - this.#twice);
      this.#trace?.pass(op.forwardTemporary);
      if (index === unit.firstOperation) {
        for (const storage of unit.inputs) {
          if ((this.#uses.last[storage.id] ?? 0) < index) {
            this.#leave(storage);
          }
        }
      }
      const { firstEnding, nextEnding, storages } = this.#uses;
      for (let id = firstEnding[index] as number; id >= 0; id = nextEnding[id] as number) {
        this.#leave(storages[id] as Storage);
      }
    }
    for (const storage of [...this.#live]) {
      this.#leave(storage);
    }
  }

  #enter(storage: Storage): void {
    if (!this.#live.has(storage)) {
      this.#live.add(storage);
      this.#working += storage.bytes;
      this.#twice += this.#isKept(storage) ? storage.bytes : 0;
      this.#trace?.hold(storage, storage.bytes);
    }
  }

  #leave(storage: Storage): void {
    if (this.#live.delete(storage)) {
      this.#working -= storage.bytes;
      this.#twice -= this.#isKept(storage) ? storage.bytes : 0;
      this.#trace?.drop(storage);
    }
  }

  #isKept({ id }: Storage): boolean {
    return (this.#keepers[id] ?? 0) > 0;
  }

  #keep(storage: Storage): void {
    const keepers = this.#keepers[storage.id] ?? 0;
    this.#keepers[storage.id] = keepers + 1;
    if (keepers === 0) {
      this.#trace?.hold(storage, storage.bytes);
      this.#savedBytes += storage.bytes;
      this.#twice += this.#live.has(storage) ? storage.bytes : 0;
      this.#saved.add(storage.part, storage.bytes);
    }
  }

  #release(storage: Storage): void {
    const keepers = (this.#keepers[storage.id] ?? 0) - 1;
    this.#keepers[storage.id] = Math.max(0, keepers);
    if (keepers === 0) {
      this.#trace?.drop(storage);
      this.#savedBytes -= storage.bytes;
      this.#saved.add(storage.part, -storage.bytes);
    }
  }

  #backward(unit: Unit): void {
    this.#communicate(unit, true);
    const recomputes = this.#recomputes(unit);
    if (recomputes) {
      const before = this.#savedBytes;
      const kept = this.#selected(unit);
      this.#runForward(unit, (op) => op.saves, `backward pass of ${unit.name}`);
      this.#recomputed = Math.max(this.#recomputed, this.#savedBytes - before);
      for (const storages of kept.values()) {
        for (const storage of storages) {
          this.#release(storage);
        }
      }
    }
    for (let index = unit.endOperation - 1; index >= unit.firstOperation; index--) {
      this.#backwardOperation(this.#tape.operations[index] as Operation, unit);
    }
    if (recomputes && !this.#rules.offloadsInputs) {
      for (const storage of unit.inputs) {
        this.#release(storage);
      }
    }
  }

  #backwardOperation(op: Operation, unit: Unit): void {
    // Of parameters without results (projections of which sizes alone are known), the gradients are made all the same.
    const needs =
      op.outputs.some((output) => output.needsGradient) ||
      (op.outputs.length === 0 && op.parameters.some(({ trainable }) => trainable));
    if (needs) {
      const temporary = this.#parameterGradients(op);
      let accumulating = 0;
      for (const input of op.inputs) {
        if (input.needsGradient) {
          accumulating += this.#giveGradient(op, input.storage);
        }
      }
      this.#note(
        op.part === "head and loss" ? "backward pass of the loss" : `backward pass of ${unit.name}`,
        op.backwardTemporary + temporary + accumulating,
      );
      this.#trace?.pass(op.backwardTemporary, temporary, accumulating);
      for (const { storage } of op.outputs) {
        const isInput = op.inputs.some((input) => input.storage === storage);
        const gradient = this.#gradientOf.get(storage);
        if (!isInput && gradient !== undefined) {
          this.#working -= gradient.bytes;
          this.#trace?.drop(gradient);
          this.#gradientOf.delete(storage);
        }
      }
    }
    for (const storage of op.saves) {
      this.#release(storage);
    }
  }

  /** @returns bytes that live only while the gradient is added to another one */
  #giveGradient(op: Operation, storage: Storage): Bytes {
    const bytes = storage.bytes;
    if (this.#gradientOf.has(storage)) {
      return op.passesGradient ? 0 : bytes;
    }
    const from = op.outputs[0]?.storage;
    const moved = from === undefined ? undefined : this.#gradientOf.get(from);
    if (op.passesGradient && from !== undefined && moved?.bytes === bytes) {
      // The gradient of a sum is that of its first term; the second gets a copy once others are added to it.
      this.#gradientOf.delete(from);
      this.#gradientOf.set(storage, moved);
      return 0;
    }
    const gradient = { bytes };
    this.#gradientOf.set(storage, gradient);
    this.#trace?.hold(gradient, bytes);
    this.#working += bytes;
    return 0;
  }

  /** @returns temporary bytes: a tied matrix's second gradient, or one that the optimizer consumes at once */
  #parameterGradients(op: Operation): Bytes {
    let temporary = 0;
    for (const parameter of op.parameters) {
      if (!parameter.trainable) {
        continue;
      }
      const bytes = this.#rules.gradientBytesOf(parameter);
      if (bytes === 0) {
        continue; // It is on the host.
      }
      const { gradientsConsumed, gradientsStay, gradientsTwice, fsdpVersion } = this.#rules;
      if (parameter.tied === true || gradientsConsumed || (gradientsStay && !gradientsTwice)) {
        temporary += bytes;
      } else {
        const gradient = gradientsTwice ? { bytes } : parameter;
        this.#trace?.hold(gradient, bytes, fsdpVersion === null ? 0 : REDUCE_STREAM);
        this.#gradients += bytes;
      }
    }
    return temporary;
  }

  #note(where: string, extra: Bytes): void {
    const bytes = this.#total(extra);
    if (this.#peak === null || bytes > this.#peak.bytes) {
      this.#peak = this.#moment(where, extra);
      this.#peakSaved.copy(this.#saved);
    }
  }

  #moment(where: string, extra: Bytes): Omit<Moment, "saved"> {
    return {
      where,
      bytes: this.#total(extra),
      working: this.#working + extra,
      gradients: this.#gradients,
      communication: this.#communication,
      running: this.#running,
    };
  }

  #total(extra: Bytes): Bytes {
    return this.#savedBytes + this.#working + this.#gradients + this.#communication + extra;
  }
}

interface Uses {
  /** Index of the last operation that reads or makes a storage, by the storage's id; -1: none does. */
  readonly last: Int32Array;
  /** The first storage whose last use an operation is, by its index, and the next one, by the storage's id; -1: none. */
  readonly firstEnding: Int32Array;
  readonly nextEnding: Int32Array;
  readonly storages: readonly (Storage | undefined)[];
}

function usesOf({ operations, storageCount }: Tape): Uses {
  const last = new Int32Array(storageCount).fill(-1);
  const firstEnding = new Int32Array(operations.length).fill(-1);
  const nextEnding = new Int32Array(storageCount).fill(-1);
  const storages: (Storage | undefined)[] = new Array(storageCount);
  for (let index = operations.length - 1; index >= 0; index--) {
    const { inputs, outputs } = operations[index] as Operation;
    let latest = -1;
    const note = ({ storage }: Tensor): void => {
      const { id } = storage;
      if (last[id] !== -1) {
        return;
      }
      last[id] = index;
      storages[id] = storage;
      if (latest < 0) {
        firstEnding[index] = id;
      } else {
        nextEnding[latest] = id;
      }
      latest = id;
    };
    inputs.forEach(note);
    outputs.forEach(note);
  }
  return { last, firstEnding, nextEnding, storages };
}
