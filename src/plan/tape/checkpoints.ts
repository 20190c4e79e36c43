/** What checkpointing keeps of the layers that it recomputes. */
import type { Operation, Storage, Unit } from "./tape.js";

export type Checkpointing = "none" | "selective" | "full";

/** By operation; storages as the operations name them. */
export type KeptStorages = ReadonlyMap<Operation, readonly Storage[]>;

/**
 * The tensors that checkpointing keeps of a unit: what outlives it, and with `selective` attention and every second
 * product (the policy of torchtitan). Units that are built alike share them.
 */
export class CheckpointedUnits {
  readonly #known = new Map<Unit["operations"], KeptStorages>();

  constructor(readonly checkpointing: Checkpointing) {}

  keptOf({ operations }: Unit): KeptStorages {
    const known = this.#known.get(operations);
    if (known !== undefined) {
      return known;
    }
    const kept = new Map<Operation, Storage[]>();
    const isSelective = this.checkpointing === "selective";
    let products = 0;
    for (const operation of operations) {
      if (operation.outlivesCheckpoints) {
        kept.set(operation, [...operation.saves]);
      }
      if (!isSelective) {
        continue;
      }
      if (operation.expensive === "matmul") {
        products += 1;
      }
      if (
        operation.expensive === "attention" ||
        (operation.expensive === "matmul" && products % 2 === 1)
      ) {
        const outputs = operation.outputs.map(({ storage }) => storage);
        kept.set(operation, [...(kept.get(operation) ?? []), ...outputs]);
      }
    }
    this.#known.set(operations, kept);
    return kept;
  }
}
