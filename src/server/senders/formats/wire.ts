/** Protocol buffers field by field, so that a hostile message is refused at its first excess, before it is in memory. */
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { TidemarkError } from "../../../model/errors/errors.js";
import { reasonOf } from "../../../model/errors/reason.js";
import { malformed, PROFILE_LIMITS, withinLimit } from "./received_profile.js";

export { WireType };

/** Calls `field` for each field of a message; it returns false for fields that it leaves out. Throws TidemarkError. */
export function readMessage(
  bytes: Uint8Array,
  field: (number: number, type: WireType, reader: BinaryReader) => boolean,
): void {
  const reader = new BinaryReader(bytes);
  try {
    while (reader.pos < reader.len) {
      const [number, type] = reader.tag();
      if (!field(number, type, reader)) {
        // Groups can nest and are obsolete.
        if (type === WireType.StartGroup || type === WireType.EndGroup) {
          malformed("it holds groups");
        }
        reader.skip(type, number);
      }
    }
  } catch (error) {
    if (error instanceof TidemarkError) {
      throw error;
    }
    malformed(reasonOf(error).message);
  }
}

/** Numbers of up to four bytes, which are most, without a bigint. */
function unsigned(reader: BinaryReader): number {
  const { pos } = reader;
  const value = reader.uint32();
  if (reader.pos - pos <= 4) {
    return value;
  }
  reader.pos = pos;
  return Number(reader.uint64());
}

/** Adds a repeated number, packed or not. */
export function pushNumbers(
  into: number[],
  type: WireType,
  reader: BinaryReader,
  most: number = Number.POSITIVE_INFINITY,
): void {
  if (type !== WireType.LengthDelimited) {
    into.push(unsigned(reader));
    return;
  }
  const end = reader.uint32() + reader.pos;
  while (reader.pos < end && into.length <= most) {
    into.push(unsigned(reader));
  }
  if (reader.pos < end) {
    withinLimit("stack-depth", PROFILE_LIMITS["stack-depth"] + 1);
  }
}

/** The same for signed numbers. */
export function pushSigned(into: number[], type: WireType, reader: BinaryReader): void {
  if (type !== WireType.LengthDelimited) {
    into.push(Number(reader.int64()));
    return;
  }
  const end = reader.uint32() + reader.pos;
  while (reader.pos < end) {
    into.push(Number(reader.int64()));
  }
}

/** A line of a location, in pprof and OTLP alike: function 1, line 2. */
export function readLine(bytes: Uint8Array): { function: number; line: number } {
  const line = { function: 0, line: 0 };
  readMessage(bytes, (field, _type, reader) => {
    if (field === 1) {
      line.function = Number(reader.uint64());
    } else if (field === 2) {
      line.line = Math.max(0, Number(reader.int64()));
    } else {
      return false;
    }
    return true;
  });
  return line;
}
