/**
 * Coroutines, generators and what they await. A suspended one keeps the object that it awaits on top of its
 * frame's stack (_PyGen_yf, Objects/genobject.c).
 *
 *   3.9, 3.10   PyGenObject.gi_frame ──> PyFrameObject; the top is in f_stacktop (3.9) or f_stackdepth (3.10)
 *   3.11+       the _PyInterpreterFrame lies in the PyGenObject; 3.11 - 3.13 stacktop, 3.14+ stackpointer
 */
import type { Address } from "../../model/base/units.js";
import { type PythonMemory, typeNameOf } from "../interpreter/objects.js";
import { factsOf } from "../interpreter/version_facts.js";

const KINDS = new Set(["coroutine", "generator", "async_generator"]);
/** Objects in between, whose first field is the object that they drive (Objects/genobject.c). */
const WRAPPERS = new Set(["coroutine_wrapper", "async_generator_asend", "async_generator_athrow"]);
const FIRST_FIELD = 16;
const DEEPEST_WRAPPER = 8;

/** The frame of a coroutine or generator; 0 if it has ended or is not one. */
export function coroutineFrame(python: PythonMemory, object: Address): Address {
  const { reader, layout } = python;
  if (!KINDS.has(typeNameOf(python, object))) {
    return 0;
  }
  if (layout.generator.frameIsPointer === 1) {
    return reader.pointer(object + layout.generator.frame);
  }
  const { frameState, frameGone } = layout.generator;
  if (frameState !== null && frameGone !== null) {
    const state = (reader.uint8(object + frameState) << 24) >> 24;
    if (state >= frameGone) {
      return 0;
    }
  }
  return object + layout.generator.frame;
}

/** The coroutine or generator that `object` awaits; null if it awaits no such object. */
export function awaited(python: PythonMemory, object: Address): Address | null {
  const frame = coroutineFrame(python, object);
  const top = frame === 0 ? 0 : topOfStack(python, frame);
  return top === 0 ? null : unwrap(python, top);
}

function unwrap(python: PythonMemory, object: Address): Address | null {
  let current = object;
  for (let depth = 0; current !== 0 && depth < DEEPEST_WRAPPER; depth++) {
    const type = typeNameOf(python, current);
    if (KINDS.has(type)) {
      return current;
    }
    if (!WRAPPERS.has(type)) {
      return null;
    }
    current = python.reader.pointer(current + FIRST_FIELD);
  }
  return null;
}

/** 0 if the stack is empty. */
function topOfStack({ reader, layout }: PythonMemory, frame: Address): Address {
  const { localsPlus, stackTop, stackPointer, stackDepth, valueStack } = layout.frame;
  const items = frame + localsPlus;
  if (stackTop !== null) {
    const depth = reader.int32(frame + stackTop);
    return depth > 0 ? reader.pointer(items + (depth - 1) * 8) : 0;
  }
  if (stackDepth !== null && valueStack !== null) {
    const depth = reader.int32(frame + stackDepth);
    return depth > 0 ? reader.pointer(reader.pointer(frame + valueStack) + (depth - 1) * 8) : 0;
  }
  const below = factsOf(layout.version).awaitedBelowTop;
  const top = stackPointer === null ? 0 : reader.pointer(frame + stackPointer);
  const word = top - below >= items ? reader.pointer(top - below) : 0;
  return word - (word % 8); // 3.14 marks borrowed references in the low bits
}
