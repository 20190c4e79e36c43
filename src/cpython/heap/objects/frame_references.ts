/**
 * What a frame refers to: its locals and, while it is suspended, the values of its evaluation stack up to the
 * top. Words above the top are stale and no longer references: each would hide a reference of another object.
 *
 *   3.9, 3.10   PyFrameObject      fields | localsplus[] | f_valuestack ... top      (f_stacktop, f_stackdepth)
 *   3.11+       _PyInterpreterFrame      fields | localsplus[] ... top               (stacktop, stackpointer)
 *               in a generator or coroutine, at its end; in a frame object, once its function has returned
 *
 * The top of a running frame's stack is unknown unless it has called a Python function; then the whole stack
 * counts, because the running thread holds it.
 */

import type { Address, Bytes } from "../../../model/base/units.js";
import type { PythonLayout } from "../../layouts/index.js";
import type { HeapPages } from "../memory/heap_pages.js";

interface WordRange {
  readonly start: Address;
  readonly bytes: Bytes;
}

/** An object's reference count. */
const OBJECT_HEAD: Bytes = 8;

export class FrameReferences {
  constructor(
    readonly copy: HeapPages,
    readonly python: PythonLayout,
  ) {}

  /** Where the references of a frame object, a generator or a coroutine are. `bytes`: size of its block. */
  ranges(object: Address, isFrameObject: boolean, bytes: Bytes): WordRange[] {
    const { generator } = this.python;
    const end = object + bytes;
    if (generator.frameIsPointer === 1) {
      const last = isFrameObject ? this.#endOfFrameObject(object, end) : end;
      return [between(object + OBJECT_HEAD, last)];
    }
    const room = isFrameObject ? this.python.frame.objectOwned : generator.frame;
    const head = between(object + OBJECT_HEAD, object + (room ?? 0));
    const frame = isFrameObject ? this.#frameWithin(object, end) : object + generator.frame;
    return frame === 0 || (!isFrameObject && this.#isGone(object))
      ? [head]
      : [head, between(frame, this.#endOfFrame(frame, end))];
  }

  /** 0 if the frame is elsewhere and the frame object only refers to it: its own space then has old contents. */
  #frameWithin(object: Address, end: Address): Address {
    const frame = this.#wordAt(object, this.python.frame.objectFrame);
    return frame > object && frame < end ? frame : 0;
  }

  /** A generator that has ended keeps only the space. */
  #isGone(object: Address): boolean {
    const { frameState, frameGone } = this.python.generator;
    const state = frameState === null ? null : this.#int8(object + frameState);
    return state !== null && frameGone !== null && state >= frameGone;
  }

  #endOfFrame(frame: Address, end: Address): Address {
    const top = this.topOf(frame);
    return top !== null && top < end ? top : end;
  }

  /**
   * The end of the values on a frame's evaluation stack, if it is suspended or has called a Python function;
   * otherwise null.
   */
  topOf(frame: Address): Address | null {
    const { localsPlus, stackTop, stackPointer } = this.python.frame;
    const first = frame + localsPlus;
    const top =
      stackTop === null
        ? this.#wordAt(frame, stackPointer)
        : first + (this.#int32(frame + stackTop) ?? -1) * 8;
    return top >= first ? top : null;
  }

  #endOfFrameObject(frame: Address, end: Address): Address {
    const { valueStack, stackDepth, stackPointer, executing } = this.python.frame;
    const first = this.#wordAt(frame, valueStack);
    if (!(first > frame && first <= end)) {
      return end;
    }
    if (stackDepth !== null) {
      const depth = this.#int32(frame + stackDepth) ?? -1;
      return depth >= 0 ? Math.min(end, first + depth * 8) : end;
    }
    const top = this.#wordAt(frame, stackPointer);
    if (top >= first && top <= end) {
      return top;
    }
    // 3.9 stores no top for a frame that has ended either; then its stack is empty.
    return executing !== null && this.#int8(frame + executing) === 0 ? first : end;
  }

  /** 0 where that version has no such field. */
  #wordAt(start: Address, field: Bytes | null): number {
    return field === null ? 0 : this.copy.word(start + field);
  }

  #int32(address: Address): number | null {
    const at = this.copy.index(address - (address % 4));
    return at < 0 ? null : (this.copy.words[at] ?? 0) | 0;
  }

  #int8(address: Address): number | null {
    const word = this.#int32(address);
    return word === null ? null : (word << (24 - 8 * (address % 4))) >> 24;
  }
}

function between(start: Address, end: Address): WordRange {
  return { start, bytes: Math.max(0, end - start) };
}
