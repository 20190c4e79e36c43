/**
 * What a frame refers to: its locals and, while it waits, the values of its evaluation up to the top of the stack.
 * Above the top stand words of the past, which are references no more: each would hide one of somebody else's.
 *
 *   3.9, 3.10   PyFrameObject      fields | localsplus[] | f_valuestack ... top      (f_stacktop, f_stackdepth)
 *   3.11+       _PyInterpreterFrame      fields | localsplus[] ... top               (stacktop, stackpointer)
 *               in a generator or coroutine, at its end; in a frame object, once its function has returned
 *
 * A frame that runs tells no top, but where it called a function of Python's: else all of it is taken, for it is
 * held by who runs it.
 */

import type { Address, Bytes } from "../../../model/base/units.js";
import type { PythonLayout } from "../../layouts/index.js";
import type { HeapCopy } from "../memory/heap_copy.js";

interface WordRange {
  readonly start: Address;
  readonly bytes: Bytes;
}

/** An object's reference count. */
const OBJECT_HEAD: Bytes = 8;

export class FrameReferences {
  constructor(
    readonly copy: HeapCopy,
    readonly python: PythonLayout,
  ) {}

  /** Where the references of a frame object, a generator or a coroutine stand. `bytes`: of its block. */
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

  /** 0 where a frame object stands for a frame that is elsewhere: what its room holds is of the past. */
  #frameWithin(object: Address, end: Address): Address {
    const frame = this.#wordAt(object, this.python.frame.objectFrame);
    return frame > object && frame < end ? frame : 0;
  }

  /** A generator that has ended keeps nothing but the room. */
  #isGone(object: Address): boolean {
    const { frameState, frameGone } = this.python.generator;
    const state = frameState === null ? null : this.#int8(object + frameState);
    return state !== null && frameGone !== null && state >= frameGone;
  }

  #endOfFrame(frame: Address, end: Address): Address {
    const top = this.topOf(frame);
    return top !== null && top < end ? top : end;
  }

  /** Where the values of a frame's evaluation end: it waits, or called a function of Python's. null: it tells none. */
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
    // 3.9 tells no top of a frame that has ended either: then nothing is on its stack.
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
