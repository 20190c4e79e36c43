/** Reads the numbers and strings of a binary format in order. */
import { ForeignFault } from "./importer.js";

/** Thrown if the content ends within a value. */
export class CutOff extends ForeignFault {
  constructor(at: number) {
    super(`it is cut off at byte ${at}`);
  }
}

export class Cursor {
  at = 0;
  readonly bytes: Buffer;
  readonly end: number;

  constructor(bytes: Buffer, at = 0, end = bytes.length) {
    this.bytes = bytes;
    this.at = at;
    this.end = end;
  }

  get done(): boolean {
    return this.at >= this.end;
  }

  #take(length: number): number {
    const from = this.at;
    if (length < 0 || from + length > this.end) {
      throw new CutOff(this.end);
    }
    this.at += length;
    return from;
  }

  u8(): number {
    return this.bytes[this.#take(1)] ?? 0;
  }

  u16(): number {
    return this.bytes.readUInt16LE(this.#take(2));
  }

  i32(): number {
    return this.bytes.readInt32LE(this.#take(4));
  }

  /** Beyond 2^53 the nearest double. */
  u64(): number {
    const from = this.#take(8);
    return this.bytes.readUInt32LE(from) + this.bytes.readUInt32LE(from + 4) * 2 ** 32;
  }

  f64BigEndian(): number {
    return this.bytes.readDoubleBE(this.#take(8));
  }

  /** Base 128, low bits first; beyond 2^53 the nearest double. */
  varint(): number {
    let value = 0;
    let scale = 1;
    for (let count = 0; count < 10; count++) {
      const next = this.u8();
      value += (next & 0x7f) * scale;
      if (next < 0x80) {
        return value;
      }
      scale *= 128;
    }
    throw new ForeignFault(`a number at byte ${this.at} is too long`);
  }

  /** Base 128 with the sign in the lowest bit. */
  zigzag(): number {
    const value = this.varint();
    return value % 2 === 1 ? -(value + 1) / 2 : value / 2;
  }

  /** Up to a zero byte. */
  cString(): string {
    const end = this.bytes.indexOf(0, this.at);
    if (end < 0 || end >= this.end) {
      throw new CutOff(this.end);
    }
    const text = this.bytes.toString("utf8", this.at, end);
    this.at = end + 1;
    return text;
  }

  slice(length: number): Buffer {
    const from = this.#take(length);
    return this.bytes.subarray(from, from + length);
  }
}
