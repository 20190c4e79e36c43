/**
 * Finds the caller of code that has no frame description: code created at run time, and hand-written assembly.
 * The methods, most reliable first:
 *
 *   the return path of signal handlers, by its bytes      the kernel left all registers above the stack pointer
 *   what the code does before it returns                  return_search.ts
 *   the frame pointer                                     where it leads up the stack, to an address of code
 */
import type { MemoryReader } from "../../linux/index.js";
import type { Address } from "../../model/base/units.js";
import { RBP, REGISTER_COUNT, RETURN_ADDRESS, RSP } from "./call_frame_program.js";
import { type Effort, followOut } from "./return_search.js";
import type { ThreadView } from "./thread_view.js";

/** mov $15, %rax (or %eax); syscall. */
const SIGNAL_RETURNS = [
  [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05],
  [0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05],
];
/** Offset of each register in struct ucontext (uapi/asm/ucontext.h, sigcontext.h), by DWARF number. */
const SIGNAL_CONTEXT: readonly number[] = [
  144, 136, 152, 128, 112, 104, 120, 160, 40, 48, 56, 64, 72, 80, 88, 96, 168,
];

/** Where code is; a return address must be inside. */
type IsCode = (address: Address) => boolean;

/** The caller's registers; null if they cannot be determined. */
export function callerWithoutDescription(
  code: MemoryReader,
  view: ThreadView,
  isCode: IsCode,
  effort: Effort,
): { readonly registers: Float64Array; readonly isSignalFrame: boolean } | null {
  const signal = signalCaller(code, view);
  if (signal !== null) {
    return { registers: signal, isSignalFrame: true };
  }
  const isReturn = (address: Address) =>
    isCode(address) && (followsCall(code, address) || isSignalReturn(code, address));
  const registers = followOut(code, view, isReturn, effort) ?? framePointerCaller(view, isReturn);
  return registers === null ? null : { registers, isSignalFrame: false };
}

/** Whether the preceding instruction may be a call: e8 with a distance, or ff /2 with any operand. */
function followsCall(code: MemoryReader, address: Address): boolean {
  const before = bytesAt(code, address - 7, 7);
  const indirect = (length: number) =>
    before[7 - length] === 0xff && (((before[8 - length] ?? 0) >> 3) & 7) === 2;
  return before.length === 7 && (before[2] === 0xe8 || [2, 3, 4, 6, 7].some(indirect));
}

function isSignalReturn(code: MemoryReader, address: Address): boolean {
  const bytes = bytesAt(code, address, 9);
  return SIGNAL_RETURNS.some((pattern) => pattern.every((byte, index) => bytes[index] === byte));
}

function signalCaller(code: MemoryReader, view: ThreadView): Float64Array | null {
  if (!isSignalReturn(code, view.instruction)) {
    return null;
  }
  const context = view.stackPointer;
  return Float64Array.from(SIGNAL_CONTEXT, (offset) => view.word(context + offset));
}

function framePointerCaller(view: ThreadView, isReturn: IsCode): Float64Array | null {
  const frame = view.register(RBP);
  const address = view.word(frame + 8);
  if (!(frame >= view.stackPointer && frame % 8 === 0 && isReturn(address))) {
    return null;
  }
  const registers = new Float64Array(REGISTER_COUNT).fill(Number.NaN);
  registers[RBP] = view.word(frame);
  registers[RSP] = frame + 16;
  registers[RETURN_ADDRESS] = address;
  return registers;
}

/** Fewer if the memory ends. */
function bytesAt(code: MemoryReader, address: Address, length: number): number[] {
  const bytes: number[] = [];
  try {
    for (let index = 0; index < length; index++) {
      bytes.push(code.uint8(address + index));
    }
  } catch {
    // The bytes read so far are enough.
  }
  return bytes;
}
