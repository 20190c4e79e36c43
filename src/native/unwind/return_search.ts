/**
 * Finds the caller of a function without unwinding information by following its code to its return: kernels
 * written in assembly (MKL, OpenBLAS), code created at run time (oneDNN, trampolines). From any point in a
 * function, the path to its `ret` must restore the caller's stack pointer and registers.
 *
 *   instruction ──> next ──> ... ──> ret       loops are left by not jumping back; calls are stepped over
 *          at a branch: straight on first, the other way kept for when this one ends
 *
 * Only instructions that move the stack pointer or restore a register are executed, on the copy of the stack. A
 * path that leads nowhere, or to a `ret` whose target does not follow a call, is abandoned for the next saved
 * one. Source of the instructions' meaning: iced-x86, and Intel's manual, volume 2.
 */

import { createRequire } from "node:module";
import type { MemoryReader } from "../../linux/index.js";
import { float64At } from "../../model/base/columns.js";
import type { Address } from "../../model/base/units.js";
import { RBP, RETURN_ADDRESS, RSP } from "./call_frame_program.js";
import type { ThreadView } from "./thread_view.js";

type Iced = typeof import("iced-x86");
let loaded: Iced | null = null;

/** Loading its WebAssembly takes about 50 ms, and most stacks do not need it. */
function decoderLibrary(): Iced {
  loaded ??= createRequire(import.meta.url)("iced-x86") as Iced;
  return loaded;
}

/** A large unrolled kernel has a few thousand instructions. */
const MOST_INSTRUCTIONS = 8_192;
const MOST_BRANCHES = 32;
/** The registers that a function saves at its beginning; the values that it computes do not matter. */
const MOST_STORED = 64;
const WINDOW = 1024;
const LONGEST_INSTRUCTION = 15;
/** rax rdx rcx rsi rdi r8-r11 by DWARF number: a call may change them. */
const CALLER_SAVED = [0, 1, 2, 4, 5, 8, 9, 10, 11];
/** DWARF's numbers in the order of the instruction encoding: rax rcx rdx rbx rsp rbp rsi rdi r8-r15. */
const DWARF_NUMBERS = [0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];

/** Number of instructions that may still be decoded for all frames of a program together: a few seconds of work. */
export interface Effort {
  left: number;
}

export const ALL_EFFORT = 500_000;

interface Way {
  at: Address;
  readonly registers: Float64Array;
  /** Words stored on this path, which the copy of the stack does not contain. */
  readonly stored: Map<Address, number>;
}

/** The caller's registers; null if no path out was found. */
export function followOut(
  code: MemoryReader,
  view: ThreadView,
  isReturn: (address: Address) => boolean,
  effort: Effort,
): Float64Array | null {
  const walk = new LeftAtEnd(code, view, isReturn, Math.min(MOST_INSTRUCTIONS, effort.left));
  try {
    return walk.find();
  } finally {
    effort.left -= walk.steps;
    walk.free();
  }
}

class LeftAtEnd {
  readonly #iced = decoderLibrary();
  readonly #instruction = new this.#iced.Instruction();
  readonly #info = new this.#iced.InstructionInfoFactory();
  readonly #seen = new Set<Address>();
  readonly #kept: Way[] = [];

  readonly #code: MemoryReader;
  readonly #view: ThreadView;
  readonly #isReturn: (address: Address) => boolean;
  readonly #mostSteps: number;

  constructor(
    code: MemoryReader,
    view: ThreadView,
    isReturn: (address: Address) => boolean,
    mostSteps: number,
  ) {
    this.#code = code;
    this.#view = view;
    this.#isReturn = isReturn;
    this.#mostSteps = mostSteps;
  }

  get steps(): number {
    return this.#seen.size;
  }

  free(): void {
    this.#instruction.free();
    this.#info.free();
  }

  find(): Float64Array | null {
    const registers = Float64Array.from(this.#view.registers);
    this.#kept.push({ at: this.#view.instruction, registers, stored: new Map() });
    for (let way = this.#kept.pop(); way !== undefined; way = this.#kept.pop()) {
      const found = this.#follow(way);
      if (found !== null) {
        return found;
      }
    }
    return null;
  }

  #follow(way: Way): Float64Array | null {
    for (;;) {
      const bytes = this.#window(way.at);
      if (bytes.length === 0) {
        return null;
      }
      const decoder = new this.#iced.Decoder(64, bytes, this.#iced.DecoderOptions.None);
      decoder.ip = BigInt(way.at);
      try {
        const before = way.at;
        while (decoder.canDecode && bytes.length - decoder.position >= this.#least(bytes)) {
          if (this.#seen.has(way.at) || this.#seen.size >= this.#mostSteps) {
            return null;
          }
          this.#seen.add(way.at);
          decoder.decodeOut(this.#instruction);
          if (this.#instruction.isInvalid) {
            return null;
          }
          const next = way.at + this.#instruction.length;
          const outcome = this.#step(way, next);
          if (outcome !== "on") {
            return outcome;
          }
          if (way.at !== next) {
            break; // a jump
          }
        }
        if (way.at === before) {
          return null;
        }
      } finally {
        decoder.free();
      }
    }
  }

  /** A full window may end in the middle of an instruction; a short one ends with the memory. */
  #least(bytes: Uint8Array): number {
    return bytes.length === WINDOW ? LONGEST_INSTRUCTION : 1;
  }

  /** Empty if there is no code. */
  #window(at: Address): Uint8Array {
    if (!Number.isSafeInteger(at)) {
      return new Uint8Array(0);
    }
    for (const length of [WINDOW, 4096 - (at % 4096)]) {
      try {
        return this.#code.bytes(at, Math.min(length, WINDOW));
      } catch {
        // The memory ends earlier.
      }
    }
    return new Uint8Array(0);
  }

  /** Continues the path. Returns the caller's registers if the function returns, or null if the path ends. */
  #step(way: Way, next: Address): Float64Array | null | "on" {
    const { FlowControl } = this.#iced;
    way.at = next;
    switch (this.#instruction.flowControl) {
      case FlowControl.Next:
        this.#execute(way);
        return "on";
      case FlowControl.Call:
      case FlowControl.IndirectCall:
        for (const register of CALLER_SAVED) {
          way.registers[register] = Number.NaN;
        }
        return "on";
      case FlowControl.ConditionalBranch:
        if (this.#kept.length < MOST_BRANCHES) {
          this.#kept.push({
            at: this.#target,
            registers: Float64Array.from(way.registers),
            stored: new Map(way.stored),
          });
        }
        return "on";
      case FlowControl.UnconditionalBranch:
        way.at = this.#target;
        return "on";
      case FlowControl.Return:
        return this.#returned(way);
      default:
        return null;
    }
  }

  get #target(): Address {
    return Number(this.#instruction.nearBranchTarget);
  }

  #returned(way: Way): Float64Array | null {
    const { registers } = way;
    const stack = float64At(registers, RSP);
    const address = this.#word(way, stack);
    if (!(stack >= this.#view.stackPointer && this.#isReturn(address))) {
      return null;
    }
    registers[RSP] = stack + 8;
    registers[RETURN_ADDRESS] = address;
    return registers;
  }

  #execute(way: Way): void {
    const instruction = this.#instruction;
    const iced = this.#iced;
    const { registers } = way;
    const { Mnemonic, OpKind } = iced;
    const stack = float64At(registers, RSP);
    const { mnemonic } = instruction;
    if (mnemonic === Mnemonic.Push) {
      registers[RSP] = stack - 8;
      this.#store(way, stack - 8, this.#operand(way, 0));
    } else if (mnemonic === Mnemonic.Leave) {
      const frame = float64At(registers, RBP);
      registers[RBP] = this.#word(way, frame);
      registers[RSP] = frame + 8;
    } else if (this.#destination() >= 0) {
      const value = this.#result(way);
      if (mnemonic === Mnemonic.Pop) {
        registers[RSP] = stack + 8; // read before the register is set, which may be the same one
      }
      if (value === null) {
        this.#forget(registers);
      } else {
        registers[this.#destination()] = value;
      }
    } else if (mnemonic === Mnemonic.Mov && instruction.op0Kind === OpKind.Memory) {
      this.#store(way, this.#place(way), this.#operand(way, 1));
    } else {
      this.#forget(registers);
    }
  }

  /** The value that the instruction writes to its 64-bit register; null if this code does not compute it. */
  #result(way: Way): number | null {
    const { Mnemonic } = this.#iced;
    switch (this.#instruction.mnemonic) {
      case Mnemonic.Pop:
        return this.#word(way, float64At(way.registers, RSP));
      case Mnemonic.Mov:
        return this.#operand(way, 1);
      case Mnemonic.Lea:
        return this.#place(way);
      case Mnemonic.Add:
        return this.#operand(way, 0) + this.#operand(way, 1);
      case Mnemonic.Sub:
        return this.#operand(way, 0) - this.#operand(way, 1);
      case Mnemonic.And: {
        // Alignment to a power of two.
        const size = -this.#operand(way, 1);
        const value = this.#operand(way, 0);
        return size > 0 ? value - (value % size) : Number.NaN;
      }
      default:
        return null;
    }
  }

  /** Registers written by any other instruction have a value that this code does not compute. */
  #forget(registers: Float64Array): void {
    const instruction = this.#instruction;
    const iced = this.#iced;
    const { OpAccess, OpKind } = iced;
    if (instruction.opCount === 0 || instruction.op0Kind !== OpKind.Register) {
      return;
    }
    const info = this.#info.info(instruction);
    const written = [
      [info.op0Access, instruction.op0Register],
      [info.op1Access, instruction.op1Kind === OpKind.Register ? instruction.op1Register : 0],
    ] as const;
    info.free();
    for (const [access, register] of written) {
      const reads = access === OpAccess.Read || access === OpAccess.None;
      const number = this.#numberOf(iced.RegisterExt.fullRegister(register));
      if (!reads && number >= 0) {
        registers[number] = Number.NaN;
      }
    }
  }

  /** DWARF number of the register that the instruction overwrites completely; -1 if none. */
  #destination(): number {
    const instruction = this.#instruction;
    const iced = this.#iced;
    return instruction.opCount > 0 && instruction.op0Kind === iced.OpKind.Register
      ? this.#numberOf(instruction.op0Register)
      : -1;
  }

  #operand(way: Way, index: number): number {
    const instruction = this.#instruction;
    const iced = this.#iced;
    const { OpKind } = iced;
    const kind = instruction.opKind(index);
    if (kind === OpKind.Register) {
      const number = this.#numberOf(instruction.opRegister(index));
      return number < 0 ? Number.NaN : float64At(way.registers, number);
    }
    if (kind === OpKind.Memory) {
      return this.#word(way, this.#place(way));
    }
    return Number(BigInt.asIntN(64, instruction.immediate(index)));
  }

  #store({ stored }: Way, address: Address, value: number): void {
    if (
      stored.size < MOST_STORED &&
      (address < this.#view.stackPointer || this.#view.holds(address))
    ) {
      stored.set(address, value);
    }
  }

  #word({ stored }: Way, address: Address): number {
    return stored.get(address) ?? this.#view.word(address);
  }

  /** Address of the instruction's memory operand; NaN if unknown. */
  #place({ registers }: Way): Address {
    const instruction = this.#instruction;
    const iced = this.#iced;
    const { memoryBase, memoryIndex } = instruction;
    if (instruction.segmentPrefix !== iced.Register.None) {
      return Number.NaN; // in thread-local storage
    }
    const value = (register: number) =>
      register === iced.Register.None ? 0 : (registers[this.#numberOf(register)] ?? Number.NaN);
    return (
      value(memoryBase) +
      value(memoryIndex) * instruction.memoryIndexScale +
      Number(BigInt.asIntN(64, instruction.memoryDisplacementU64))
    );
  }

  /** DWARF number of a 64-bit register; -1 for any other register. */
  #numberOf(register: number): number {
    return DWARF_NUMBERS[register - this.#iced.Register.RAX] ?? -1;
  }
}
