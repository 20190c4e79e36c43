/**
 * Lists that consist only of values fetched from the memo, by the numbers of their memo entries. A trace contains
 * the same stack thousands of times, as a list of the same frames; a known list need not be built again.
 */
import { growingUint32 } from "../../model/base/growing_column.js";
import { Opcode } from "./pickle_opcodes.js";

/** Numbers of all lists together: 16 MiB. */
const MOST_NUMBERS = 4 * 2 ** 20;
/** Numbers of one list; longer lists are built each time. */
const LONGEST = 1024;

export class KnownLists {
  /** The list that was read last. */
  readonly numbers = new Uint32Array(LONGEST);
  count = 0;
  #hash = 0;
  #kept = new Uint32Array(4096);
  /** By list: the end of its numbers, which begin where the previous list ends; their hash; what it became. */
  #ends = growingUint32();
  #hashes = growingUint32();
  #values = growingUint32();
  /** List + 1; 0 is empty. */
  #slots = new Uint32Array(1024);

  clear(): void {
    this.#ends = growingUint32();
    this.#hashes = growingUint32();
    this.#values = growingUint32();
    this.#slots.fill(0);
  }

  /**
   * Reads a list from its first value on.
   * @param entries the number of memo entries
   * @returns where it ends; 0 if it contains anything else, is too long, or does not end in `view`
   */
  read(view: DataView, from: number, entries: number): number {
    const { numbers } = this;
    const last = view.byteLength - 5;
    let at = from;
    let count = 0;
    let hash = 0;
    while (at <= last && count < LONGEST) {
      const opcode = view.getUint8(at);
      let number: number;
      if (opcode === Opcode.LONG_BINGET) {
        number = view.getUint32(at + 1, true);
        at += 5;
      } else if (opcode === Opcode.BINGET) {
        number = view.getUint8(at + 1);
        at += 2;
      } else if (opcode === Opcode.APPENDS && count > 0) {
        this.count = count;
        this.#hash = (hash ^ (hash >>> 15)) >>> 0;
        return at + 1;
      } else {
        return 0;
      }
      if (number >= entries) {
        return 0;
      }
      numbers[count++] = number;
      hash = Math.imul(hash ^ number, 0x9e3779b1);
    }
    return 0;
  }

  /** What the list that was read became before; -1 if it is not known. */
  find(): number {
    const mask = this.#slots.length - 1;
    for (let slot = this.#hash & mask; ; slot = (slot + 1) & mask) {
      const list = (this.#slots[slot] ?? 0) - 1;
      if (list < 0) {
        return -1;
      }
      if (this.#hashes.at(list) === this.#hash && this.#equals(list)) {
        return this.#values.at(list);
      }
    }
  }

  /** Keeps what the list that was read became, unless too much is kept already. */
  add(value: number): void {
    const from = this.#startOf(this.#ends.length);
    const to = from + this.count;
    if (to > MOST_NUMBERS) {
      return;
    }
    if (to > this.#kept.length) {
      const grown = new Uint32Array(this.#kept.length * 2);
      grown.set(this.#kept);
      this.#kept = grown;
    }
    this.#kept.set(this.numbers.subarray(0, this.count), from);
    this.#ends.push(to);
    this.#hashes.push(this.#hash);
    this.#values.push(value);
    if (this.#ends.length * 2 <= this.#slots.length) {
      this.#put(this.#ends.length - 1);
      return;
    }
    this.#slots = new Uint32Array(this.#slots.length * 2);
    for (let list = 0; list < this.#ends.length; list++) {
      this.#put(list);
    }
  }

  #startOf(list: number): number {
    return list === 0 ? 0 : this.#ends.at(list - 1);
  }

  #equals(list: number): boolean {
    const from = this.#startOf(list);
    if (this.#ends.at(list) - from !== this.count) {
      return false;
    }
    const kept = this.#kept;
    const { numbers, count } = this;
    for (let at = 0; at < count; at++) {
      if (kept[from + at] !== numbers[at]) {
        return false;
      }
    }
    return true;
  }

  #put(list: number): void {
    const mask = this.#slots.length - 1;
    let slot = this.#hashes.at(list) & mask;
    while (this.#slots[slot] !== 0) {
      slot = (slot + 1) & mask;
    }
    this.#slots[slot] = list + 1;
  }
}
