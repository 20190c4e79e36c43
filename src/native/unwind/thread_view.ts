/** A paused thread in one of its frames: registers, and the copy of its stack. */

import type { HeldThread, MemoryReader } from "../../linux/index.js";
import { float64At } from "../../model/base/columns.js";
import type { Address, Bytes } from "../../model/base/units.js";
import { RETURN_ADDRESS, RSP } from "./call_frame_program.js";

interface StackView {
  readonly start: Address;
  readonly words: DataView;
}

export class ThreadView {
  readonly #stacks: readonly StackView[];

  /** Memory that is in no copy; only constant memory is valid here. */
  readonly #code: MemoryReader;

  constructor(
    thread: HeldThread,
    /** By DWARF number; NaN if unknown in this frame. */
    public registers: Float64Array,
    code: MemoryReader,
  ) {
    this.#code = code;

    this.#stacks = thread.stacks.map(({ start, bytes }) => ({
      start,
      words: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength),
    }));
  }

  get instruction(): Address {
    return float64At(this.registers, RETURN_ADDRESS);
  }

  get stackPointer(): Address {
    return float64At(this.registers, RSP);
  }

  register(number: number): number {
    return this.registers[number] ?? Number.NaN;
  }

  /** A word of the stack; NaN if no copy contains it. */
  word(address: Address): number {
    const stack = this.#holding(address, 8);
    if (stack === undefined) {
      return Number.NaN;
    }
    const at = address - stack.start;
    return stack.words.getUint32(at, true) + stack.words.getUint32(at + 4, true) * 2 ** 32;
  }

  /**
   * `length` bytes, at most 8, for expressions. Throws TM-E024 if neither a stack nor the program's constant
   * memory contains them.
   */
  read(address: Address, length: Bytes): number {
    const stack = this.#holding(address, length);
    let value = 0;
    for (let index = Math.min(length, 8) - 1; index >= 0; index--) {
      const byte =
        stack === undefined
          ? this.#code.uint8(address + index)
          : stack.words.getUint8(address - stack.start + index);
      value = value * 256 + byte;
    }
    return value;
  }

  holds(address: Address): boolean {
    return this.#holding(address, 8) !== undefined;
  }

  #holding(address: Address, length: Bytes): StackView | undefined {
    return this.#stacks.find(
      ({ start, words }) => address >= start && address + length <= start + words.byteLength,
    );
  }
}
