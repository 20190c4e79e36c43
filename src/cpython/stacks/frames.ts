/**
 * The Python frames of a thread, from the innermost outwards.
 *
 *   3.9, 3.10    PyThreadState.frame ──> PyFrameObject ── f_back ──> ...
 *   3.11, 3.12   PyThreadState.cframe ──> _PyCFrame.current_frame ──> _PyInterpreterFrame ── previous ──> ...
 *   3.13+        PyThreadState.current_frame ──> _PyInterpreterFrame ── previous ──> ...
 *
 * From 3.12 on the evaluator puts frames of its own between, which have no Python code (their owner says
 * so), and from 3.11 on a frame whose function has not begun is none yet: sys._current_frames() leaves both
 * out, and so does this.
 */

import type { Address } from "../../model/base/units.js";
import { unreadableMemory } from "../../model/errors/errors.js";
import type { PythonMemory } from "../interpreter/objects.js";
import { factsOf } from "../interpreter/version_facts.js";
import type { Code, CodeReader } from "./code.js";

export interface PythonFrame {
  /** _PyInterpreterFrame; PyFrameObject before 3.11. */
  readonly address: Address;
  readonly code: Code;
  /** 0 if the instruction has none. */
  readonly line: number;
}

/**
 * A thread's frames, and which call of the evaluator ran which: up to 3.10 each its own; since, a Python
 * function's call of another stays in the same one, and from 3.12 on a frame without code begins it.
 */
export interface PythonStack {
  /** Innermost first. */
  readonly frames: PythonFrame[];
  /** Innermost first. */
  readonly evaluations: readonly Evaluation[];
}

export interface Evaluation {
  /** Index in `frames` behind its last frame; it begins where the one before ends, and may be empty. */
  readonly end: number;
  /** Something in the native frame of the evaluator that runs it; null where nothing is known to be. */
  readonly anchor: Address | null;
}

/** Recursion ends long before by itself. */
const MOST_FRAMES = 2 ** 17;
const INSTRUCTION_BYTES = 2;
const OWNED_BY_GENERATOR = 1;

/** Throws TM-E024 where the chain leads elsewhere. */
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

/** The frame is 0 where the thread runs no Python code. */
export function innermostFrame(
  { reader, layout }: PythonMemory,
  thread: Address,
): { address: Address; anchor: Address | null } {
  const frame = reader.pointer(thread + layout.thread.frame);
  const { cframeFrame } = layout.thread;
  // A _PyCFrame is a local variable of the evaluator, but the first one, which is in the thread's state.
  return cframeFrame === null || frame === 0
    ? { address: frame, anchor: null }
    : { address: reader.pointer(frame + cframeFrame), anchor: frame };
}

/** From 3.12 on: a local variable of the evaluator, or the first frame of a thread's state. */
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

/** null: one that CPython itself does not show. */
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
  // While a debugger traces, the line itself is kept in the frame.
  const traced =
    clearsFrameLine || (frame.trace !== null && reader.pointer(address + frame.trace) !== 0);
  const offset = last * lastInstructionUnit;
  return { address, code, line: traced && line !== 0 ? line : codes.line(code, offset) };
}
