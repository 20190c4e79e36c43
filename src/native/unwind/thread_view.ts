/** A thread as it stood in one of its frames: registers, and the copy of its stack. */
import type { HeldThread, MemoryReader } from "../../linux/index.js";
import type { Address, Bytes } from "../../model/units.js";
import { RETURN_ADDRESS, RSP } from "./call_frame_program.js";

export class ThreadView {
  readonly #stack: DataView | null;
  readonly #start: Address;

  constructor(
    thread: HeldThread,
    /** By DWARF's numbers; NaN: not known in this frame. */
    public registers: Float64Array,
    /** What is not in the copy: constant memory alone makes sense there. */
    private readonly code: MemoryReader,
  ) {
    const { stack } = thread;
    this.#start = stack?.start ?? 0;
    this.#stack =
      stack === null
        ? null
        : new DataView(stack.bytes.buffer, stack.bytes.byteOffset, stack.bytes.byteLength);
  }

  get instruction(): Address {
    return this.registers[RETURN_ADDRESS] as number;
  }

  get stackPointer(): Address {
    return this.registers[RSP] as number;
  }

  register(number: number): number {
    return this.registers[number] ?? Number.NaN;
  }

  /** A word of the stack; NaN where the copy does not hold it. */
  word(address: Address): number {
    const at = this.#offset(address, 8);
    if (at < 0) {
      return Number.NaN;
    }
    const stack = this.#stack as DataView;
    return stack.getUint32(at, true) + stack.getUint32(at + 4, true) * 2 ** 32;
  }

  /** For expressions. Throws TM-E024 where neither the stack nor the program's constant memory holds it. */
  read(address: Address, length: Bytes): number {
    const at = this.#offset(address, length);
    if (at >= 0 && length === 8) {
      return this.word(address);
    }
    const byte = (index: number) =>
      at >= 0 ? (this.#stack as DataView).getUint8(at + index) : this.code.uint8(address + index);
    let value = 0;
    for (let index = Math.min(length, 8) - 1; index >= 0; index--) {
      value = value * 256 + byte(index);
    }
    return value;
  }

  holds(address: Address): boolean {
    return this.#offset(address, 8) >= 0;
  }

  #offset(address: Address, length: Bytes): number {
    const at = address - this.#start;
    return this.#stack !== null && at >= 0 && at + length <= this.#stack.byteLength ? at : -1;
  }
}
