/**
 * Protocol buffers field by field, so that a hostile message is refused at its first excess, before it is in memory.
 * Numbers are read without a bigint, and a message within a message without a view or a reader of a library's:
 * a profile has thousands of them. Source: https://protobuf.dev/programming-guides/encoding/
 */
import { malformed, PROFILE_LIMITS, withinLimit } from "./received_profile.js";

export const WireType = { Varint: 0, Bit64: 1, LengthDelimited: 2, Bit32: 5 } as const;
const START_GROUP = 3;
const END_GROUP = 4;
/** A number of 64 bits has at most ten bytes, each with seven bits. */
const MOST_BYTES = 10;
/** The first seven bytes hold 49 bits. */
const LOW_BYTES = 7;
const HIGH_UNIT = 2 ** 49;

/** Reads a message, or one within it. All its methods throw TidemarkError where the message is cut off. */
export class WireReader {
  readonly #bytes: Buffer;
  #at: number;
  readonly #end: number;

  constructor(bytes: Buffer, start = 0, end = bytes.length) {
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
  }

  get hasMore(): boolean {
    return this.#at < this.#end;
  }

  /** An unsigned number; beyond 2^53 it is rounded. */
  unsigned(): number {
    const byte = this.#byte();
    if (byte < 0x80) {
      return byte;
    }
    // Most ids have one byte or two.
    const next = this.#at < this.#end ? (this.#bytes[this.#at] ?? 0) : 0x80;
    if (next < 0x80) {
      this.#at += 1;
      return (byte & 0x7f) | (next << 7);
    }
    return this.#longer(byte, 0);
  }

  /** An int64; beyond 2^53 it is rounded. */
  signed(): number {
    const byte = this.#byte();
    if (byte < 0x80) {
      return byte;
    }
    const start = this.#at - 1;
    const value = this.#longer(byte, 0);
    // Only numbers with the highest bit, which are negative, have that many bytes.
    if (this.#at - start < MOST_BYTES || ((this.#bytes[this.#at - 1] ?? 0) & 1) === 0) {
      return value;
    }
    // The complement is exact where the number is small.
    const first = this.#bytes[start] ?? 0;
    this.#at = start + 1;
    const rest = this.#longer(first, 0x7f);
    return -(rest + 1);
  }

  /** The rest of a number whose first byte is `byte`. `flip`: bits of each byte that are inverted. */
  #longer(first: number, flip: number): number {
    let low = (first & 0x7f) ^ flip;
    let high = 0;
    let unit = 0x80;
    for (let count = 1; count < MOST_BYTES; count++) {
      const byte = this.#byte();
      const isLast = byte < 0x80;
      if (count === LOW_BYTES) {
        unit = 1;
      }
      // Of the tenth byte, only the lowest bit belongs to the number.
      const bits = count === MOST_BYTES - 1 ? byte & 1 & ~flip : (byte & 0x7f) ^ flip;
      if (count < LOW_BYTES) {
        low += bits * unit;
      } else {
        high += bits * unit;
      }
      unit *= 0x80;
      if (isLast) {
        return high === 0 ? low : high * HIGH_UNIT + low;
      }
    }
    return malformed("a number is too long");
  }

  /** A fixed64, unsigned; beyond 2^53 it is rounded. */
  fixed64(): number {
    const at = this.#take(8);
    return this.#bytes.readUInt32LE(at + 4) * 2 ** 32 + this.#bytes.readUInt32LE(at);
  }

  double(): number {
    return this.#bytes.readDoubleLE(this.#take(8));
  }

  /** A view of the bytes. */
  bytes(): Buffer {
    const length = this.unsigned();
    const at = this.#take(length);
    return this.#bytes.subarray(at, at + length);
  }

  string(): string {
    const length = this.unsigned();
    const at = this.#take(length);
    return this.#bytes.toString("utf8", at, at + length);
  }

  /** A string of limited length. */
  name(): string {
    const length = this.unsigned();
    withinLimit("name-bytes", length);
    const at = this.#take(length);
    return this.#bytes.toString("utf8", at, at + length);
  }

  message(): WireReader {
    const length = this.unsigned();
    const at = this.#take(length);
    return new WireReader(this.#bytes, at, at + length);
  }

  skip(type: number): void {
    switch (type) {
      case WireType.Varint:
        this.unsigned();
        return;
      case WireType.Bit64:
        this.#take(8);
        return;
      case WireType.LengthDelimited:
        this.#take(this.unsigned());
        return;
      case WireType.Bit32:
        this.#take(4);
        return;
      case START_GROUP:
      case END_GROUP:
        // Groups can nest and are obsolete.
        malformed("it holds groups");
        break;
      default:
        malformed(`a field has the unknown wire type ${type}`);
    }
  }

  #byte(): number {
    if (this.#at >= this.#end) {
      malformed("it is cut off");
    }
    return this.#bytes[this.#at++] ?? 0;
  }

  /** Passes over bytes. @returns where they begin */
  #take(length: number): number {
    const at = this.#at;
    if (length > this.#end - at) {
      malformed("it is cut off");
    }
    this.#at = at + length;
    return at;
  }
}

/** Calls `field` for each field of a message; it returns false for fields that it leaves out. Throws TidemarkError. */
export function readMessage(
  message: Buffer | WireReader,
  field: (number: number, type: number, reader: WireReader) => boolean,
): void {
  const reader = message instanceof WireReader ? message : new WireReader(message);
  while (reader.hasMore) {
    const tag = reader.unsigned();
    const number = tag >>> 3;
    const type = tag & 7;
    if (number === 0) {
      malformed("a field has the number 0");
    }
    if (!field(number, type, reader)) {
      reader.skip(type);
    }
  }
}

/** An array, or {@link Numbers}. */
interface NumberTarget {
  readonly length: number;
  push(value: number): unknown;
}

/** A list that is filled again for each sample: an array loses its memory when its length becomes 0. */
export class Numbers implements NumberTarget {
  length = 0;
  readonly #values: number[] = [];

  push(value: number): void {
    this.#values[this.length++] = value;
  }

  at(index: number): number {
    return this.#values[index] ?? 0;
  }
}

/** Adds a repeated number, packed or not. */
export function pushNumbers(
  into: NumberTarget,
  type: number,
  reader: WireReader,
  most: number = Number.POSITIVE_INFINITY,
): void {
  if (type !== WireType.LengthDelimited) {
    into.push(reader.unsigned());
    return;
  }
  const packed = reader.message();
  while (packed.hasMore && into.length <= most) {
    into.push(packed.unsigned());
  }
  if (packed.hasMore) {
    withinLimit("stack-depth", PROFILE_LIMITS["stack-depth"] + 1);
  }
}

/** The same for signed numbers. */
export function pushSigned(into: NumberTarget, type: number, reader: WireReader): void {
  if (type !== WireType.LengthDelimited) {
    into.push(reader.signed());
    return;
  }
  const packed = reader.message();
  while (packed.hasMore) {
    into.push(packed.signed());
  }
}

/** A line of a location, in pprof and OTLP alike: function 1, line 2. */
export function readLine(message: WireReader): { function: number; line: number } {
  const line = { function: 0, line: 0 };
  readMessage(message, (field, _type, reader) => {
    if (field === 1) {
      line.function = reader.unsigned();
    } else if (field === 2) {
      line.line = Math.max(0, reader.signed());
    } else {
      return false;
    }
    return true;
  });
  return line;
}
