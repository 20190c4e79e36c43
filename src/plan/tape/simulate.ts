/**
 * Runs a tape forwards and backwards and follows every byte: results live until their last use, saved tensors until the
 * backward pass has used them, gradients until they were passed on. The peak is the largest sum.
 */
import type { Bytes } from "../../model/base/units.js";
import { CheckpointedUnits, type Checkpointing } from "./checkpoints.js";
import { Gathers } from "./gathers.js";
import { LargestMoment, type LiveBytes, type Moment, type Place } from "./moments.js";
import { SavedByPart } from "./saved_by_part.js";
import {
  type Operation,
  type Parameter,
  type Storage,
  storageIn,
  type Tape,
  type TapePart,
  type Unit,
} from "./tape.js";
import type { AllocationTrace } from "./trace.js";
import { type Uses, usesOf } from "./uses.js";

export interface StepSimulation {
  readonly peak: Moment;
  /** Saved by each part when the forward pass ends: what a sum over saved-tensor hooks gives. */
  readonly savedAfterForward: ReadonlyMap<TapePart, Bytes>;
  readonly savedBytes: Bytes;
  /** Of one unit that is recomputed, the largest. */
  readonly recomputedBytes: Bytes;
  readonly gradientBytes: Bytes;
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
   * With FSDP: gathers and reductions run in streams of their own. Divided gradients belong to the stream of reductions.
   */
  readonly fsdpVersion: 1 | 2 | null;
}

const REDUCE_STREAM = 2;

/** @param trace filled with the step's allocations and frees, in their order */
export function simulateStep(
  tape: Tape,
  rules: SimulationRules,
  trace: AllocationTrace,
): StepSimulation {
  return new Simulation(tape, rules, trace).run();
}

/** No allocation, in a table of allocations by the id of a storage. */
const NONE = -1;

class Simulation {
  readonly #tape: Tape;
  readonly #rules: SimulationRules;
  readonly #trace: AllocationTrace;
  readonly #uses: Uses;
  readonly #checkpointed: CheckpointedUnits;
  readonly #gathers: Gathers;
  /** How many operations that have not run backwards yet keep a storage, by its id. */
  readonly #keepers: Int32Array;
  /** 1 for a result of the unit that runs forward, until its last use, by the storage's id. */
  readonly #live: Uint8Array;
  /** The allocation of a storage that is live or kept, by its id. */
  readonly #allocated: Int32Array;
  /** The allocation of a storage's gradient, which has as many bytes, by its id. */
  readonly #gradientOf: Int32Array;
  /** Storages that were live in the unit that runs forward. */
  #entered: Storage[] = [];
  readonly #heldOnly = new Set<Storage>();
  /** Of live results that are kept, too: they count once. */
  #twice = 0;
  #recomputed = 0;
  readonly #bytes: LiveBytes = {
    savedBytes: 0,
    saved: new SavedByPart(),
    working: 0,
    gradients: 0,
    communication: 0,
  };
  readonly #place: Place = { unit: null, pass: "forward", part: "embedding" };
  readonly #peak = new LargestMoment();

  constructor(tape: Tape, rules: SimulationRules, trace: AllocationTrace) {
    this.#tape = tape;
    this.#rules = rules;
    this.#trace = trace;
    this.#uses = usesOf(tape);
    this.#checkpointed = new CheckpointedUnits(rules.checkpointing);
    this.#gathers = new Gathers(rules.fsdpVersion, trace);
    const count = tape.storages.length;
    this.#keepers = new Int32Array(count);
    this.#live = new Uint8Array(count);
    this.#allocated = new Int32Array(count).fill(NONE);
    this.#gradientOf = new Int32Array(count).fill(NONE);
    if (rules.gradientsStay) {
      this.#bytes.gradients = this.#allGradients();
      for (const parameter of tape.parameters) {
        const bytes = this.#gradientBytesOf(parameter);
        if (bytes > 0) {
          trace.allocate(bytes);
        }
      }
    }
  }

  run(): StepSimulation {
    const { units, training } = this.#tape;
    for (const index of units.keys()) {
      this.#forward(index);
    }
    const savedAfterForward = this.#bytes.saved.asMap();
    // What only a variable of the program holds is not saved by autograd.
    let { savedBytes } = this.#bytes;
    for (const { bytes, part } of this.#heldOnly) {
      savedBytes -= bytes;
      savedAfterForward.set(part, (savedAfterForward.get(part) ?? 0) - bytes);
    }
    if (training) {
      for (let index = units.length - 1; index >= 0; index--) {
        this.#backward(index);
      }
    }
    return {
      peak: this.#peak.asMoment(),
      savedAfterForward,
      savedBytes,
      recomputedBytes: this.#recomputed,
      gradientBytes: this.#rules.gradientsConsumed ? 0 : this.#allGradients(),
    };
  }

  #allGradients(): Bytes {
    return this.#tape.parameters.reduce((sum, each) => sum + this.#gradientBytesOf(each), 0);
  }

  /** 0: there is none, or it is on the host. */
  #gradientBytesOf(parameter: Parameter): Bytes {
    return parameter.trainable ? this.#rules.gradientBytesOf(parameter) : 0;
  }

  #recomputes(unit: Unit): boolean {
    return this.#tape.training && unit.checkpointable && this.#rules.checkpointing !== "none";
  }

  #communicate(unit: Unit, backward: boolean): void {
    const bytes = this.#rules.communicationOf(unit, backward);
    this.#bytes.communication = bytes;
    this.#gathers.change(bytes);
  }

  #forward(index: number): void {
    const unit = this.#tape.units[index] as Unit;
    this.#communicate(unit, false);
    const recomputes = this.#recomputes(unit);
    if (recomputes && !this.#rules.offloadsInputs) {
      for (const storage of unit.inputs) {
        this.#keep(storage);
      }
    }
    const kept = recomputes ? this.#checkpointed.keptOf(unit) : null;
    this.#runForward(
      index,
      kept === null ? (operation) => operation.saves : (operation) => kept.get(operation) ?? [],
      "forward",
    );
  }

  #runForward(
    unitIndex: number,
    savedBy: (operation: Operation) => readonly Storage[],
    pass: Place["pass"],
  ): void {
    const unit = this.#tape.units[unitIndex] as Unit;
    const { last, firstEnding, nextEnding, firstOperations } = this.#uses;
    const first = firstOperations[unitIndex] as number;
    this.#place.unit = unit;
    this.#place.pass = pass;
    for (const storage of unit.inputs) {
      this.#enter(storage);
    }
    for (let index = 0; index < unit.operations.length; index++) {
      const operation = unit.operations[index] as Operation;
      for (const output of operation.outputs) {
        const storage = storageIn(unit, output.storage);
        this.#enter(storage);
        if (storage.held && pass === "forward") {
          this.#keep(storage);
          this.#heldOnly.add(storage);
        }
      }
      for (const saved of savedBy(operation)) {
        const storage = storageIn(unit, saved);
        this.#keep(storage);
        this.#heldOnly.delete(storage);
      }
      this.#note(operation, operation.forwardTemporary - this.#twice);
      this.#trace.pass(operation.forwardTemporary);
      if (index === 0) {
        for (const storage of unit.inputs) {
          if ((last[storage.id] as number) < first) {
            this.#leave(storage);
          }
        }
      }
      for (let id = firstEnding[first + index] as number; id >= 0; id = nextEnding[id] as number) {
        this.#leave(this.#tape.storages[id] as Storage);
      }
    }
    const entered = this.#entered;
    this.#entered = [];
    for (const storage of entered) {
      this.#leave(storage);
    }
  }

  #enter(storage: Storage): void {
    const { id, bytes } = storage;
    if (this.#live[id] === 1) {
      return;
    }
    if (this.#isKept(id)) {
      this.#twice += bytes;
    } else {
      this.#allocated[id] = this.#trace.allocate(bytes);
    }
    this.#live[id] = 1;
    this.#entered.push(storage);
    this.#bytes.working += bytes;
  }

  #leave({ id, bytes }: Storage): void {
    if (this.#live[id] === 0) {
      return;
    }
    this.#live[id] = 0;
    this.#bytes.working -= bytes;
    if (this.#isKept(id)) {
      this.#twice -= bytes;
    } else {
      this.#trace.free(this.#allocated[id] as number);
    }
  }

  #isKept(id: number): boolean {
    return (this.#keepers[id] as number) > 0;
  }

  #keep({ id, bytes, part }: Storage): void {
    if (!this.#isKept(id)) {
      if (this.#live[id] === 1) {
        this.#twice += bytes;
      } else {
        this.#allocated[id] = this.#trace.allocate(bytes);
      }
      this.#bytes.savedBytes += bytes;
      this.#bytes.saved.add(part, bytes);
    }
    this.#keepers[id] = (this.#keepers[id] as number) + 1;
  }

  #release({ id, bytes, part }: Storage): void {
    const keepers = this.#keepers[id] as number;
    this.#keepers[id] = Math.max(0, keepers - 1);
    if (keepers === 1) {
      if (this.#live[id] === 0) {
        this.#trace.free(this.#allocated[id] as number);
      }
      this.#bytes.savedBytes -= bytes;
      this.#bytes.saved.add(part, -bytes);
    }
  }

  #backward(index: number): void {
    const unit = this.#tape.units[index] as Unit;
    this.#communicate(unit, true);
    const recomputes = this.#recomputes(unit);
    if (recomputes) {
      const before = this.#bytes.savedBytes;
      this.#runForward(index, (operation) => operation.saves, "recomputation");
      this.#recomputed = Math.max(this.#recomputed, this.#bytes.savedBytes - before);
      for (const storages of this.#checkpointed.keptOf(unit).values()) {
        for (const storage of storages) {
          this.#release(storageIn(unit, storage));
        }
      }
    }
    this.#place.unit = unit;
    this.#place.pass = "backward";
    for (let at = unit.operations.length - 1; at >= 0; at--) {
      this.#backwardOperation(unit.operations[at] as Operation, unit);
    }
    if (recomputes && !this.#rules.offloadsInputs) {
      for (const storage of unit.inputs) {
        this.#release(storage);
      }
    }
  }

  #backwardOperation(operation: Operation, unit: Unit): void {
    const { inputs, outputs, backwardTemporary, parameters } = operation;
    // Of parameters without results (projections of which sizes alone are known), the gradients are made all the same.
    const needs =
      outputs.length > 0
        ? outputs.some((output) => output.needsGradient)
        : parameters.some(({ trainable }) => trainable);
    if (needs) {
      const temporary = this.#parameterGradients(parameters);
      let accumulating = 0;
      for (const input of inputs) {
        if (input.needsGradient) {
          accumulating += this.#giveGradient(operation, unit, storageIn(unit, input.storage));
        }
      }
      this.#note(operation, backwardTemporary + temporary + accumulating);
      this.#trace.pass(backwardTemporary, temporary, accumulating);
      for (const output of outputs) {
        const isInput = inputs.some((input) => input.storage === output.storage);
        const { id, bytes } = storageIn(unit, output.storage);
        const gradient = this.#gradientOf[id] as number;
        if (!isInput && gradient !== NONE) {
          this.#bytes.working -= bytes;
          this.#trace.free(gradient);
          this.#gradientOf[id] = NONE;
        }
      }
    }
    for (const storage of operation.saves) {
      this.#release(storageIn(unit, storage));
    }
  }

  /** @returns bytes that live only while the gradient is added to another one */
  #giveGradient({ passesGradient, outputs }: Operation, unit: Unit, storage: Storage): Bytes {
    const { id, bytes } = storage;
    if (this.#gradientOf[id] !== NONE) {
      return passesGradient ? 0 : bytes;
    }
    const output = passesGradient ? outputs[0] : undefined;
    if (output !== undefined) {
      // The gradient of a sum is that of its first term; the second gets a copy once others are added to it.
      const from = storageIn(unit, output.storage);
      const moved = this.#gradientOf[from.id] as number;
      if (moved !== NONE && from.bytes === bytes) {
        this.#gradientOf[from.id] = NONE;
        this.#gradientOf[id] = moved;
        return 0;
      }
    }
    this.#gradientOf[id] = this.#trace.allocate(bytes);
    this.#bytes.working += bytes;
    return 0;
  }

  /** @returns temporary bytes: a tied matrix's second gradient, or one that the optimizer consumes at once */
  #parameterGradients(parameters: readonly Parameter[]): Bytes {
    const { gradientsConsumed, gradientsStay, gradientsTwice, fsdpVersion } = this.#rules;
    const isTemporary = gradientsConsumed || (gradientsStay && !gradientsTwice);
    let temporary = 0;
    for (const parameter of parameters) {
      const bytes = this.#gradientBytesOf(parameter);
      if (bytes === 0) {
        continue;
      }
      if (isTemporary || parameter.tied === true) {
        temporary += bytes;
      } else {
        this.#trace.allocate(bytes, fsdpVersion === null ? 0 : REDUCE_STREAM);
        this.#bytes.gradients += bytes;
      }
    }
    return temporary;
  }

  #note({ part }: Operation, extra: Bytes): void {
    this.#place.part = part;
    this.#peak.note(this.#bytes, extra, this.#place);
  }
}
