/**
 * Names of the functions of an ELF64 object by address, from .symtab, otherwise from .dynsym. Source: elf(5);
 * System V ABI, chapter 4 (string table, symbol table).
 *
 *   symbol, 24 bytes            0 u32 name   4 u8 info (type: low half)   6 u16 section   8 u64 value   16 u64 size
 *
 * The table is read once for all requested addresses, in pieces: sorting an index of half a million symbols
 * takes longer than a hundred passes, and the index would stay in memory. Every offset and size is checked
 * against the file size, because a mapped path may lead to any bytes.
 */

import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { float64At, itemAt, uint32At } from "../model/base/columns.js";
import { readSections, type Section } from "./elf_sections.js";

const SYMBOL_BYTES = 24;
const SYMBOL_WORDS = SYMBOL_BYTES / 4;
const SYMTAB = 2;
const DYNSYM = 11;
const FUNCTION = 2;
const INDIRECT_FUNCTION = 10;
const GLOBAL_BINDING = 1;
const MOST_SYMBOLS = 2 ** 21;
/** Number of symbols read at once. */
const PIECE_SYMBOLS = 2 ** 13;
const LONGEST_NAME = 16_384;
/** Maximum length of a symbol without a size (hand-written assembly). */
const UNSIZED_REACH = 65_536;

export class ElfSymbols {
  private constructor(
    readonly path: string,
    readonly table: Section,
    readonly strings: Section,
  ) {}

  /**
   * Symbols of the object at `path`; null if it is not an ELF64 little-endian file, is damaged, has no symbols
   * or cannot be read. Such an object is shown by its file name.
   */
  static open(path: string): ElfSymbols | null {
    return withFile(path, (fd, fileSize) => {
      const sections = readSections(fd, fileSize);
      const table =
        sections.find((section) => section.type === SYMTAB) ??
        sections.find((section) => section.type === DYNSYM);
      const strings = table === undefined ? undefined : sections[table.link];
      if (table === undefined || strings === undefined || table.size < SYMBOL_BYTES) {
        return null;
      }
      const isWhole = [table, strings].every(({ offset, size }) => offset + size <= fileSize);
      return isWhole ? new ElfSymbols(path, table, strings) : null;
    });
  }

  /**
   * Mangled names of the functions that contain the addresses (virtual addresses as in the file); "" if there
   * is none.
   */
  names(addresses: readonly number[]): string[] {
    const wanted = Float64Array.from(new Set(addresses)).sort();
    const names = withFile(this.path, (fd) => {
      const found = nearestFunctions(fd, this.table, this.strings, wanted);
      return new Map(
        found.map(({ name }, n) => [wanted[n], name < 0 ? "" : nameAt(fd, this.strings, name)]),
      );
    });
    return addresses.map((address) => names?.get(address) ?? "");
  }
}

interface FoundFunction {
  start: number;
  size: number;
  isGlobal: boolean;
  /** Offset of the name in the string table; -1 if there is none. */
  name: number;
}

/** For each of the addresses, ascending, the function that contains it. */
function nearestFunctions(
  fd: number,
  table: Section,
  strings: Section,
  wanted: Float64Array,
): FoundFunction[] {
  // The last symbol between a requested address and the one before it.
  const found = Array.from(
    wanted,
    (): FoundFunction => ({ start: -1, size: 0, isGlobal: false, name: -1 }),
  );
  const last = wanted.at(-1) ?? -1;
  for (const words of piecesOf(fd, table)) {
    for (let at = 0; at < words.length; at += SYMBOL_WORDS) {
      const start = uint32At(words, at + 2);
      const type = uint32At(words, at + 1) & 0xf;
      if (
        (type !== FUNCTION && type !== INDIRECT_FUNCTION) ||
        start > last ||
        uint32At(words, at + 1) >>> 16 === 0 || // in no section: defined by another object
        words[at + 3] !== 0 ||
        start === 0 ||
        uint32At(words, at) >= strings.size
      ) {
        continue;
      }
      const nearest = itemAt(found, firstAtLeast(wanted, start));
      const isGlobal = (uint32At(words, at + 1) & 0xff) >>> 4 === GLOBAL_BINDING;
      // If two symbols have the same address, the global one counts, otherwise the first.
      if (start > nearest.start || (start === nearest.start && isGlobal && !nearest.isGlobal)) {
        nearest.start = start;
        nearest.size = uint32At(words, at + 4) + uint32At(words, at + 5) * 2 ** 32;
        nearest.isGlobal = isGlobal;
        nearest.name = uint32At(words, at);
      }
    }
  }
  let before: FoundFunction | null = null;
  return found.map((own, n) => {
    const nearest: FoundFunction = own.name >= 0 || before === null ? own : before;
    before = nearest;
    const distance = float64At(wanted, n) - nearest.start;
    const reach = nearest.size === 0 ? UNSIZED_REACH : nearest.size;
    return distance < reach ? nearest : { ...nearest, name: -1 };
  });
}

/** The words of the table, a few thousand symbols at a time; returns the same array each time. */
function* piecesOf(fd: number, table: Section): Generator<Uint32Array> {
  const bytes = new Uint8Array(PIECE_SYMBOLS * SYMBOL_BYTES);
  const symbols = Math.min(Math.floor(table.size / SYMBOL_BYTES), MOST_SYMBOLS);
  const end = table.offset + symbols * SYMBOL_BYTES;
  for (let at = table.offset; at < end; ) {
    const got = readSync(fd, bytes, 0, Math.min(bytes.length, end - at), at);
    const whole = Math.floor(got / SYMBOL_BYTES);
    if (whole === 0) {
      return; // the file was truncated in the meantime
    }
    yield new Uint32Array(bytes.buffer, 0, whole * SYMBOL_WORDS);
    at += whole * SYMBOL_BYTES;
  }
}

/** Index of the first value that is not smaller; there must be one. */
function firstAtLeast(values: Float64Array, least: number): number {
  let low = 0;
  let high = values.length - 1;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (float64At(values, middle) < least) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

function nameAt(fd: number, strings: Section, name: number): string {
  const offset = strings.offset + name;
  const length = Math.min(LONGEST_NAME, strings.size - name);
  // Nearly every name is short; only a long one needs a second read.
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

/** null if the file cannot be opened, is not a regular file, or cannot be read. */
function withFile<Result>(
  path: string,
  use: (fd: number, size: number) => Result | null,
): Result | null {
  let fd: number;
  try {
    // Opening a FIFO would wait for its writer.
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
