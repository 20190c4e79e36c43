import { type Storage, storageIn, type Tape, type Tensor } from "./tape.js";

/** Where each storage is used for the last time. Operations count over all units of the tape. */
export interface Uses {
  /** Index of the last operation that reads or makes a storage, by the storage's id; -1: none does. */
  readonly last: Int32Array;
  /** The first storage whose last use an operation is, by its index, and the next one, by the storage's id; -1: none. */
  readonly firstEnding: Int32Array;
  readonly nextEnding: Int32Array;
  /** Index of the first operation of each unit. */
  readonly firstOperations: readonly number[];
}

export function usesOf({ units, storages }: Tape): Uses {
  const firstOperations: number[] = [];
  let count = 0;
  for (const { operations } of units) {
    firstOperations.push(count);
    count += operations.length;
  }
  const last = new Int32Array(storages.length).fill(-1);
  const firstEnding = new Int32Array(count).fill(-1);
  const nextEnding = new Int32Array(storages.length).fill(-1);
  for (const [unitIndex, unit] of [...units.entries()].reverse()) {
    for (let index = unit.operations.length - 1; index >= 0; index--) {
      const operation = unit.operations[index];
      const at = (firstOperations[unitIndex] as number) + index;
      let latest = -1;
      const note = (storage: Storage): void => {
        const { id } = storageIn(unit, storage);
        if (last[id] !== -1) {
          return;
        }
        last[id] = at;
        if (latest < 0) {
          firstEnding[at] = id;
        } else {
          nextEnding[latest] = id;
        }
        latest = id;
      };
      const noteAll = (tensors: readonly Tensor[] = []): void => {
        for (const { storage } of tensors) {
          note(storage);
        }
      };
      noteAll(operation?.inputs);
      noteAll(operation?.outputs);
    }
  }
  return { last, firstEnding, nextEnding, firstOperations };
}
