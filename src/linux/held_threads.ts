/**
 * What an unwinder needs of threads that stand, copied so that they can be let go before it begins: their
 * registers, and their stacks from the stack pointer up.
 *
 *   low    128 bytes that a function may use below its stack pointer
 *          stack pointer ──> frames of the innermost function, of its caller, ...      copied
 *   high   end of the mapping, or 1 MiB: what lies above is not seen
 */
import type { Address, Bytes } from "../model/units.js";
import type { ThreadRegisters } from "./hold.js";
import { findMapping } from "./maps.js";
import type { Memory } from "./memory.js";

export interface StackCopy {
  readonly start: Address;
  readonly bytes: Uint8Array;
  /** It goes on behind the copy. */
  readonly cut: boolean;
}

export interface HeldThread extends ThreadRegisters {
  /** null: its stack pointer leads to no memory of its own (it has just begun, or ends). */
  readonly stack: StackCopy | null;
}

const STACK_POINTER = 7;
const RED_ZONE = 128;
/** A thousand nested calls of Python functions in C take about half of it. */
const LONGEST_STACK: Bytes = 2 ** 20;
/** Of all threads together: at most some milliseconds of copying. Thousands of threads share it. */
const MOST_BYTES: Bytes = 32 * 2 ** 20;
const LEAST_STACK: Bytes = 16 * 2 ** 10;
/** Copies go to buffers of this size: fresh memory costs more than the copying itself. */
const BUFFER_BYTES: Bytes = 2 ** 20;

/** Room for stacks, made before a process stands: its pages are there already. */
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

  /** Gives back the end of the piece taken last. */
  giveBack(length: Bytes): void {
    this.#used -= length;
  }
}

/** Of every thread, while the process stands. */
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
  return registers.map((thread) => {
    const from = (thread.values[STACK_POINTER] as number) - RED_ZONE;
    if (!fresh && findMapping(memory.mappings, from) < 0) {
      fresh = true; // a thread that began, or a stack that grew, since the mappings were read
      memory.refresh();
    }
    return { ...thread, stack: copyStack(memory, from, share, room) };
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
