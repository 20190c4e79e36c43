/** Rows of three numbers, each stored once. */
import { growingUint32 } from "../../model/base/growing_column.js";

const EMPTY = -1;

export class TripleTable {
  readonly columns = [growingUint32(), growingUint32(), growingUint32()] as const;
  #slots = new Int32Array(1024).fill(EMPTY);

  get length(): number {
    return this.columns[0].length;
  }

  /** The row of three numbers, or -1. */
  find(a: number, b: number, c: number): number {
    return this.#slots[this.#slotOf(a, b, c)] ?? EMPTY;
  }

  /** The row of three numbers, which is added if it is new. */
  intern(a: number, b: number, c: number): number {
    const slot = this.#slotOf(a, b, c);
    const known = this.#slots[slot] ?? EMPTY;
    if (known !== EMPTY) {
      return known;
    }
    const [first, second, third] = this.columns;
    const row = this.length;
    this.#slots[slot] = row;
    first.push(a);
    second.push(b);
    third.push(c);
    if (this.length * 2 > this.#slots.length) {
      this.#widen();
    }
    return row;
  }

  /** Where the row is or belongs. */
  #slotOf(a: number, b: number, c: number): number {
    const [first, second, third] = this.columns;
    const mask = this.#slots.length - 1;
    let slot = mix(a, b, c) & mask;
    for (let row = this.#slots[slot] ?? 0; row !== EMPTY; row = this.#slots[slot] ?? 0) {
      if (first.at(row) === a && second.at(row) === b && third.at(row) === c) {
        break;
      }
      slot = (slot + 1) & mask;
    }
    return slot;
  }

  #widen(): void {
    const [first, second, third] = this.columns;
    const slots = new Int32Array(this.#slots.length * 2).fill(EMPTY);
    const mask = slots.length - 1;
    for (let row = 0; row < this.length; row++) {
      let slot = mix(first.at(row), second.at(row), third.at(row)) & mask;
      while (slots[slot] !== EMPTY) {
        slot = (slot + 1) & mask;
      }
      slots[slot] = row;
    }
    this.#slots = slots;
  }
}

function mix(a: number, b: number, c: number): number {
  let hash = Math.imul(a, 0x9e3779b1) ^ Math.imul(b, 0x85ebca6b) ^ Math.imul(c, 0xc2b2ae35);
  hash = Math.imul(hash ^ (hash >>> 16), 0x7feb352d);
  return (hash ^ (hash >>> 15)) >>> 0;
}
