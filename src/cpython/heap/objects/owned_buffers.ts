import { uint32At } from "../../../model/base/columns.js";
import { growingFloat64, growingUint32 } from "../../../model/base/growing_column.js";
import type { Address } from "../../../model/base/units.js";
import type { NodeId } from "../../../model/heap/heap_graph.js";
import { HashedAddresses } from "../memory/hashed_addresses.js";

/** The owner of the buffer at an address: a list's items, a dict's table, an array's data. */
export class OwnedBuffers {
  readonly #addresses = growingFloat64();
  readonly #owners = growingUint32();
  /** The owner of each address by its number. There may be millions, and most are never requested. */
  #known: { readonly numbers: HashedAddresses; readonly owners: Uint32Array } | null = null;

  add(address: Address, owner: NodeId): void {
    this.#addresses.push(address);
    this.#owners.push(owner);
    this.#known = null;
  }

  /** The owner of the buffer that begins at the address; 0 if there is none. */
  ownerOf(address: Address): NodeId {
    this.#known ??= this.#number();
    const number = this.#known.numbers.find(address);
    return number < 0 ? 0 : uint32At(this.#known.owners, number);
  }

  #number() {
    const { length } = this.#addresses;
    const numbers = new HashedAddresses();
    const owners = new Uint32Array(length);
    for (let row = 0; row < length; row++) {
      owners[numbers.add(this.#addresses.at(row))] = this.#owners.at(row);
    }
    return { numbers, owners };
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
