/**
 * Names for objects held in locals of running or suspended functions:
 *
 *   thread MainThread -> frame serve (app.py:12) -> local cache -> dict[...]
 *
 *   frame   localsplus[]: arguments and locals, cells, free variables | values of the evaluation
 *   code    from 3.11 on co_localsplusnames; before, co_varnames, co_cellvars, co_freevars in a row
 *   where   on the thread's own stack (3.11 on); in a frame object (before, and what a traceback keeps); in
 *           a generator or coroutine (3.11 on), or in the frame object that it points to (before)
 *
 * Everything is read from the copy. Invalid data (a torn frame, something that is not code) has no name.
 */

import { basename } from "node:path";
import { MemoryReader } from "../../../linux/index.js";
import { present } from "../../../model/base/present.js";
import type { Address } from "../../../model/base/units.js";
import { oneLine, orNull } from "../../../model/errors/errors.js";
import type { PythonRuntime } from "../../interpreter/locate.js";
import { readItems, readText } from "../../interpreter/objects.js";
import type { PythonLayout } from "../../layouts/index.js";
import { CodeReader } from "../../stacks/code.js";
import { innermostFrame, type PythonFrame, readFrame } from "../../stacks/frames.js";
import { listThreads } from "../../stacks/threads.js";
import type { HeapPages } from "../memory/heap_pages.js";
import { FrameReferences } from "./frame_references.js";

const MOST_SLOTS = 65_536;
const MOST_FRAMES = 1 << 17;
/** From 3.14 on, the lowest bits of a slot encode how it holds its value. */
const TAG = 8;

/** co_argcount, co_posonlyargcount, co_kwonlyargcount. */
const ARGUMENT_COUNTS = 12;

/** Kinds of objects that have a frame, by type name. */
const GENERATORS = new Set(["generator", "coroutine", "async_generator"]);

interface FunctionVariables {
  /** Locals, cells, then the variables of enclosing functions. */
  readonly names: readonly string[];
  readonly positional: number;
}

export class FrameLocals {
  readonly #python: PythonRuntime;
  readonly #codes: CodeReader;
  readonly #references: FrameReferences;
  /** co_localsplusnames of each code object, by its address. */
  readonly #names = new Map<Address, readonly string[]>();
  /** Running frames: "thread MainThread". */
  readonly #threads = new Map<Address, string>();
  /** Running frames, outermost first in each thread. */
  readonly #running: PythonFrame[] = [];
  /** The frame and slot that hold an object, among the running frames: the outermost. */
  #holders: Map<Address, { readonly frame: PythonFrame; readonly slot: number }> | null = null;

  constructor(python: PythonRuntime, copy: HeapPages) {
    this.#python = { ...python, memory: copy, reader: new MemoryReader(copy) };
    this.#codes = new CodeReader(this.#python);
    this.#references = new FrameReferences(copy, python.layout);
    for (const { address, name, tid } of orNull(() => listThreads(this.#python)) ?? []) {
      const thread = `thread ${oneLine(name) || (tid ?? "?")}`;
      for (const frame of this.#framesOf(address).reverse()) {
        this.#threads.set(frame.address, thread);
        this.#running.push(frame);
      }
    }
  }

  /**
   * Innermost first. In a copy of a running program, the innermost frame may be torn because its function has
   * returned. The frames around it are still valid.
   */
  #framesOf(thread: Address): PythonFrame[] {
    const { reader, layout } = this.#python;
    const frames = new Map<Address, PythonFrame | null>();
    let address = orNull(() => innermostFrame(this.#python, thread).address) ?? 0;
    while (address !== 0 && !frames.has(address) && frames.size < MOST_FRAMES) {
      const at = address;
      frames.set(at, orNull(() => readFrame(this.#codes, at)) ?? null);
      address = orNull(() => reader.pointer(at + layout.frame.previous)) ?? 0;
    }
    return [...frames.values()].filter((frame) => frame !== null);
  }

  /** Parts of the copy were read again, so locals are read again. */
  forget(): void {
    this.#python.reader.forget();
    this.#holders = null;
  }

  /** Running frame objects; none from 3.11 on, where frames are not objects. */
  get runningObjects(): Address[] {
    return this.#python.layout.frame.owner === null
      ? this.#running.map(({ address }) => address)
      : [];
  }

  /** How a running function holds an object: thread, frame, and the local if it is in one. null if none does. */
  wordsTo(object: Address): readonly string[] | null {
    this.#holders ??= this.#findHolders();
    const holder = this.#holders.get(object);
    if (holder === undefined) {
      return null;
    }
    const { frame, slot } = holder;
    const name = this.#namesOf(frame)[slot];
    return [
      present(this.#threads.get(frame.address)),
      frameText("frame", frame),
      ...(name === undefined ? [] : [`local ${name}`]),
    ];
  }

  /** How many running frames have this text: "frame Watcher.run (watchers.py:11)". */
  countOf(frame: string): number {
    return this.#running.filter((running) => frameText("frame", running) === frame).length;
  }

  /** The thread that runs a frame object; null if none does. */
  threadOf(object: Address): string | null {
    return this.#threads.get(this.#frameOf(object, "frame")) ?? null;
  }

  /**
   * How a frame object, a generator or a coroutine holds an object: its function and line, and the local. null
   * if `kind` has no locals, or holds the object in another way.
   */
  wordsBetween(object: Address, kind: string, value: Address): readonly string[] | null {
    if (kind !== "frame" && !GENERATORS.has(kind)) {
      return null;
    }
    const frame = orNull(() => readFrame(this.#codes, this.#frameOf(object, kind))) ?? null;
    if (frame === null) {
      return null;
    }
    if (value === frame.address && kind !== "frame") {
      return [frameText(kind, frame)]; // up to 3.10 its frame is a separate object
    }
    const slot = this.#slots(frame).indexOf(value);
    const name = slot < 0 ? undefined : this.#namesOf(frame)[slot];
    return [frameText(kind, frame), name === undefined ? `value of ${kind}` : `local ${name}`];
  }

  /** The variables of a function's code, and how many of the first ones are positional arguments. */
  ofFunction(object: Address): FunctionVariables | null {
    return orNull(() => {
      const { reader, layout } = this.#python;
      const code = reader.pointer(object + layout.function.code);
      // Three argument counts precede co_nlocals until 3.10, and co_stacksize from 3.11 on.
      const counts = layout.code.localsPlusNames === null ? "localCount" : "stackSize";
      return {
        names: this.#readNames(code),
        positional: reader.int32(code + layout.code[counts] - ARGUMENT_COUNTS),
      };
    });
  }

  /** Offsets in a function object. */
  get functionFields(): PythonLayout["function"] {
    return this.#python.layout.function;
  }

  /** 0 where it has none any more. */
  #frameOf(object: Address, kind: string): Address {
    const { reader, layout } = this.#python;
    const { objectFrame } = layout.frame;
    const { frame, frameIsPointer } = layout.generator;
    const inGenerator = kind !== "frame";
    if (inGenerator && frameIsPointer === 0) {
      return object + frame;
    }
    const pointer = inGenerator ? frame : objectFrame;
    return pointer === null ? object : (orNull(() => reader.pointer(object + pointer)) ?? 0);
  }

  #findHolders() {
    const holders = new Map<Address, { frame: PythonFrame; slot: number }>();
    const enter = (frame: PythonFrame, from: number, values: readonly Address[]) => {
      values.forEach((value, n) => {
        if (value !== 0 && !holders.has(value)) {
          holders.set(value, { frame, slot: from + n });
        }
      });
    };
    // Locals first: a slot of the evaluation stack may still contain an old value.
    const slots = this.#running.map((frame) => ({ frame, values: this.#slots(frame) }));
    for (const { frame, values } of slots) {
      enter(frame, 0, values.slice(0, this.#namesOf(frame).length));
    }
    for (const { frame, values } of slots) {
      const named = this.#namesOf(frame).length;
      enter(frame, named, values.slice(named));
    }
    return holders;
  }

  /** The contents of a frame: its locals, then values of the evaluation stack. */
  #slots(frame: PythonFrame): Address[] {
    const { reader, layout } = this.#python;
    const named = this.#namesOf(frame).length;
    const code = this.#codeOf(frame);
    const depth = orNull(() => reader.int32(code + layout.code.stackSize)) ?? 0;
    const count = Math.min(MOST_SLOTS, named + Math.max(0, depth));
    const start = frame.address + layout.frame.localsPlus;
    // Arguments that it passed to the called function are above the top of its stack, and may have been
    // overwritten.
    const top = this.#references.topOf(frame.address) ?? start + count * 8;
    const live = Math.max(named, Math.min(count, (top - start) / 8));
    return Array.from({ length: live }, (_, slot) => {
      const word = orNull(() => reader.pointer(start + slot * 8)) ?? 0;
      return word - (word % TAG);
    });
  }

  #codeOf({ address }: PythonFrame): Address {
    const { reader, layout } = this.#python;
    const word = orNull(() => reader.pointer(address + layout.frame.code)) ?? 0;
    return word - (word % TAG);
  }

  #namesOf(frame: PythonFrame): readonly string[] {
    const code = this.#codeOf(frame);
    let names = this.#names.get(code);
    if (names === undefined) {
      names = orNull(() => this.#readNames(code)) ?? [];
      this.#names.set(code, names);
    }
    return names;
  }

  #readNames(code: Address): readonly string[] {
    const { reader, layout } = this.#python;
    const { localsPlusNames, variableNames, cellNames, freeNames } = layout.code;
    return [localsPlusNames, variableNames, cellNames, freeNames]
      .filter((field) => field !== null)
      .flatMap((field) => readItems(this.#python, reader.pointer(code + field)))
      .map((name) => oneLine(readText(this.#python, name)));
  }
}

function frameText(kind: string, { code, line }: PythonFrame): string {
  const place = `${basename(code.file)}${line > 0 ? `:${line}` : ""}`;
  return oneLine(`${kind} ${code.function} (${place})`);
}
