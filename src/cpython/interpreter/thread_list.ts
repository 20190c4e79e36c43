/**
 * The thread states of an interpreter: a doubly linked list, each with a pointer back to the interpreter.
 *
 *   interpreter ── threads.head ──> PyThreadState ── next ──> PyThreadState ── next ──> NULL
 *        ^─────────── interp ───────────┘    ^──── prev ────────────┘
 */

import type { Address } from "../../model/base/units.js";
import { brokenThreadList } from "../../model/errors/errors.js";
import type { PythonMemory } from "./objects.js";

export interface ThreadState {
  /** PyThreadState. */
  readonly address: Address;
  readonly interpreter: Address;
  /** pthread_self() of the thread. */
  readonly pthread: Address;
  /** The thread's id in its own pid namespace; null if unknown. */
  readonly tid: number | null;
}

const MOST_THREADS = 1 << 16;
/**
 * tcbhead_t is at the start of glibc's `struct pthread` (sysdeps/x86_64/nptl/tls.h): 0 tcb, 16 self, both its
 * own address. `pid_t tid` follows 704 bytes and a list node (nptl/descr.h).
 */
const TCB_SELF = 16;
const PTHREAD_TID = 720;

/** Newest first. Throws TM-E024 if the list is invalid. */
export function* walkThreads(python: PythonMemory, interpreter: Address): Generator<ThreadState> {
  const { reader, layout } = python;
  const { thread } = layout;
  let previous = 0;
  let address = reader.pointer(interpreter + layout.interpreter.threadsHead);
  for (let count = 0; address !== 0; count++) {
    if (
      count === MOST_THREADS ||
      reader.pointer(address + thread.interpreter) !== interpreter ||
      reader.pointer(address + thread.previous) !== previous
    ) {
      throw brokenThreadList(reader.memory.name);
    }
    const pthread = reader.pointer(address + thread.threadId);
    yield { address, interpreter, pthread, tid: threadId(python, address, pthread) };
    previous = address;
    address = reader.pointer(address + thread.next);
  }
}

function threadId(
  { reader, layout }: PythonMemory,
  state: Address,
  pthread: Address,
): number | null {
  const { nativeThreadId } = layout.thread;
  const native = nativeThreadId === null ? 0 : reader.uint64(state + nativeThreadId);
  if (native !== 0) {
    return native;
  }
  try {
    const isThread =
      pthread !== 0 &&
      reader.pointer(pthread) === pthread &&
      reader.pointer(pthread + TCB_SELF) === pthread;
    return isThread ? reader.int32(pthread + PTHREAD_TID) || null : null;
  } catch {
    return null; // it has ended, and its stack no longer exists
  }
}
