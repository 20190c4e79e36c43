/** Layers that are built alike have the same operations: one is recorded, and the others share what it has recorded. */
import type { Parameter, Storage, Tape, Tensor, Unit } from "./tape.js";

/** A unit of the tape that was just recorded, from its input to its output. */
export interface RecordedUnit {
  readonly unit: Unit;
  readonly input: Tensor;
  readonly output: Tensor;
  readonly parameters: readonly Parameter[];
  /** That it made. */
  readonly storages: readonly Storage[];
  readonly cachedBytes: number;
}

/** Notes where a unit begins. @returns what it has recorded, once it has ended */
export function recordUnit(tape: Tape, input: Tensor): (output: Tensor) => RecordedUnit {
  const unit = tape.units.at(-1) as Unit;
  const firstParameter = tape.parameters.length;
  const firstStorage = tape.storages.length;
  const { cachedBytes } = tape;
  return (output) => ({
    unit,
    input,
    output,
    parameters: tape.parameters.slice(firstParameter),
    storages: tape.storages.slice(firstStorage),
    cachedBytes: tape.cachedBytes - cachedBytes,
  });
}

/** Makes the unit that has begun a copy that reads `input`. @returns its output; null if a copy would differ */
export function repeatUnit(tape: Tape, recorded: RecordedUnit, input: Tensor): Tensor | null {
  const original = recorded.input;
  if (
    input.elements !== original.elements ||
    input.itemBytes !== original.itemBytes ||
    input.needsGradient !== original.needsGradient ||
    input.storage.bytes !== original.storage.bytes ||
    input.storage.held !== original.storage.held
  ) {
    return null;
  }
  const firstStorage = recorded.storages[0]?.id ?? 0;
  const storages: Storage[] = [];
  const ownOf = (storage: Storage): Storage =>
    storage === original.storage
      ? input.storage
      : // Else another tower's output, which all layers read.
        (storages[storage.id - firstStorage] ?? storage);
  for (const each of recorded.storages) {
    storages.push(tape.copyOf(each, each.recomputedFrom?.map(ownOf) ?? null));
  }
  const unit = tape.units.at(-1) as Unit;
  unit.operations = recorded.unit.operations;
  unit.copy = {
    originalInput: original.storage,
    input: input.storage,
    firstStorage,
    storages,
  };
  for (const each of recorded.parameters) {
    tape.parameters.push({ ...each, unit: tape.unit });
  }
  tape.cachedBytes += recorded.cachedBytes;
  const { elements, itemBytes, needsGradient, storage } = recorded.output;
  return { elements, itemBytes, needsGradient, storage: ownOf(storage) };
}
