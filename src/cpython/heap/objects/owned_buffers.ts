import { uint32At } from "../../../model/base/columns.js";
import { growingFloat64, growingUint32 } from "../../../model/base/growing_column.js";
import type { Address } from "../../../model/base/units.js";
import type { NodeId } from "../../../model/heap/heap_graph.js";

/** The owner of the buffer at an address: a list's items, a dict's table, an array's data. */
export class OwnedBuffers {
  readonly #addresses = growingFloat64();
  readonly #owners = growingUint32();
  /** Rows by address. There may be millions, and most are never requested, so they are sorted on first use. */
  #order: Uint32Array | null = null;

  add(address: Address, owner: NodeId): void {
    this.#addresses.push(address);
    this.#owners.push(owner);
    this.#order = null;
  }

  /** The owner of the buffer that begins at the address; 0 if there is none. */
  ownerOf(address: Address): NodeId {
    const addresses = this.#addresses;
    this.#order ??= Uint32Array.from({ length: addresses.length }, (_, row) => row).sort(
      (a, b) => addresses.at(a) - addresses.at(b),
    );
    const order = this.#order;
    const place = lastAtMost(order.length, (n) => addresses.at(uint32At(order, n)), address);
    return place >= 0 && addresses.at(uint32At(order, place)) === address
      ? this.#owners.at(uint32At(order, place))
      : 0;
  }
}

/** Index of the last of ascending values that is not larger; -1 if there is none. */
export function lastAtMost(length: number, at: (place: number) => number, value: number): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (at(middle) <= value) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low - 1;
}
