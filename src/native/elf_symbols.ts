/**
 * The functions of an ELF64 object, by address: from .symtab, else .dynsym.
 * Source: elf(5); System V ABI, chapter 4 (string table, symbol table).
 *
 *   symbol, 24 bytes            0 u32 name   4 u8 info (type: low half)   6 u16 section   8 u64 value   16 u64 size
 *
 * Only the symbol table is read into memory, as a sorted index; names are read one by one when asked
 * for. Every offset and size is checked against the file's, for a mapped path may lead to any bytes.
 */

import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { float64At } from "../model/base/columns.js";
import { readRange, readSections, type Section } from "./elf_sections.js";

const SYMBOL_BYTES = 24;
const SYMTAB = 2;
const DYNSYM = 11;
const FUNCTION = 2;
const INDIRECT_FUNCTION = 10;
const GLOBAL_BINDING = 1;
/** Sorting keys hold address and row in one double: 32 and 21 bits. */
const ROW_LIMIT = 2 ** 21;
const MOST_SYMBOL_BYTES = ROW_LIMIT * SYMBOL_BYTES;
const ADDRESS_LIMIT = 2 ** 32;
const LONGEST_NAME = 16_384;
/** How far a symbol without a size (hand-written assembly) reaches at most. */
const UNSIZED_REACH = 65_536;

export class ElfSymbols {
  readonly #path: string;
  /** Columns of the functions, ascending by address. */
  readonly #starts: Float64Array;
  readonly #sizes: Float64Array;
  /** Offset of the name in the file. */
  readonly #names: Float64Array;
  readonly #namesEnd: number;

  private constructor(path: string, columns: SymbolColumns, namesEnd: number) {
    this.#path = path;
    this.#starts = columns.starts;
    this.#sizes = columns.sizes;
    this.#names = columns.names;
    this.#namesEnd = namesEnd;
  }

  /** Symbols of the object at `path`; null where it is no ELF64 little-endian file, is damaged, has no
   * symbols or cannot be read: such an object is shown by its name. */
  static open(path: string): ElfSymbols | null {
    return withFile(path, (fd, fileSize) => {
      const sections = readSections(fd, fileSize);
      const table =
        sections.find((section) => section.type === SYMTAB) ??
        sections.find((section) => section.type === DYNSYM);
      const names = table === undefined ? undefined : sections[table.link];
      if (table === undefined || names === undefined) {
        return null;
      }
      const symbols = readRange(
        fd,
        fileSize,
        table.offset,
        Math.min(table.size, MOST_SYMBOL_BYTES),
      );
      return symbols === null || names.offset + names.size > fileSize
        ? null
        : new ElfSymbols(path, functionsOf(symbols, names), names.offset + names.size);
    });
  }

  /** Mangled names of the functions that hold the addresses (virtual, as the file has them); "" where
   * none does. */
  names(addresses: readonly number[]): string[] {
    const rows = addresses.map((address) => this.#rowOf(address));
    const names = withFile(this.#path, (fd) =>
      rows.map((row) => (row < 0 ? "" : this.#nameOf(fd, row))),
    );
    return names ?? rows.map(() => "");
  }

  #rowOf(address: number): number {
    const starts = this.#starts;
    let low = 0;
    let high = starts.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (float64At(starts, middle) <= address) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    const row = low - 1;
    if (row < 0) {
      return -1;
    }
    const distance = address - float64At(starts, row);
    const size = float64At(this.#sizes, row);
    return distance < (size === 0 ? UNSIZED_REACH : size) ? row : -1;
  }

  #nameOf(fd: number, row: number): string {
    const offset = float64At(this.#names, row);
    const length = Math.min(LONGEST_NAME, this.#namesEnd - offset);
    // Nearly every name is short; only a long one costs a second read.
    for (const wanted of [Math.min(256, length), length]) {
      const bytes = Buffer.alloc(wanted);
      const read = readSync(fd, bytes, 0, wanted, offset);
      const end = bytes.subarray(0, read).indexOf(0);
      if (end >= 0) {
        return bytes.toString("utf8", 0, end);
      }
    }
    return "";
  }
}

interface SymbolColumns {
  readonly starts: Float64Array;
  readonly sizes: Float64Array;
  readonly names: Float64Array;
}

/** Functions by address, one for each: a global one before a local one of the same place. */
function functionsOf(symbols: Buffer, names: Section): SymbolColumns {
  const count = Math.min(Math.floor(symbols.length / SYMBOL_BYTES), ROW_LIMIT);
  const view = new DataView(symbols.buffer, symbols.byteOffset, symbols.byteLength);
  const keys = new Float64Array(count);
  let found = 0;
  for (let row = 0; row < count; row++) {
    const at = row * SYMBOL_BYTES;
    const type = symbols[at + 4]! & 0xf;
    const isFunction = type === FUNCTION || type === INDIRECT_FUNCTION;
    const address = view.getUint32(at + 8, true);
    const inSection = view.getUint16(at + 6, true) !== 0;
    const high = view.getUint32(at + 12, true);
    if (isFunction && inSection && high === 0 && address > 0 && address < ADDRESS_LIMIT) {
      keys[found++] = address * ROW_LIMIT + row;
    }
  }
  const sorted = keys.subarray(0, found).sort();
  const starts = new Float64Array(found);
  const sizes = new Float64Array(found);
  const nameOffsets = new Float64Array(found);
  let length = 0;
  let globalHere = false;
  for (const key of sorted) {
    const row = key % ROW_LIMIT;
    const address = (key - row) / ROW_LIMIT;
    const at = row * SYMBOL_BYTES;
    const name = view.getUint32(at, true);
    const isGlobal = symbols[at + 4]! >> 4 === GLOBAL_BINDING;
    const samePlace = length > 0 && starts[length - 1] === address;
    if (name >= names.size || (samePlace && (globalHere || !isGlobal))) {
      continue;
    }
    const target = samePlace ? length - 1 : length++;
    globalHere = isGlobal;
    starts[target] = address;
    sizes[target] = view.getUint32(at + 16, true) + view.getUint32(at + 20, true) * 2 ** 32;
    nameOffsets[target] = names.offset + name;
  }
  return {
    starts: starts.slice(0, length),
    sizes: sizes.slice(0, length),
    names: nameOffsets.slice(0, length),
  };
}

/** null where the file cannot be opened, is none, or fails to be read. */
function withFile<Result>(
  path: string,
  use: (fd: number, size: number) => Result | null,
): Result | null {
  let fd: number;
  try {
    // A FIFO would wait for its writer.
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return null;
  }
  try {
    const status = fstatSync(fd);
    return status.isFile() ? use(fd, status.size) : null;
  } catch {
    return null;
  } finally {
    closeSync(fd);
  }
}
