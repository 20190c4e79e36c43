/**
 * Reads DWARF's primitive values one after the other from a program's read-only memory. Every read stays below
 * `end`. Source: DWARF 5, section 7.6 (LEB128); Linux Standard Base, "DWARF Extensions" (pointer encodings):
 *
 *   encoding   low half    00 address  01 uleb128  02 u16  03 u32  04 u64  09 sleb128  0a s16  0b s32  0c s64
 *              bits 4-6    00 as it is  10 relative to its own place  30 relative to a base
 *              bit 7       the address of the pointer          ff: none
 */
import type { MemoryReader } from "../../linux/index.js";
import type { Address, Bytes } from "../../model/base/units.js";

/** The bytes are not unwinding information; the stack ends there. */
export class DamagedUnwinding extends Error {}

export const NO_POINTER = 0xff;
const INDIRECT = 0x80;
const LONGEST_LEB128 = 10;
const WORD: Bytes = 8;

export class DwarfCursor {
  constructor(
    readonly reader: MemoryReader,
    public at: Address,
    readonly end: Address,
  ) {}

  get done(): boolean {
    return this.at >= this.end;
  }

  uint8(): number {
    return this.reader.uint8(this.#take(1));
  }

  int8(): number {
    return (this.uint8() << 24) >> 24;
  }

  uint16(): number {
    return this.reader.uint16(this.#take(2));
  }

  int16(): number {
    return (this.uint16() << 16) >> 16;
  }

  uint32(): number {
    return this.reader.uint32(this.#take(4));
  }

  int32(): number {
    return this.reader.int32(this.#take(4));
  }

  /** Rounded above 2^53. */
  uint64(): number {
    return this.reader.uint64(this.#take(WORD));
  }

  int64(): number {
    return this.reader.int64(this.#take(WORD));
  }

  /** Rounded above 2^53. */
  uleb128(): number {
    let value = 0;
    let scale = 1;
    for (let count = 0; count < LONGEST_LEB128; count++) {
      const byte = this.uint8();
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) {
        return value;
      }
      scale *= 128;
    }
    throw new DamagedUnwinding("a number without an end");
  }

  sleb128(): number {
    let value = 0;
    let scale = 1;
    for (let count = 0; count < LONGEST_LEB128; count++) {
      const byte = this.uint8();
      value += (byte & 0x7f) * scale;
      scale *= 128;
      if (byte < 0x80) {
        return (byte & 0x40) !== 0 ? value - scale : value;
      }
    }
    throw new DamagedUnwinding("a number without an end");
  }

  skip(length: Bytes): void {
    this.#take(length);
  }

  /** A pointer in the given encoding; `base` is what "relative to a base" refers to. */
  pointer(encoding: number, base: Address): Address {
    const place = this.at;
    const value = this.#encoded(encoding & 0xf);
    const relation = encoding & 0x70;
    let address = value;
    if (relation === 0x10) {
      address += place;
    } else if (relation === 0x30) {
      address += base;
    } else if (relation !== 0) {
      throw new DamagedUnwinding(`a pointer of unknown encoding ${encoding}`);
    }
    return (encoding & INDIRECT) !== 0 ? this.reader.pointer(address) : address;
  }

  /** A number in the format of an encoding's low half. */
  #encoded(format: number): number {
    switch (format) {
      case 0x00:
      case 0x04:
        return this.uint64();
      case 0x01:
        return this.uleb128();
      case 0x02:
        return this.uint16();
      case 0x03:
        return this.uint32();
      case 0x09:
        return this.sleb128();
      case 0x0a:
        return this.int16();
      case 0x0b:
        return this.int32();
      case 0x0c:
        return this.int64();
      default:
        throw new DamagedUnwinding(`a pointer of unknown format ${format}`);
    }
  }

  #take(length: Bytes): Address {
    const at = this.at;
    if (!(length >= 0 && at + length <= this.end)) {
      throw new DamagedUnwinding("it ends in the middle of an entry");
    }
    this.at = at + length;
    return at;
  }
}
