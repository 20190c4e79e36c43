/**
 * A loaded ELF object: the range of its code, and its frame descriptions by address.
 *
 *   file header, 64 bytes      32 u64 program headers   40 u64 section headers   54 u16 size  56 u16 count
 *                              58 u16 size of a section header   60 u16 count   62 u16 section of the names
 *   program header, 56 bytes   0 u32 type   8 u64 offset   16 u64 virtual address
 *   section header, 64 bytes   0 u32 name   16 u64 virtual address   24 u64 offset   32 u64 size
 *
 *   .eh_frame_hdr   u8 version 1   u8 encoding of the next   u8 of the count   u8 of the table
 *                   pointer to .eh_frame   count   table: (start of code, its description), ascending
 *
 * A program linked with -static has no .eh_frame_hdr, so its section is found by name in the file and read
 * once. Source: System V ABI, chapters 4 and 5; Linux Standard Base, section .eh_frame_hdr.
 */

import { readSync } from "node:fs";
import type { Mapping, MemoryReader } from "../../linux/index.js";
import { uint32At } from "../../model/base/columns.js";
import { growingFloat64 } from "../../model/base/growing_column.js";
import type { Address } from "../../model/base/units.js";
import { DamagedUnwinding, DwarfCursor, NO_POINTER } from "./dwarf_cursor.js";
import { entryAt, type FrameDescription, readFrameDescription } from "./frame_description.js";

const PT_LOAD = 1;
const PT_GNU_EH_FRAME = 0x6474e550;
const PROGRAM_HEADER_BYTES = 56;
const SECTION_HEADER_BYTES = 64;
const MOST_HEADERS = 1024;
const MOST_SECTIONS = 65_536;
const LONGEST_SECTION_NAME = 64;
/** 32-bit distances from .eh_frame_hdr, which all linkers write. */
const SORTED_TABLE = 0x3b;
const ROW_BYTES = 8;
const MOST_DESCRIPTIONS = 2 ** 22;

/** Descriptions, ascending by the start of their code. */
interface DescriptionTable {
  readonly length: number;
  startOf(row: number): Address;
  descriptionOf(row: number): Address;
}

export class ElfObject {
  #table: DescriptionTable | null = null;

  /** .eh_frame_hdr; 0 if there is none. */
  readonly #header: Address;
  readonly #file: number | null;

  private constructor(
    readonly reader: MemoryReader,
    /** The difference between addresses in memory and in the file. */
    readonly bias: Address,
    header: Address,
    file: number | null,
  ) {
    this.#header = header;
    this.#file = file;
  }

  /**
   * `first`: the mapping of the object's beginning; `file`: the file's bytes, if available. null if it is not a
   * 64-bit ELF object. Throws TM-E024 if memory is unmapped in the meantime.
   */
  static read(reader: MemoryReader, first: Mapping, file: number | null): ElfObject | null {
    const { start } = first;
    if (reader.uint32(start) !== 0x464c457f || reader.uint8(start + 4) !== 2) {
      return null;
    }
    const headers = start + reader.uint64(start + 32);
    const count = Math.min(reader.uint16(start + 56), MOST_HEADERS);
    let bias: number | null = null;
    let frames: Address | null = null;
    for (
      let at = headers;
      at < headers + count * PROGRAM_HEADER_BYTES;
      at += PROGRAM_HEADER_BYTES
    ) {
      const type = reader.uint32(at);
      if (type === PT_LOAD && bias === null) {
        bias = start - (reader.uint64(at + 16) - reader.uint64(at + 8));
      } else if (type === PT_GNU_EH_FRAME) {
        frames = reader.uint64(at + 16);
      }
    }
    return bias === null
      ? null
      : new ElfObject(reader, bias, frames === null ? 0 : bias + frames, file);
  }

  /**
   * The description of the frames of the code at `address`; null if there is none. Throws DamagedUnwinding,
   * TM-E024.
   */
  describe(address: Address): FrameDescription | null {
    this.#table ??= this.#readTable();
    const table = this.#table;
    let low = 0;
    let high = table.length;
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (table.startOf(middle) <= address) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    if (low === 0) {
      return null;
    }
    const found = readFrameDescription(this.reader, table.descriptionOf(low - 1), this.#header);
    return address >= found.start && address < found.end ? found : null;
  }

  #readTable(): DescriptionTable {
    const header = this.#header;
    const { reader } = this;
    if (header === 0) {
      const section = this.#sectionByName(".eh_frame");
      return section === null ? NO_TABLE : this.#scan(section.start, section.end);
    }
    const cursor = new DwarfCursor(reader, header, header + 64);
    const [version, placeEncoding, countEncoding, tableEncoding] = Array.from({ length: 4 }, () =>
      cursor.uint8(),
    ) as [number, number, number, number];
    if (version !== 1 || placeEncoding === NO_POINTER) {
      throw new DamagedUnwinding(`a table of version ${version}`);
    }
    const section = cursor.pointer(placeEncoding, header);
    if (tableEncoding !== SORTED_TABLE || countEncoding === NO_POINTER) {
      return this.#scan(section, Number.POSITIVE_INFINITY);
    }
    const length = cursor.pointer(countEncoding, header);
    const rows = cursor.at;
    if (!(length >= 0 && length <= MOST_DESCRIPTIONS)) {
      throw new DamagedUnwinding(`a table of ${length} rows`);
    }
    return {
      length,
      startOf: (row) => header + reader.int32(rows + row * ROW_BYTES),
      descriptionOf: (row) => header + reader.int32(rows + row * ROW_BYTES + 4),
    };
  }

  /** Reads all descriptions up to the end of the section or its end mark. */
  #scan(start: Address, end: Address): DescriptionTable {
    const header = this.#header;
    const { reader } = this;
    const starts = growingFloat64();
    const places = growingFloat64();
    for (let at = start; at < end && starts.length < MOST_DESCRIPTIONS; ) {
      const entry = entryAt(reader, at);
      if (entry === null) {
        break;
      }
      if (entry.distance !== 0) {
        starts.push(readFrameDescription(reader, at, header).start);
        places.push(at);
      }
      at = entry.end;
    }
    const order = Uint32Array.from(starts.view(), (_, row) => row).sort(
      (a, b) => starts.at(a) - starts.at(b),
    );
    return {
      length: order.length,
      startOf: (row) => starts.at(uint32At(order, row)),
      descriptionOf: (row) => places.at(uint32At(order, row)),
    };
  }

  /** Section headers are not loaded, so the file is needed. */
  #sectionByName(name: string): { readonly start: Address; readonly end: Address } | null {
    const head = this.#fileBytes(0, 64);
    const offset = Number(head.readBigUInt64LE(40));
    const count = Math.min(head.readUInt16LE(60), MOST_SECTIONS);
    const namesIndex = head.readUInt16LE(62);
    if (head.readUInt16LE(58) !== SECTION_HEADER_BYTES || namesIndex >= count) {
      return null;
    }
    const table = this.#fileBytes(offset, count * SECTION_HEADER_BYTES);
    const field = (section: number, at: number) =>
      Number(table.readBigUInt64LE(section * SECTION_HEADER_BYTES + at));
    const names = this.#fileBytes(
      field(namesIndex, 24),
      Math.min(field(namesIndex, 32), count * LONGEST_SECTION_NAME),
    );
    for (let section = 0; section < count; section++) {
      const from = table.readUInt32LE(section * SECTION_HEADER_BYTES);
      if (names.toString("latin1", from, from + name.length + 1) === `${name}\0`) {
        const start = this.bias + field(section, 16);
        return { start, end: start + field(section, 32) };
      }
    }
    return null;
  }

  #fileBytes(offset: number, length: number): Buffer {
    const bytes = Buffer.alloc(length);
    const complete =
      this.#file !== null &&
      Number.isSafeInteger(offset) &&
      readSync(this.#file, bytes, 0, length, offset) === length;
    if (!complete) {
      throw new DamagedUnwinding("its sections cannot be read");
    }
    return bytes;
  }
}

const NO_TABLE: DescriptionTable = { length: 0, startOf: () => 0, descriptionOf: () => 0 };
