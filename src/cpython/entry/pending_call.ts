/**
 * Writes a request into a paused interpreter so that it runs one Python source, and withdraws it if it was not
 * executed. Each method is a few words in the interpreter's own structures:
 *
 *   3.9-3.13   the ring of pending calls of the main interpreter
 *              first          next
 *                v              v
 *        [ ][ ][call][call][PyRun_SimpleString, source][ ][ ][source's bytes in slots far ahead ][ ]
 *              then next, the count, and the breaker that makes the evaluator check
 *
 *   3.14 on    PEP 768: the path of a file in the main thread's state, a 1, and a bit in its breaker
 *
 * Source: Python/ceval_gil.c and ceval.c, Include/internal/pycore_ceval*.h, PEP 768.
 */

import { closeSync, openSync, readSync, writeSync } from "node:fs";
import { isLeaving, readStat } from "../../linux/index.js";
import { present } from "../../model/base/present.js";
import type { Address, Pid } from "../../model/base/units.js";
import { targetUnknown } from "../../model/errors/attach_errors.js";
import { processGone, type TidemarkError } from "../../model/errors/errors.js";
import { demand, type EntryPoint, type Standing } from "./entry_point.js";

/** Free slots between the ring's end and the source, for calls that others add in the meantime. */
const ROOM_FOR_OTHERS = 8;
const CALLS_TO_DO = 1 << 2;
const DEBUGGER_CALL = 1 << 5;

/** One pending request in the process. */
export interface Request {
  /** Withdraws it while the process is paused again; true if it had not been executed. */
  undo(standing: Standing): boolean;
}

/**
 * Writes the request. `path` names the file as the process sees it; `source` runs that file and never
 * raises. Throws TM-E034 before the first write if a structure is invalid, and returns a sentence if it is in use.
 */
export function writeRequest(
  point: EntryPoint,
  standing: Standing,
  source: string,
  path: string,
): Request | string {
  return point.debugger !== null
    ? writeDebuggerCall(point, standing, path)
    : writePendingCall(point, standing, source);
}

function writePendingCall(point: EntryPoint, standing: Standing, source: string): Request | string {
  const { reader, layout } = point;
  const { pending } = layout;
  const ring = standing.interpreter + layout.interpreter.pending;
  const count = reader.int32(ring + pending.count);
  const first = reader.int32(ring + pending.first);
  const next = reader.int32(ring + pending.next);
  const inside = (index: number) => index >= 0 && index < pending.slots;
  demand(point, inside(first) && inside(next), "ring of pending calls");
  const queued = (next - first + pending.slots) % pending.slots;
  demand(point, count === countWord(point, queued), "number of pending calls");
  checkConstants(point, standing, ring);
  if (isRingInUse(point, ring)) {
    return "another of its threads is running its pending calls";
  }
  if (holdsRequest(point, ring)) {
    return "another command of Tidemark is entering it"; // our source would replace that of its request
  }
  const bytes = Buffer.from(`${source}\0`);
  const slot = sourceSlot(pending.slots, pending.entrySize, next, bytes.length);
  if (slot === null || queued + ROOM_FOR_OTHERS + 2 > pending.slots) {
    return "its ring of pending calls is full";
  }
  const text = ring + pending.calls + slot * pending.entrySize;
  const entry = ring + pending.calls + next * pending.entrySize;
  const after = (next + 1) % pending.slots;
  const call = Buffer.alloc(pending.entrySize);
  call.writeBigUInt64LE(BigInt(point.run), 0);
  call.writeBigUInt64LE(BigInt(text), 8);
  withMemory(point, (write) => {
    write(text, bytes);
    write(entry, call);
    write(ring + pending.next, int32(after));
    write(ring + pending.count, int32(countWord(point, queued + 1)));
    breakEvaluation(point, standing, write);
  });
  return {
    undo: (now) => undoPendingCall(point, now, { index: next, call: call.subarray(0, 16), text }),
  };
}

/** A number of calls from 3.13 on, a flag before. */
function countWord({ layout }: EntryPoint, queued: number): number {
  return layout.pending.max === null ? Math.min(queued, 1) : queued;
}

/** Words next to the ring that are the same in every build, which reveal a wrong table. */
function checkConstants(point: EntryPoint, standing: Standing, ring: Address): void {
  const { reader, layout } = point;
  const { pending } = layout;
  demand(
    point,
    pending.first === pending.calls + pending.slots * pending.entrySize &&
      pending.next === pending.first + 4,
    "shape of the ring",
  );
  if (pending.max !== null && pending.maxLoop !== null) {
    demand(point, reader.int32(ring + pending.max) === pending.slots, "size of the ring");
    demand(point, reader.int32(ring + pending.maxLoop) === 100, "size of the ring");
  }
  if (layout.interpreter.evalBreaker !== null) {
    const breaker = reader.int32(standing.interpreter + layout.interpreter.evalBreaker);
    demand(point, breaker === 0 || breaker === 1, "breaker");
    const distance = layout.interpreter.pending - layout.interpreter.evalBreaker;
    demand(point, distance > 0 && distance <= 64, "breaker");
  }
  for (let index = 0; index < Math.min(pending.slots, 32); index++) {
    // Executed calls remain in the ring; a word that is not a pointer was never a call, or is a source of ours.
    const used = isQueued(point, ring, index);
    const call = reader.pointer(ring + pending.calls + index * pending.entrySize);
    demand(point, !used || (call > 4096 && call < 2 ** 47), "pending call");
  }
}

function isQueued({ reader, layout }: EntryPoint, ring: Address, index: number): boolean {
  const { pending } = layout;
  const first = reader.int32(ring + pending.first);
  const next = reader.int32(ring + pending.next);
  return (
    (index - first + pending.slots) % pending.slots < (next - first + pending.slots) % pending.slots
  );
}

/** Whether a request of another command has not been executed yet: nobody else queues PyRun_SimpleString. */
function holdsRequest(point: EntryPoint, ring: Address): boolean {
  const { pending } = point.layout;
  return Array.from({ length: pending.slots }, (_, index) => index).some(
    (index) =>
      isQueued(point, ring, index) &&
      point.reader.pointer(ring + pending.calls + index * pending.entrySize) === point.run,
  );
}

/** The lock is a sem_t (1: free) up to 3.12, a PyMutex byte (0: free) after. */
function isRingInUse(point: EntryPoint, ring: Address): boolean {
  const { reader, layout } = point;
  const { lock, mutex, busy, handlingThread } = layout.pending;
  if (lock !== null) {
    const semaphore = reader.pointer(ring + lock);
    demand(point, semaphore > 4096 && semaphore % 8 === 0, "lock of pending calls");
    const value = reader.uint32(semaphore);
    demand(point, value === 0 || value === 1, "lock of pending calls");
    if (value === 0) {
      return true;
    }
  }
  if (mutex !== null) {
    const byte = reader.uint8(ring + mutex);
    demand(point, byte < 4, "lock of pending calls");
    if (byte !== 0) {
      return true;
    }
  }
  return (
    (busy !== null && reader.int32(ring + busy) !== 0) ||
    (handlingThread !== null && reader.pointer(ring + handlingThread) !== 0)
  );
}

/** First slot of a run with `length` bytes that leaves the ring room to grow; null if there is none. */
function sourceSlot(slots: number, entry: number, next: number, length: number): number | null {
  const wanted = Math.ceil(length / entry);
  for (let slot = slots - wanted; slot >= 0; slot--) {
    const ahead = (slot - next + slots) % slots;
    if (ahead > ROOM_FOR_OTHERS && ahead + wanted <= slots) {
      return slot;
    }
  }
  return null;
}

function undoPendingCall(
  point: EntryPoint,
  standing: Standing,
  { index, call, text }: { index: number; call: Buffer; text: Address },
): boolean {
  const { reader, layout } = point;
  const { pending } = layout;
  const ring = standing.interpreter + layout.interpreter.pending;
  const entry = ring + pending.calls + index * pending.entrySize;
  if (!isQueued(point, ring, index) || !call.equals(reader.bytes(entry, 16))) {
    return false;
  }
  const next = reader.int32(ring + pending.next);
  withMemory(point, (write) => {
    if ((index + 1) % pending.slots === next && !isRingInUse(point, ring)) {
      const first = reader.int32(ring + pending.first);
      const queued = (index - first + pending.slots) % pending.slots;
      write(ring + pending.count, int32(countWord(point, queued)));
      write(ring + pending.next, int32(index));
    } else {
      write(text, Buffer.from([0])); // others were added after it, so an empty source is written, which does nothing
    }
  });
  return true;
}

function breakEvaluation(point: EntryPoint, standing: Standing, write: Write): void {
  const { reader, layout } = point;
  if (layout.interpreter.evalBreaker !== null) {
    write(standing.interpreter + layout.interpreter.evalBreaker, int32(1));
    return;
  }
  for (const thread of standing.threads) {
    const at = thread + present(layout.thread.evalBreaker);
    write(at, Buffer.from([reader.uint8(at) | CALLS_TO_DO]));
  }
}

function writeDebuggerCall(point: EntryPoint, standing: Standing, path: string): Request | string {
  const { reader, pid } = point;
  const offsets = present(point.debugger);
  const enabled = reader.int32(standing.interpreter + offsets.enabled);
  if (enabled === 0) {
    throw targetUnknown(
      pid,
      "remote debugging is disabled in it (PYTHON_DISABLE_REMOTE_DEBUG or -X)",
    );
  }
  demand(point, enabled === 1, "remote debugging");
  const support = standing.mainThread + offsets.support;
  const pendingCall = support + offsets.pendingCall;
  const requested = reader.int32(pendingCall);
  demand(point, requested === 0 || requested === 1, "debugger's call");
  if (requested === 1) {
    return "it has a pending call from another debugger";
  }
  const bytes = Buffer.from(`${path}\0`);
  if (bytes.length > offsets.pathBytes) {
    return "the path is too long for it";
  }
  const breaker = standing.mainThread + offsets.evalBreaker;
  withMemory(point, (write) => {
    write(support + offsets.path, bytes);
    write(pendingCall, int32(1));
    write(breaker, Buffer.from([reader.uint8(breaker) | DEBUGGER_CALL]));
  });
  return {
    undo(now) {
      const still =
        now.mainThread === standing.mainThread &&
        reader.int32(pendingCall) === 1 &&
        bytes.equals(reader.bytes(support + offsets.path, bytes.length));
      if (still) {
        withMemory(point, (write) => {
          write(pendingCall, int32(0));
          write(support + offsets.path, Buffer.alloc(bytes.length));
        });
      }
      return still;
    },
  };
}

type Write = (address: Address, bytes: Uint8Array) => void;

function withMemory(point: EntryPoint, work: (write: Write) => void): void {
  const descriptor = openToWrite(point.pid);
  const done: { address: Address; before: Uint8Array }[] = [];
  try {
    work((address, bytes) => {
      const before = Buffer.alloc(bytes.length);
      readSync(descriptor, before, 0, before.length, address);
      // A BigInt position would be ignored silently.
      if (writeSync(descriptor, bytes, 0, bytes.length, address) !== bytes.length) {
        throw new Error("a write was incomplete");
      }
      done.push({ address, before });
    });
  } catch {
    for (const { address, before } of done.reverse()) {
      writeSync(descriptor, before, 0, before.length, address);
    }
    throw notWritten(point.pid);
  } finally {
    closeSync(descriptor);
    point.reader.forget();
  }
}

function openToWrite(pid: Pid): number {
  try {
    return openSync(`/proc/${pid}/mem`, "r+");
  } catch {
    throw notWritten(pid);
  }
}

/** A paused process can be killed, too. */
function notWritten(pid: Pid): TidemarkError {
  return isLeaving(readStat(pid))
    ? processGone(pid)
    : targetUnknown(pid, "its memory cannot be written");
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32LE(value);
  return bytes;
}
