import type { Address } from "../base/units.js";

/** One native function that a thread is in. */
export interface NativeFrame {
  /**
   * The address at which it continues: the instruction itself for the innermost frame and for a frame
   * interrupted by a signal, otherwise inside the call.
   */
  readonly address: Address;
  /** Demangled; "libc.so.6+0x1234" if there is no symbol, "" for code outside any object file. */
  readonly function: string;
  /** The object file, as named in the process; "" for code outside any. */
  readonly file: string;
  /** The frame's own part of the stack: from its stack pointer up to its caller's. */
  readonly low: Address;
  readonly high: Address;
}

/** A thread's native frames of one moment. */
export interface NativeStack {
  readonly tid: number;
  /** Leaf first. */
  readonly frames: readonly NativeFrame[];
  /** Why the frames end before the thread's first one; null if they reach it. */
  readonly cut: string | null;
}
