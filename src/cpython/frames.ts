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
import { unreadableMemory } from "../model/errors.js";
import type { Address } from "../model/units.js";
import type { Code, CodeReader } from "./code.js";
import type { PythonMemory } from "./objects.js";
import { minorOf } from "./published.js";

/** A frame as it stands in memory: quickly read, while the program is held. */
export interface RawFrame {
  /** _PyInterpreterFrame; PyFrameObject before 3.11. */
  readonly address: Address;
  /** PyCodeObject. */
  readonly code: Address;
  /** Of the instruction in bytes: from the code object's own start from 3.11 on, from its first one before. */
  readonly instruction: number;
  /** A debugger's word for the line; 0 where there is none. */
  readonly tracedLine: number;
  readonly ownedByGenerator: boolean;
}

export interface PythonFrame {
  readonly address: Address;
  readonly code: Code;
  /** 0 where the instruction has none. */
  readonly line: number;
}

/** Recursion ends long before by itself. */
const MOST_FRAMES = 2 ** 17;
const INSTRUCTION_BYTES = 2;
const OWNED_BY_GENERATOR = 1;

/** Innermost first. Throws TM-E024 where the chain leads elsewhere. */
export function readFrames(codes: CodeReader, thread: Address): PythonFrame[] {
  return resolveFrames(codes, walkFrames(codes.python, thread));
}

/** The same, without a look at the code. */
export function walkFrames(python: PythonMemory, thread: Address): RawFrame[] {
  const { reader, layout } = python;
  const frames: RawFrame[] = [];
  let address = innermostFrame(python, thread);
  for (let count = 0; address !== 0; count++) {
    if (count === MOST_FRAMES) {
      throw unreadableMemory(reader.memory.name, address, "a chain of frames without an end");
    }
    const frame = readRawFrame(python, address);
    if (frame !== null) {
      frames.push(frame);
    }
    address = reader.pointer(address + layout.frame.previous);
  }
  return frames;
}

/** 0 where the thread runs no Python code. */
function innermostFrame({ reader, layout }: PythonMemory, thread: Address): Address {
  const frame = reader.pointer(thread + layout.thread.frame);
  const { cframeFrame } = layout.thread;
  return cframeFrame === null || frame === 0 ? frame : reader.pointer(frame + cframeFrame);
}

/** null: one of the evaluator's own. */
export function readRawFrame(python: PythonMemory, address: Address): RawFrame | null {
  const { reader, layout } = python;
  const { owner, firstShimOwner, code, instruction } = layout.frame;
  if (owner === null) {
    return readFrameObject(python, address);
  }
  const ownedBy = reader.uint8(address + owner);
  if (firstShimOwner !== null && ownedBy >= firstShimOwner) {
    return null;
  }
  const codeWord = reader.pointer(address + code);
  const codeAddress = codeWord - (codeWord % 8); // 3.14 marks borrowed references in the low bits
  return {
    address,
    code: codeAddress,
    instruction: reader.pointer(address + instruction) - codeAddress,
    tracedLine: 0,
    ownedByGenerator: ownedBy === OWNED_BY_GENERATOR,
  };
}

function readFrameObject(python: PythonMemory, address: Address): RawFrame {
  const { reader, layout } = python;
  const { frame } = layout;
  const last = reader.int32(address + frame.instruction);
  const line = frame.line === null ? 0 : reader.int32(address + frame.line);
  // 3.10 counts instructions, 3.9 bytes. While a debugger traces, the line itself is kept in the frame:
  // 3.10 clears it otherwise, 3.9 leaves an old one there.
  const counts = minorOf(layout.version) >= 10;
  const traced = counts || (frame.trace !== null && reader.pointer(address + frame.trace) !== 0);
  return {
    address,
    code: reader.pointer(address + frame.code),
    instruction: counts ? last * INSTRUCTION_BYTES : last,
    tracedLine: traced ? line : 0,
    ownedByGenerator: false,
  };
}

/** Those that CPython itself would show. */
export function resolveFrames(codes: CodeReader, frames: readonly RawFrame[]): PythonFrame[] {
  return frames.flatMap((frame) => {
    const resolved = resolve(codes, frame);
    return resolved === null ? [] : [resolved];
  });
}

function resolve(codes: CodeReader, frame: RawFrame): PythonFrame | null {
  const { reader, layout } = codes.python;
  const code = codes.read(frame.code);
  const { firstTraceable, bytes } = layout.code;
  const offset = firstTraceable === null ? frame.instruction : frame.instruction - bytes;
  if (firstTraceable !== null && !frame.ownedByGenerator) {
    const first = reader.int32(frame.code + firstTraceable) * INSTRUCTION_BYTES;
    if (offset < first) {
      return null; // its function has not begun
    }
  }
  const line = frame.tracedLine !== 0 ? frame.tracedLine : codes.line(code, offset);
  return { address: frame.address, code, line };
}
