/**
 * Numbers by address. A replay looks up each event's address; a Map, which allocates memory for each address above
 * 2^31, would take most of the replay's time.
 */
import type { Address } from "../../model/base/units.js";

const EMPTY = -1;
const FEWEST_SLOTS = 1024;

export class AddressMap {
  size = 0;
  /** {@link EMPTY} where nothing is stored; open addressing. */
  #addresses = new Float64Array(FEWEST_SLOTS).fill(EMPTY);
  #numbers = new Float64Array(FEWEST_SLOTS);

  /** The address's slot, valid until the next change; -1 if it has no number. */
  find(address: Address): number {
    const mask = this.#addresses.length - 1;
    for (let slot = hashOf(address) & mask; ; slot = (slot + 1) & mask) {
      const found = this.#addresses[slot];
      if (found === address) {
        return slot;
      }
      if (found === EMPTY) {
        return -1;
      }
    }
  }

  /** The number in a slot that {@link find} returned. */
  at(slot: number): number {
    return this.#numbers[slot] ?? 0;
  }

  set(address: Address, number: number): void {
    const known = this.find(address);
    if (known >= 0) {
      this.#numbers[known] = number;
      return;
    }
    if (++this.size * 2 > this.#addresses.length) {
      this.#widen();
    }
    this.#insert(address, number);
  }

  /** Empties a slot that {@link find} returned, and moves back the entries that it had displaced. */
  remove(slot: number): void {
    this.size -= 1;
    const mask = this.#addresses.length - 1;
    let hole = slot;
    for (let at = (slot + 1) & mask; this.#addresses[at] !== EMPTY; at = (at + 1) & mask) {
      const address = this.#addresses[at] ?? 0;
      if (((at - hashOf(address)) & mask) >= ((at - hole) & mask)) {
        this.#addresses[hole] = address;
        this.#numbers[hole] = this.#numbers[at] ?? 0;
        hole = at;
      }
    }
    this.#addresses[hole] = EMPTY;
  }

  addresses(): Float64Array {
    return this.#addresses.filter((address) => address !== EMPTY);
  }

  #insert(address: Address, number: number): void {
    const mask = this.#addresses.length - 1;
    let slot = hashOf(address) & mask;
    while (this.#addresses[slot] !== EMPTY) {
      slot = (slot + 1) & mask;
    }
    this.#addresses[slot] = address;
    this.#numbers[slot] = number;
  }

  #widen(): void {
    const addresses = this.#addresses;
    const numbers = this.#numbers;
    this.#addresses = new Float64Array(addresses.length * 2).fill(EMPTY);
    this.#numbers = new Float64Array(addresses.length * 2);
    addresses.forEach((address, slot) => {
      if (address !== EMPTY) {
        this.#insert(address, numbers[slot] ?? 0);
      }
    });
  }
}

function hashOf(address: Address): number {
  const hash = Math.imul(address | 0, 0x9e3779b1) ^ Math.imul((address / 2 ** 32) | 0, 0x85ebca6b);
  return (hash ^ (hash >>> 15)) >>> 0;
}
