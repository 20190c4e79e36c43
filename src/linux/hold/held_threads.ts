/**
 * The data of paused threads that an unwinder needs, copied so that the threads can continue before unwinding
 * begins: registers, and stacks from the stack pointer up.
 *
 *   low    128 bytes that a function may use below its stack pointer
 *          stack pointer ──> frames of the innermost function, of its caller, ...      copied
 *   high   end of the mapping, or 1 MiB: what lies above is not seen
 *
 * A signal handler may run on its own stack (sigaltstack(2)). The code that it interrupted has another stack,
 * which is also copied. The kernel's frame on the handler's stack describes both (uapi/asm-generic/ucontext.h,
 * uapi/asm/sigcontext.h):
 *
 *   16 uc_stack: 0 its own stack's start   8 u32 flags   16 its size        160 rsp, 168 rip of the interrupted
 */

import { float64At } from "../../model/base/columns.js";
import type { Address, Bytes } from "../../model/base/units.js";
import type { NativeStack } from "../../model/profile/native_stack.js";
import { findMapping } from "../memory/maps.js";
import type { Memory } from "../memory/memory.js";
import type { ThreadRegisters } from "./hold.js";

interface StackCopy {
  readonly start: Address;
  readonly bytes: Uint8Array;
  /** Whether the stack continues beyond the copy. */
  readonly cut: boolean;
}

export interface HeldThread extends ThreadRegisters {
  /**
   * The stack of the frame that runs now. Empty if its stack pointer points to no memory (the thread has just
   * begun or is ending).
   */
  readonly stacks: readonly StackCopy[];
}

/**
 * Creates native frames from a copy. `Unwinder` in src/native implements it; rooms that may not import
 * src/native use this interface.
 */
export interface ThreadUnwinder {
  unwind(thread: HeldThread): NativeStack;
  close(): void;
}

const STACK_POINTER = 7;
const RED_ZONE = 128;
/** A thousand nested calls of Python functions in C use about half of it. */
const LONGEST_STACK: Bytes = 2 ** 20;
/** Limit for all threads together, which bounds copying to a few milliseconds. Thousands of threads share it. */
const MOST_BYTES: Bytes = 32 * 2 ** 20;
/** A signal handler's frames up to the kernel's frame. */
const MOST_SEARCHED: Bytes = 64 * 2 ** 10;
const LEAST_STACK: Bytes = 16 * 2 ** 10;
/** Size of the buffers for copies: allocating new memory costs more than copying. */
const BUFFER_BYTES: Bytes = 2 ** 20;

/** Memory for stacks, allocated and touched before the process is paused. */
export class StackRoom {
  #buffer = new Uint8Array(BUFFER_BYTES).fill(1);
  #used = 0;

  take(length: Bytes): Uint8Array {
    if (this.#used + length > this.#buffer.length) {
      this.#buffer = new Uint8Array(Math.max(length, BUFFER_BYTES));
      this.#used = 0;
    }
    const piece = this.#buffer.subarray(this.#used, this.#used + length);
    this.#used += length;
    return piece;
  }

  /** Returns the unused end of the piece that was taken last. */
  giveBack(length: Bytes): void {
    this.#used -= length;
  }
}

/** Copies the stacks of all threads while the process is paused. */
export function copyThreads(
  memory: Memory,
  registers: readonly ThreadRegisters[],
  room: StackRoom,
): HeldThread[] {
  const share = Math.max(
    LEAST_STACK,
    Math.min(LONGEST_STACK, MOST_BYTES / (registers.length || 1)),
  );
  let fresh = false;
  const copy = (pointer: Address): StackCopy | null => {
    const from = pointer - RED_ZONE;
    if (!fresh && findMapping(memory.mappings, from) < 0) {
      fresh = true; // the thread started, or its stack grew, after the mappings were read
      memory.refresh();
    }
    return copyStack(memory, from, share, room);
  };
  return registers.map((thread) => {
    const pointer = float64At(thread.values, STACK_POINTER);
    const stack = copy(pointer);
    const below = stack === null ? null : interruptedStack(stack, pointer);
    const interrupted = below === null ? null : copy(below);
    return { ...thread, stacks: [stack, interrupted].filter((found) => found !== null) };
  });
}

function copyStack(memory: Memory, from: Address, most: Bytes, room: StackRoom): StackCopy | null {
  const mapping = memory.mappings[findMapping(memory.mappings, from)];
  if (mapping === undefined) {
    return null;
  }
  const rest = mapping.end - from;
  const bytes = room.take(Math.min(most, rest));
  const got = memory.readInto(from, bytes);
  room.giveBack(bytes.length - got);
  return got === 0 ? null : { start: from, bytes: bytes.subarray(0, got), cut: rest > got };
}

/** The stack pointer to which a handler on its own stack will return; null if it does not run on such a stack. */
function interruptedStack({ start, bytes }: StackCopy, pointer: Address): Address | null {
  const words = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const word = (at: number) => words.getUint32(at, true) + words.getUint32(at + 4, true) * 2 ** 32;
  const own = Math.floor(pointer / 2 ** 32);
  const last = Math.min(bytes.length, MOST_SEARCHED) - 160;
  for (let at = (8 - (start % 8)) % 8; at < last; at += 8) {
    // The frame is close to the stack pointer, and half of one word is enough to exclude nearly all other
    // values.
    const high = words.getUint32(at + 4, true);
    if (high === own || high === own - 1) {
      const low = word(at);
      const interrupted = word(at + 144);
      const within = (address: Address) => address >= low && address < low + word(at + 16);
      if (pointer > low && within(pointer) && within(start + at) && !within(interrupted)) {
        return interrupted;
      }
    }
  }
  return null;
}
