/**
 * A DWARF expression in unwinding information: a program for a stack machine of 64-bit words. Entries of a
 * procedure linkage table and frames of signal handlers use it. It is never in a hot loop, so words are BigInt
 * here. Source: DWARF 5, section 2.5; operation numbers in section 7.7.1.
 */
import type { MemoryReader } from "../../linux/index.js";
import type { Address, Bytes } from "../../model/base/units.js";
import { DamagedUnwinding, DwarfCursor } from "./dwarf_cursor.js";
import type { Program } from "./frame_description.js";

/** The values that an expression may read. Both functions throw, or return NaN, for unknown values. */
interface ExpressionContext {
  register(number: number): number;
  /** A word of `length` bytes in the thread's stack or elsewhere in its memory. */
  read(address: Address, length: Bytes): number;
}

const MOST_STEPS = 4096;
const DEEPEST = 64;

/** The top of the stack after the last operation. If `first` is given, the stack starts with it. */
export function evaluate(
  reader: MemoryReader,
  { start, end }: Program,
  context: ExpressionContext,
  first: Address | null,
): number {
  const machine = new ExpressionMachine(new DwarfCursor(reader, start, end), start, context);
  if (first !== null) {
    machine.push(word(first));
  }
  for (let step = 0; !machine.cursor.done; step++) {
    if (step === MOST_STEPS) {
      throw new DamagedUnwinding("an expression without an end");
    }
    machine.step();
  }
  return Number(machine.pop());
}

function word(value: number): bigint {
  if (!Number.isInteger(value)) {
    throw new DamagedUnwinding("an expression that uses an unknown value");
  }
  return BigInt.asUintN(64, BigInt(value));
}

const BINARY: ReadonlyMap<number, (below: bigint, top: bigint) => bigint> = new Map([
  [0x1a, (a: bigint, b: bigint) => a & b],
  [0x1b, (a, b) => signed(a) / nonZero(signed(b))],
  [0x1c, (a, b) => a - b],
  [0x1d, (a, b) => a % nonZero(b)],
  [0x1e, (a, b) => a * b],
  [0x21, (a, b) => a | b],
  [0x22, (a, b) => a + b],
  [0x24, (a, b) => (b < 64n ? a << b : 0n)],
  [0x25, (a, b) => (b < 64n ? a >> b : 0n)],
  [0x26, (a, b) => signed(a) >> (b < 64n ? b : 63n)],
  [0x27, (a, b) => a ^ b],
  [0x29, (a, b) => truth(a === b)],
  [0x2a, (a, b) => truth(signed(a) >= signed(b))],
  [0x2b, (a, b) => truth(signed(a) > signed(b))],
  [0x2c, (a, b) => truth(signed(a) <= signed(b))],
  [0x2d, (a, b) => truth(signed(a) < signed(b))],
  [0x2e, (a, b) => truth(a !== b)],
]);

const signed = (value: bigint) => BigInt.asIntN(64, value);
const truth = (holds: boolean) => (holds ? 1n : 0n);
function nonZero(value: bigint): bigint {
  if (value === 0n) {
    throw new DamagedUnwinding("a division by zero");
  }
  return value;
}

class ExpressionMachine {
  readonly #stack: bigint[] = [];

  readonly #start: Address;
  readonly #context: ExpressionContext;

  constructor(
    readonly cursor: DwarfCursor,
    start: Address,
    context: ExpressionContext,
  ) {
    this.#start = start;
    this.#context = context;
  }

  step(): void {
    const operation = this.cursor.uint8();
    const binary = BINARY.get(operation);
    const other = OTHERS.get(operation);
    if (binary !== undefined) {
      const top = this.pop();
      this.push(binary(this.pop(), top));
    } else if (other !== undefined) {
      other(this, this.cursor);
    } else if (operation >= 0x30 && operation <= 0x4f) {
      this.push(BigInt(operation - 0x30)); // lit0 to lit31
    } else if (operation >= 0x70 && operation <= 0x8f) {
      this.pushRegister(operation - 0x70, this.cursor.sleb128()); // breg0 to breg31
    } else {
      throw new DamagedUnwinding(`unknown operation ${operation} in an expression`);
    }
  }

  push(value: bigint): void {
    if (this.#stack.length === DEEPEST) {
      throw new DamagedUnwinding("an expression that is nested too deeply");
    }
    this.#stack.push(BigInt.asUintN(64, value));
  }

  pushRegister(number: number, offset: number): void {
    this.push(word(this.#context.register(number)) + BigInt(offset));
  }

  pop(): bigint {
    const value = this.peek(0);
    this.#stack.pop();
    return value;
  }

  /** The entry at `depth` below the top. */
  peek(depth: number): bigint {
    const value = this.#stack[this.#stack.length - 1 - depth];
    if (value === undefined) {
      throw new DamagedUnwinding("an expression that pops an empty stack");
    }
    return value;
  }

  read(length: Bytes): void {
    this.push(word(this.#context.read(Number(this.pop()), length)));
  }

  jump(distance: number): void {
    const to = this.cursor.at + distance;
    if (to < this.#start || to > this.cursor.end) {
      throw new DamagedUnwinding("a jump outside its expression");
    }
    this.cursor.at = to;
  }
}

const OTHERS: ReadonlyMap<number, (machine: ExpressionMachine, cursor: DwarfCursor) => void> =
  new Map<number, (machine: ExpressionMachine, cursor: DwarfCursor) => void>([
    [0x03, (machine, cursor) => machine.push(word(cursor.uint64()))], // addr
    [0x06, (machine) => machine.read(8)], // deref
    [0x08, (machine, cursor) => machine.push(word(cursor.uint8()))], // constants of each size
    [0x09, (machine, cursor) => machine.push(word(cursor.int8()))],
    [0x0a, (machine, cursor) => machine.push(word(cursor.uint16()))],
    [0x0b, (machine, cursor) => machine.push(word(cursor.int16()))],
    [0x0c, (machine, cursor) => machine.push(word(cursor.uint32()))],
    [0x0d, (machine, cursor) => machine.push(word(cursor.int32()))],
    [0x0e, (machine, cursor) => machine.push(word(cursor.uint64()))],
    [0x0f, (machine, cursor) => machine.push(word(cursor.int64()))],
    [0x10, (machine, cursor) => machine.push(word(cursor.uleb128()))],
    [0x11, (machine, cursor) => machine.push(word(cursor.sleb128()))],
    [0x12, (machine) => machine.push(machine.peek(0))], // dup
    [0x13, (machine) => void machine.pop()], // drop
    [0x14, (machine) => machine.push(machine.peek(1))], // over
    [0x15, (machine, cursor) => machine.push(machine.peek(cursor.uint8()))], // pick
    [0x16, (machine) => pushed(machine, machine.pop(), machine.pop())], // swap
    [0x17, (machine) => rotate(machine)],
    [0x19, (machine) => machine.push(magnitude(signed(machine.pop())))], // abs
    [0x1f, (machine) => machine.push(-machine.pop())], // neg
    [0x20, (machine) => machine.push(~machine.pop())], // not
    [0x23, (machine, cursor) => machine.push(machine.pop() + word(cursor.uleb128()))], // plus_uconst
    [0x28, (machine, cursor) => branch(machine, cursor.int16())],
    [0x2f, (machine, cursor) => machine.jump(cursor.int16())], // skip
    [0x92, (machine, cursor) => machine.pushRegister(cursor.uleb128(), cursor.sleb128())], // bregx
    [0x94, (machine, cursor) => machine.read(cursor.uint8())], // deref_size
    [0x96, () => {}], // nop
  ]);

const magnitude = (value: bigint) => (value < 0n ? -value : value);

function pushed(machine: ExpressionMachine, ...values: readonly bigint[]): void {
  for (const value of values) {
    machine.push(value);
  }
}

/** Moves the top below the next two entries. */
function rotate(machine: ExpressionMachine): void {
  const [top, second, third] = [machine.pop(), machine.pop(), machine.pop()];
  pushed(machine, top, third, second);
}

function branch(machine: ExpressionMachine, distance: number): void {
  if (machine.pop() !== 0n) {
    machine.jump(distance);
  }
}
