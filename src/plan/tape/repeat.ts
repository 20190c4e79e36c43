/** Layers that are built alike have the same operations: one is recorded, and the others are copies of it. */
import type { Operation, Parameter, Storage, Tape, Tensor } from "./tape.js";

/** A unit of the tape that was just recorded, from its input to its output. */
export interface RecordedUnit {
  readonly input: Tensor;
  readonly output: Tensor;
  readonly operations: readonly Operation[];
  readonly parameters: readonly Parameter[];
  /** Ids of the storages that it made: from the first up to, but without, the second. */
  readonly storages: readonly [number, number];
  readonly cachedBytes: number;
}

/** Notes where a unit begins. @returns what it has recorded, once it has ended */
export function recordUnit(tape: Tape, input: Tensor): (output: Tensor) => RecordedUnit {
  const operations = tape.operations.length;
  const parameters = tape.parameters.length;
  const storages = tape.storageCount;
  const { cachedBytes } = tape;
  return (output) => ({
    input,
    output,
    operations: tape.operations.slice(operations),
    parameters: tape.parameters.slice(parameters),
    storages: [storages, tape.storageCount],
    cachedBytes: tape.cachedBytes - cachedBytes,
  });
}

/** Appends a copy that reads `input`, to the unit that has begun. @returns its output; null if a copy would differ */
export function repeatUnit(tape: Tape, unit: RecordedUnit, input: Tensor): Tensor | null {
  const [from, to] = unit.storages;
  if (
    input.elements !== unit.input.elements ||
    input.itemBytes !== unit.input.itemBytes ||
    input.needsGradient !== unit.input.needsGradient ||
    input.storage.bytes !== unit.input.storage.bytes ||
    input.storage.held !== unit.input.storage.held
  ) {
    return null;
  }
  const made: (Storage | undefined)[] = new Array(to - from);
  const storageOf = (storage: Storage): Storage => {
    if (storage === unit.input.storage) {
      return input.storage;
    }
    const index = storage.id - from;
    if (index < 0 || index >= made.length) {
      return storage; // Another tower's output, which all layers read.
    }
    const known = made[index];
    if (known !== undefined) {
      return known;
    }
    const own = tape.copyOf(storage, storage.recomputedFrom?.map(storageOf) ?? null);
    made[index] = own;
    return own;
  };
  const tensorOf = ({ elements, itemBytes, needsGradient, storage }: Tensor): Tensor => ({
    elements,
    itemBytes,
    needsGradient,
    storage: storageOf(storage),
  });
  const parameters = new Map(
    unit.parameters.map((each) => [each, { ...each, unit: tape.unit }] as const),
  );
  for (const each of parameters.values()) {
    tape.parameters.push(each);
  }
  const index = tape.unit;
  for (const operation of unit.operations) {
    // Field by field: the searches of --fit copy millions of operations, and a spread takes several times as long.
    tape.operations.push({
      name: operation.name,
      part: operation.part,
      unit: index,
      inputs: operation.inputs.map(tensorOf),
      outputs: operation.outputs.map(tensorOf),
      saves: operation.saves.length === 0 ? operation.saves : operation.saves.map(storageOf),
      parameters:
        operation.parameters.length === 0
          ? operation.parameters
          : operation.parameters.map((each) => parameters.get(each) ?? each),
      forwardTemporary: operation.forwardTemporary,
      backwardTemporary: operation.backwardTemporary,
      expensive: operation.expensive,
      passesGradient: operation.passesGradient,
      outlivesCheckpoints: operation.outlivesCheckpoints,
    });
  }
  tape.cachedBytes += unit.cachedBytes;
  return tensorOf(unit.output);
}
