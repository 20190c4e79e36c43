/**
 * The names that the lines of a function load, and whether they store items under keys, read from the copy
 * instruction by instruction.
 *
 *   code     names (attributes, globals, methods), variables, constants (code of functions within it)
 *   bytes    two per word: the instruction's number and its argument; from 3.11 on, cache words follow some
 *   lines    which instruction is of which line
 *
 * Invalid code, which is already freed, uses nothing.
 */

import { MemoryReader } from "../../../linux/index.js";
import { uint8At } from "../../../model/base/columns.js";
import type { Address } from "../../../model/base/units.js";
import { orNull } from "../../../model/errors/errors.js";
import type { PythonRuntime } from "../../interpreter/locate.js";
import { readItems, readText, typeName, typeOf } from "../../interpreter/objects.js";
import { minorOf } from "../../interpreter/version_facts.js";
import { OPCODES, type Opcodes } from "../../layouts/opcodes.js";
import { type Code, CodeReader } from "../../stacks/code.js";
import type { HeapPages } from "../memory/heap_pages.js";

const LONGEST_CODE = 2 ** 20;
/**
 * A module with this many functions in files that are not wanted, before any in a file that is, is of a library. Its other
 * functions are not read: their code is scattered over the heap.
 */
const ENOUGH = 3;
/** Depth of nested functions. */
const DEEPEST = 4;

export interface CodeUses extends Pick<Code, "function" | "file" | "firstLine"> {
  /** All names that its lines may load. */
  readonly names: ReadonlySet<string>;
  /** Lines that load something; decoded when they are asked for. */
  readonly lines: readonly LineUses[];
}

export interface LineUses extends Uses {
  readonly line: number;
}

export interface Uses {
  /** The attributes, methods, globals and variables that it loads, in instruction order. */
  readonly names: readonly string[];
  /** It contains `container[key] = value`. */
  readonly storesItems: boolean;
}

interface SourceFile {
  readonly isWanted: boolean;
  /** Generated at run time, such as the methods of a dataclass: any module may have them. */
  readonly isGenerated: boolean;
}

export class CodeUsesReader {
  readonly #python: PythonRuntime;
  readonly #codes: CodeReader;
  /** By co_filename. */
  readonly #files = new Map<Address, SourceFile>();
  /** Names, which most functions share, and whether a type is that of code, both by address. */
  readonly #texts = new Map<Address, string>();
  readonly #isCode = new Map<Address, boolean>();

  constructor(python: PythonRuntime, copy: HeapPages) {
    this.#python = { ...python, memory: copy, reader: new MemoryReader(copy) };
    this.#codes = new CodeReader(this.#python);
  }

  /** The code of function objects and of the functions nested in them, each once. `isWanted` decides by file. */
  read(functions: Iterable<Address>, isWanted: (file: string) => boolean): CodeUses[] {
    const { reader, layout } = this.#python;
    const met = new Set<Address>();
    const enter = (code: Address, file: SourceFile, depth: number) => {
      if (met.has(code) || depth > DEEPEST || !file.isWanted) {
        return;
      }
      met.add(code);
      for (const inner of orNull(() => this.#codesWithin(code)) ?? []) {
        enter(inner, this.#fileOf(inner, isWanted), depth + 1);
      }
    };
    // By a module's globals: how many of its functions are not wanted, or less than 0 once one is.
    const modules = new Map<Address, number>();
    for (const address of functions) {
      const globals = orNull(() => reader.pointer(address + layout.function.globals)) ?? 0;
      const unwanted = modules.get(globals) ?? 0;
      const code =
        unwanted < ENOUGH ? orNull(() => reader.pointer(address + layout.function.code)) : null;
      if (code !== null) {
        const file = this.#fileOf(code, isWanted);
        enter(code, file, 0);
        if (!file.isGenerated) {
          modules.set(globals, file.isWanted ? Number.NEGATIVE_INFINITY : unwanted + 1);
        }
      }
    }
    return [...met].flatMap((code) => orNull(() => this.#usesOf(code)) ?? []);
  }

  #fileOf(code: Address, isWanted: (file: string) => boolean): SourceFile {
    const { reader, layout } = this.#python;
    const name = orNull(() => reader.pointer(code + layout.code.file)) ?? 0;
    let file = this.#files.get(name);
    if (file === undefined) {
      const path = orNull(() => readText(this.#python, name));
      file = {
        isWanted: path !== null && isWanted(path),
        isGenerated: path === null || path.startsWith("<"),
      };
      this.#files.set(name, file);
    }
    return file;
  }

  #codesWithin(code: Address): Address[] {
    const { reader, layout } = this.#python;
    const constants = readItems(this.#python, reader.pointer(code + layout.code.constants));
    return constants.filter((constant) => {
      const type = typeOf(this.#python, constant);
      const isCode = this.#isCode.get(type) ?? typeName(this.#python, type) === "code";
      this.#isCode.set(type, isCode);
      return isCode;
    });
  }

  #usesOf(address: Address): CodeUses {
    const { layout } = this.#python;
    const code = this.#codes.read(address);
    const opcodes = OPCODES[minorOf(layout.version)];
    const texts = this.#namesOf(address);
    const { function: name, file, firstLine } = code;
    const names = new Set(Object.values(texts).flat());
    let lines: LineUses[] | null = opcodes === undefined ? [] : null;
    const decode = () =>
      opcodes === undefined ? [] : orNull(() => this.#linesOf(address, code, opcodes, texts));
    return {
      function: name,
      file,
      firstLine,
      names,
      get lines() {
        lines ??= decode() ?? [];
        return lines;
      },
    };
  }

  #linesOf(address: Address, code: Code, opcodes: Opcodes, texts: CodeNames): LineUses[] {
    const lines = new Map<number, { line: number; names: string[]; storesItems: boolean }>();
    for (const { at, instruction, argument } of instructionsOf(this.#bytesOf(address), opcodes)) {
      const names = namesAt(opcodes, texts, instruction, argument);
      const storesItems = opcodes.storeSubscript.includes(instruction);
      if (names.length > 0 || storesItems) {
        const line = this.#codes.line(code, at);
        const uses = lines.get(line) ?? { line, names: [], storesItems: false };
        lines.set(line, uses);
        uses.names.push(...names);
        uses.storesItems ||= storesItems;
      }
    }
    return [...lines.values()];
  }

  #namesOf(code: Address): CodeNames {
    const { code: fields } = this.#python.layout;
    const locals = this.#textsOf(code, fields.localsPlusNames ?? fields.variableNames);
    // Since 3.11, cells are numbered among the variables.
    const apart = [
      ...this.#textsOf(code, fields.cellNames),
      ...this.#textsOf(code, fields.freeNames),
    ];
    const cells = fields.localsPlusNames === null ? apart : locals;
    return { globals: this.#textsOf(code, fields.names), locals, cells };
  }

  /** From a tuple of names; empty if this version has no such field. */
  #textsOf(code: Address, field: number | null): string[] {
    const { reader } = this.#python;
    return field === null
      ? []
      : readItems(this.#python, reader.pointer(code + field)).map((name) => {
          const text = this.#texts.get(name) ?? readText(this.#python, name);
          this.#texts.set(name, text);
          return text;
        });
  }

  /** From 3.11 on in the code object itself, counted in words; before, in a bytes object. */
  #bytesOf(code: Address): Uint8Array {
    const { reader, layout } = this.#python;
    const isInPlace = layout.code.localsPlusNames !== null;
    const holder = isInPlace ? code : reader.pointer(code + layout.code.bytes);
    const count = reader.int64(holder + layout.object.variableSize);
    const length = isInPlace ? count * 2 : count;
    const start = isInPlace ? code + layout.code.bytes : holder + layout.bytes.data;
    return length > 0 && length <= LONGEST_CODE ? reader.bytes(start, length) : new Uint8Array();
  }
}

/** The names of a function, each list as its instructions number it. */
interface CodeNames {
  readonly globals: readonly string[];
  readonly locals: readonly string[];
  readonly cells: readonly string[];
}

/** The names to which an instruction's argument refers. */
function namesAt(
  opcodes: Opcodes,
  texts: CodeNames,
  instruction: number,
  argument: number,
): string[] {
  return loadedAt(opcodes, texts, instruction, argument).filter((name) => name !== undefined);
}

/** Undefined where an argument is beyond the names, as in code that was damaged. */
function loadedAt(
  { names, variables, pairs, cells }: Opcodes,
  texts: CodeNames,
  instruction: number,
  argument: number,
): (string | undefined)[] {
  const shift = names[instruction];
  if (shift !== undefined) {
    return [texts.globals[argument >> shift]];
  }
  if (pairs.includes(instruction)) {
    return [texts.locals[argument >> 4], texts.locals[argument & 15]];
  }
  if (cells.includes(instruction)) {
    return [texts.cells[argument]];
  }
  return variables.includes(instruction) ? [texts.locals[argument]] : [];
}

interface Instruction {
  /** Number of bytes, from the first. */
  readonly at: number;
  readonly instruction: number;
  readonly argument: number;
}

function* instructionsOf(bytes: Uint8Array, opcodes: Opcodes): Iterable<Instruction> {
  let upper = 0;
  for (let at = 0; at + 1 < bytes.length; ) {
    const instruction = uint8At(bytes, at);
    const argument = upper + uint8At(bytes, at + 1);
    const isExtension = instruction === opcodes.extendedArgument;
    if (!isExtension) {
      yield { at, instruction, argument };
    }
    upper = isExtension ? argument * 256 : 0;
    at += 2 + 2 * (opcodes.caches[instruction] ?? 0);
  }
}
