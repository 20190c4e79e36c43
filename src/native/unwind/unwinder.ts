/**
 * Native stacks of threads, unwound from outside from a copy of their registers and stacks.
 *
 *   HeldThread (src/linux)         registers, and the stack from its pointer up, of one moment
 *     │  instruction ──> mapping ──> ELF object ──> frame description ──> row of rules
 *     │  rules + registers + stack ──> the caller's registers                            again, until
 *     v                                                                                 the first frame
 *   NativeStack (src/model)        functions, leaf first, and why they end
 *
 * | what | outcome |
 * |---|---|
 * | stripped object | .eh_frame is still there; functions are named by dynamic symbols, otherwise by offset |
 * | deleted file, other mount namespace | opened through /proc/PID/map_files and root; otherwise read from memory |
 * | the vdso, files out of reach | read from memory |
 * | code without a description (created at run time, assembly) | followed to its return, otherwise its frame pointer |
 * | a signal's handler | its frame holds all registers, even on a separate stack |
 * | damaged or hostile descriptions | the stack ends there, with the reason: every step must go up the stack, every
 *   program and expression is bounded |
 * | a stack longer than its copy | ends there, with the reason |
 * | the thread has just begun or is ending | no frames, and the reason |
 */

import {
  type HeldThread,
  type Mapping,
  type Memory,
  MemoryReader,
  type ThreadUnwinder,
} from "../../linux/index.js";
import { float64At, itemAt } from "../../model/base/columns.js";
import type { Address } from "../../model/base/units.js";
import { orNull, TidemarkError } from "../../model/errors/errors.js";
import { baseName } from "../../model/profile/frame_text.js";
import type { NativeFrame, NativeStack } from "../../model/profile/native_stack.js";
import { demangle } from "../demangle.js";
import { ElfSymbols } from "../elf_symbols.js";
import { RBP, RETURN_ADDRESS, RSP, rowAt, type UnwindRow } from "./call_frame_program.js";
import { callerByRow } from "./caller_by_row.js";
import { DamagedUnwinding } from "./dwarf_cursor.js";
import { ElfObject } from "./elf_object.js";
import { MappedCode } from "./mapped_code.js";
import { ALL_EFFORT } from "./return_search.js";
import { ThreadView } from "./thread_view.js";
import { callerWithoutDescription } from "./without_description.js";

const MOST_FRAMES = 2 ** 16;
const MOST_SIGNALS = 16;

interface LoadedObject {
  readonly path: string;
  readonly elf: ElfObject;
  readonly symbols: ElfSymbols | null;
}

interface Caller {
  readonly registers: Float64Array;
  readonly isSignalFrame: boolean;
}

/** A frame before it is named. */
type Place = Pick<NativeFrame, "address" | "low" | "high">;

/** Why a step is not possible, in words for users. */
class StackCut extends Error {}

export class Unwinder implements ThreadUnwinder {
  readonly #code: MappedCode;
  readonly #reader: MemoryReader;
  /** By the start of the object's first mapping; null if it is not an ELF object. */
  readonly #objects = new Map<Address, LoadedObject | null>();
  /** Threads wait in few places, so what is known about an address is reused for all threads. */
  readonly #rows = new Map<Address, UnwindRow | null>();
  readonly #names = new Map<Address, Pick<NativeFrame, "function" | "file">>();

  readonly #effort = { left: ALL_EFFORT };

  constructor(memory: Memory) {
    this.#code = new MappedCode(memory);
    this.#reader = new MemoryReader(this.#code);
  }

  close(): void {
    this.#code.close();
  }

  unwind(thread: HeldThread): NativeStack {
    const places: Place[] = [];
    const cut = this.#walk(thread, places);
    this.#name(places.map(({ address }) => address));
    const frames = places.map((place) => ({
      ...place,
      ...(this.#names.get(place.address) ?? NOWHERE),
    }));
    return { tid: thread.tid, frames, cut };
  }

  /** Returns why the stack ends before the thread's first function; null if it does not. */
  #walk(thread: HeldThread, places: Place[]): string | null {
    const view = new ThreadView(thread, thread.values, this.#reader);
    if (thread.stacks.length === 0) {
      return "its stack pointer points outside its memory";
    }
    let exact = true; // the instruction itself, not the one after a call
    let signals = 0;
    for (;;) {
      const address = exact ? view.instruction : view.instruction - 1;
      const low = view.stackPointer;
      let caller: Caller | null;
      try {
        caller = this.#callerOf(view, address);
      } catch (error) {
        places.push({ address, low, high: low });
        return this.#reasonOf(error, address);
      }
      const high = caller?.registers[RSP] ?? low;
      places.push({ address, low, high });
      if (caller === null || caller.registers[RETURN_ADDRESS] === 0) {
        return null;
      }
      signals += caller.isSignalFrame ? 1 : 0;
      const forward = high > low || (caller.isSignalFrame && signals < MOST_SIGNALS);
      if (!forward || places.length === MOST_FRAMES) {
        return "the return path is a circle";
      }
      if (!this.#isCode(float64At(caller.registers, RETURN_ADDRESS))) {
        return beyond(thread, high)
          ? "the rest of its stack was not copied"
          : "the return address is not in code";
      }
      if (caller.isSignalFrame && !view.holds(high)) {
        return "the code that the signal interrupted runs on another stack";
      }
      view.registers = caller.registers;
      exact = caller.isSignalFrame;
    }
  }

  /** null if it is the thread's first function. Throws StackCut, DamagedUnwinding, TM-E024. */
  #callerOf(view: ThreadView, address: Address): Caller | null {
    const row = this.#rowAt(address);
    if (row !== null) {
      return callerByRow(this.#reader, view, row);
    }
    const isCode = (place: Address) => this.#isCode(place);
    const caller = callerWithoutDescription(this.#reader, view, isCode, this.#effort);
    if (caller === null && view.register(RBP) !== 0) {
      throw new StackCut("no unwinding information");
    }
    return caller;
  }

  #rowAt(address: Address): UnwindRow | null {
    let row = this.#rows.get(address);
    if (row === undefined) {
      const description = this.#objectAt(address)?.elf.describe(address) ?? null;
      row = description === null ? null : rowAt(this.#reader, description, address);
      this.#rows.set(address, row);
    }
    return row;
  }

  #isCode(address: Address): boolean {
    return this.#code.mappingOf(address)?.executable === true;
  }

  #objectAt(address: Address): LoadedObject | null {
    const mapping = this.#code.mappingOf(address);
    const first = mapping === null ? null : this.#firstOf(mapping);
    if (first === null) {
      return null;
    }
    let object = this.#objects.get(first.start);
    if (object === undefined) {
      object = this.#open(first);
      this.#objects.set(first.start, object);
    }
    return object;
  }

  /** The first mapping of the object. A file may be mapped several times: the nearest one below counts. */
  #firstOf(mapping: Mapping): Mapping | null {
    if (mapping.path === "[vdso]") {
      return mapping;
    }
    const same = this.#code.mappings.filter(
      ({ inode, device, offset, start }) =>
        inode === mapping.inode &&
        device === mapping.device &&
        offset === 0 &&
        start <= mapping.start,
    );
    return mapping.inode === 0 ? null : (same.at(-1) ?? null);
  }

  #open(first: Mapping): LoadedObject | null {
    const file = this.#code.fileOf(first);
    const elf = ElfObject.read(this.#reader, first, file);
    return elf === null
      ? null
      : {
          path: first.path,
          elf,
          symbols: file === null ? null : ElfSymbols.open(`/proc/self/fd/${file}`),
        };
  }

  /** Names the frames that have no name yet, object by object. */
  #name(addresses: readonly Address[]): void {
    const byObject = new Map<LoadedObject, Address[]>();
    for (const address of new Set(addresses)) {
      if (!this.#names.has(address)) {
        const object = orNull(() => this.#objectAt(address));
        if (object === null) {
          this.#names.set(address, NOWHERE);
        } else {
          byObject.set(object, [...(byObject.get(object) ?? []), address]);
        }
      }
    }
    for (const [{ path, elf, symbols }, places] of byObject) {
      const inFile = places.map((address) => address - elf.bias);
      const found = symbols?.names(inFile) ?? [];
      places.forEach((address, index) => {
        const name = demangle(found[index] ?? "");
        const place = `${baseName(path)}+0x${itemAt(inFile, index).toString(16)}`;
        this.#names.set(address, { function: name === "" ? place : name, file: path });
      });
    }
  }

  #reasonOf(error: unknown, address: Address): string {
    const path = this.#code.mappingOf(address)?.path ?? "";
    const place = path === "" ? "code outside any object file" : baseName(path);
    if (error instanceof StackCut) {
      return `${error.message} in ${place}`;
    }
    if (error instanceof DamagedUnwinding) {
      return `the unwinding information in ${place} is damaged: ${error.message}`;
    }
    if (error instanceof TidemarkError) {
      return `the unwinding information in ${place} cannot be read`;
    }
    throw error;
  }
}

const NOWHERE = { function: "code outside any object file", file: "" };

/** Whether a word just below `address` is beyond the end of a copy that is not the whole stack. */
function beyond({ stacks }: HeldThread, address: Address): boolean {
  return stacks.some(
    ({ start, bytes, cut }) => cut && address > start + bytes.length && start <= address,
  );
}
