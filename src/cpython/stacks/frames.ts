/**
 * The Python frames of a thread, from the innermost outwards.
 *
 *   3.9, 3.10    PyThreadState.frame ──> PyFrameObject ── f_back ──> ...
 *   3.11, 3.12   PyThreadState.cframe ──> _PyCFrame.current_frame ──> _PyInterpreterFrame ── previous ──> ...
 *   3.13+        PyThreadState.current_frame ──> _PyInterpreterFrame ── previous ──> ...
 *
 * From 3.12 on, the evaluator inserts its own frames, which have no Python code (their owner shows this). From
 * 3.11 on, a frame whose function has not begun does not count. sys._current_frames() leaves both out, and so
 * does this.
 */

import type { Address } from "../../model/base/units.js";
import { unreadableMemory } from "../../model/errors/errors.js";
import type { PythonMemory } from "../interpreter/objects.js";
import { factsOf } from "../interpreter/version_facts.js";
import type { Code, CodeReader } from "./code.js";

export interface PythonFrame {
  /** _PyInterpreterFrame, or PyFrameObject before 3.11. */
  readonly address: Address;
  readonly code: Code;
  /** 0 if the instruction has none. */
  readonly line: number;
}

/**
 * A thread's frames, and which call of the evaluator runs which. Up to 3.10 each frame has its own call. Later,
 * a Python function that calls another one stays in the same call, and from 3.12 on a frame without code begins
 * each call.
 */
export interface PythonStack {
  /** Innermost first. */
  readonly frames: PythonFrame[];
  /** Innermost first. */
  readonly evaluations: readonly Evaluation[];
}

export interface Evaluation {
  /** Index in `frames` after its last frame. It begins where the previous one ends, and may be empty. */
  readonly end: number;
  /** An address in the native frame of the evaluator that runs it; null if none is known. */
  readonly anchor: Address | null;
}

/** Python's recursion limit is reached long before. */
const MOST_FRAMES = 2 ** 17;
const INSTRUCTION_BYTES = 2;
const OWNED_BY_GENERATOR = 1;

/** Throws TM-E024 if the chain is broken. */
export function readStack(codes: CodeReader, thread: Address): PythonStack {
  const { reader, layout } = codes.python;
  const frames: PythonFrame[] = [];
  const evaluations: Evaluation[] = [];
  let { address, anchor } = innermostFrame(codes.python, thread);
  for (let count = 0; address !== 0; count++) {
    if (count === MOST_FRAMES) {
      throw unreadableMemory(reader.memory.name, address, "a chain of frames without an end");
    }
    const frame = readFrame(codes, address);
    if (frame !== null) {
      frames.push(frame);
    }
    const shim = frame === null && isShim(codes.python, address);
    if (shim || beginsEvaluation(codes.python, address)) {
      evaluations.push({ end: frames.length, anchor: shim ? address : anchor });
      anchor = null;
    }
    address = reader.pointer(address + layout.frame.previous);
  }
  return { frames, evaluations };
}

/** The frame is 0 if the thread runs no Python code. */
export function innermostFrame(
  { reader, layout }: PythonMemory,
  thread: Address,
): { address: Address; anchor: Address | null } {
  const frame = reader.pointer(thread + layout.thread.frame);
  const { cframeFrame } = layout.thread;
  // A _PyCFrame is a local variable of the evaluator, except for the first one, which is in the thread's state.
  return cframeFrame === null || frame === 0
    ? { address: frame, anchor: null }
    : { address: reader.pointer(frame + cframeFrame), anchor: frame };
}

/** From 3.12 on: a local variable of the evaluator, or the first frame in a thread's state. */
function isShim({ reader, layout }: PythonMemory, address: Address): boolean {
  const { owner, firstShimOwner } = layout.frame;
  return (
    owner !== null && firstShimOwner !== null && reader.uint8(address + owner) >= firstShimOwner
  );
}

function beginsEvaluation({ reader, layout }: PythonMemory, address: Address): boolean {
  const { owner, isEntry } = layout.frame;
  return owner === null || (isEntry !== null && reader.uint8(address + isEntry) !== 0);
}

/** null: a frame that CPython itself does not show. */
export function readFrame(codes: CodeReader, address: Address): PythonFrame | null {
  const { reader, layout } = codes.python;
  const { owner } = layout.frame;
  if (owner === null) {
    return readFrameObject(codes, address);
  }
  if (isShim(codes.python, address)) {
    return null;
  }
  const ownedBy = reader.uint8(address + owner);
  const word = reader.pointer(address + layout.frame.code);
  const codeAddress = word - (word % 8); // 3.14 marks borrowed references in the low bits
  const code = codes.read(codeAddress);
  const offset =
    reader.pointer(address + layout.frame.instruction) - codeAddress - layout.code.bytes;
  if (ownedBy !== OWNED_BY_GENERATOR && offset < code.firstTraceable * INSTRUCTION_BYTES) {
    return null; // its function has not begun
  }
  return { address, code, line: codes.line(code, offset) };
}

function readFrameObject(codes: CodeReader, address: Address): PythonFrame {
  const { reader, layout } = codes.python;
  const { frame } = layout;
  const code = codes.read(reader.pointer(address + frame.code));
  const last = reader.int32(address + frame.instruction);
  const line = frame.line === null ? 0 : reader.int32(address + frame.line);
  const { lastInstructionUnit, clearsFrameLine } = factsOf(layout.version);
  // While a debugger traces, the frame contains the line itself.
  const traced =
    clearsFrameLine || (frame.trace !== null && reader.pointer(address + frame.trace) !== 0);
  const offset = last * lastInstructionUnit;
  return { address, code, line: traced && line !== 0 ? line : codes.line(code, offset) };
}
