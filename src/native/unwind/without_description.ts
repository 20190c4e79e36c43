/**
 * The caller of code that no frame description covers: code made at run time, and assembly by hand. In the order
 * in which they can be trusted:
 *
 *   the return path of signal handlers, by its bytes      the kernel left all registers above the stack pointer
 *   what the code does before it returns                  "add $8, %rsp; pop %rbx; ret": the rest of a function
 *                                                         that only waits for its call, as CPython's trampolines
 *   the frame pointer                                     where it leads up the stack, to an address of code
 */
import type { MemoryReader } from "../../linux/index.js";
import type { Address } from "../../model/units.js";
import { RBP, REGISTER_COUNT, RETURN_ADDRESS, RSP } from "./call_frame_program.js";
import type { ThreadView } from "./thread_view.js";

/** mov $15, %rax (or %eax); syscall. */
const SIGNAL_RETURNS = [
  [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05],
  [0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05],
];
/** Where struct ucontext (uapi/asm/ucontext.h, sigcontext.h) holds each register, by DWARF's numbers. */
const SIGNAL_CONTEXT: readonly number[] = [
  144, 136, 152, 128, 112, 104, 120, 160, 40, 48, 56, 64, 72, 80, 88, 96, 168,
];
const LONGEST_EPILOGUE = 64;
/** As DWARF numbers the registers that instructions number 0 to 7. */
const ENCODED = [0, 2, 1, 3, 7, 6, 4, 5];

/** Where code is; a return address outside of it is none. */
export type IsCode = (address: Address) => boolean;

/** The caller's registers; null where nothing tells. */
export function callerWithoutDescription(
  code: MemoryReader,
  view: ThreadView,
  isCode: IsCode,
  innermost: boolean,
): { readonly registers: Float64Array; readonly isSignalFrame: boolean } | null {
  const signal = signalCaller(code, view);
  if (signal !== null) {
    return { registers: signal, isSignalFrame: true };
  }
  // The innermost function may be anywhere in its code; the others stand behind a call.
  const registers =
    (innermost ? null : epilogueCaller(code, view, isCode)) ?? framePointerCaller(view, isCode);
  return registers === null ? null : { registers, isSignalFrame: false };
}

function signalCaller(code: MemoryReader, view: ThreadView): Float64Array | null {
  const at = view.instruction;
  const bytes = bytesAt(code, at, 9);
  if (!SIGNAL_RETURNS.some((pattern) => pattern.every((byte, index) => bytes[index] === byte))) {
    return null;
  }
  const context = view.stackPointer;
  return Float64Array.from(SIGNAL_CONTEXT, (offset) => view.word(context + offset));
}

function epilogueCaller(code: MemoryReader, view: ThreadView, isCode: IsCode): Float64Array | null {
  const bytes = bytesAt(code, view.instruction, LONGEST_EPILOGUE);
  const registers = Float64Array.from(view.registers);
  let stack = view.stackPointer;
  for (let at = 0; at < bytes.length; ) {
    const [first, second, third, fourth] = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    if (first === 0xc3 || (first === 0xf3 && second === 0xc3)) {
      return returned(registers, stack, view, isCode);
    }
    if (first === 0x48 && second === 0x83 && third === 0xc4) {
      stack += ((fourth ?? 0) << 24) >> 24; // add $imm8, %rsp
      at += 4;
    } else if (first === 0x48 && second === 0x81 && third === 0xc4) {
      const [a = 0, b = 0, c = 0, d = 0] = bytes.slice(at + 3, at + 7);
      stack += a | (b << 8) | (c << 16) | (d << 24); // add $imm32, %rsp
      at += 7;
    } else if (first === 0xc9) {
      stack = registers[RBP] as number; // leave
      registers[RBP] = view.word(stack);
      stack += 8;
      at += 1;
    } else {
      const extended = first === 0x41;
      const operation = extended ? second : first;
      if (operation === undefined || operation < 0x58 || operation > 0x5f) {
        return null; // more than the end of a function
      }
      const number = operation - 0x58;
      registers[extended ? 8 + number : (ENCODED[number] as number)] = view.word(stack); // pop
      stack += 8;
      at += extended ? 2 : 1;
    }
  }
  return null;
}

function framePointerCaller(view: ThreadView, isCode: IsCode): Float64Array | null {
  const frame = view.register(RBP);
  if (!(frame >= view.stackPointer && frame % 8 === 0)) {
    return null;
  }
  const registers = new Float64Array(REGISTER_COUNT).fill(Number.NaN);
  registers[RBP] = view.word(frame);
  return returned(registers, frame + 8, view, isCode);
}

/** As behind a `ret` with the stack pointer at `stack`. */
function returned(
  registers: Float64Array,
  stack: Address,
  view: ThreadView,
  isCode: IsCode,
): Float64Array | null {
  const address = view.word(stack);
  registers[RSP] = stack + 8;
  registers[RETURN_ADDRESS] = address;
  return isCode(address) ? registers : null;
}

/** Fewer where the memory ends. */
function bytesAt(code: MemoryReader, address: Address, length: number): number[] {
  const bytes: number[] = [];
  try {
    for (let index = 0; index < length; index++) {
      bytes.push(code.uint8(address + index));
    }
  } catch {
    // What could be read serves.
  }
  return bytes;
}
