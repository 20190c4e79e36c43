/** A set of addresses that numbers its members in order of insertion: open addressing over columns. */
import type { Address } from "../../../model/base/units.js";

const EMPTY = 0xffffffff;

export class HashedAddresses {
  size = 0;
  #addresses = new Float64Array(1024);
  #slots = new Uint32Array(2048).fill(EMPTY);

  /** The number of an address, which is assigned if the address is new. */
  add(address: Address): number {
    let slot = this.#slotOf(address);
    let number = this.#slots[slot] ?? 0;
    if (number !== EMPTY) {
      return number;
    }
    number = this.size++;
    if (number === this.#addresses.length) {
      this.#grow();
      slot = this.#slotOf(address);
    }
    this.#addresses[number] = address;
    this.#slots[slot] = number;
    return number;
  }

  /** The number of an address; -1 if it is not in the set. */
  find(address: Address): number {
    const number = this.#slots[this.#slotOf(address)] ?? 0;
    return number === EMPTY ? -1 : number;
  }

  at(number: number): Address {
    return this.#addresses[number] ?? 0;
  }

  #slotOf(address: Address): number {
    const mask = this.#slots.length - 1;
    const high = (address / 2 ** 32) >>> 0;
    let slot = (Math.imul((address >>> 3) ^ Math.imul(high, 0x85ebca6b), 0x9e3779b1) >>> 3) & mask;
    for (let number = this.#slots[slot] ?? 0; number !== EMPTY; number = this.#slots[slot] ?? 0) {
      if (this.#addresses[number] === address) {
        return slot;
      }
      slot = (slot + 1) & mask;
    }
    return slot;
  }

  #grow(): void {
    const grown = new Float64Array(this.#addresses.length * 2);
    grown.set(this.#addresses);
    this.#addresses = grown;
    this.#slots = new Uint32Array(this.#slots.length * 2).fill(EMPTY);
    for (let number = 0; number < this.size - 1; number++) {
      this.#slots[this.#slotOf(this.#addresses[number] ?? 0)] = number;
    }
  }
}
