/**
 * Reads Python objects from outside: types, strings, small integers, sequences. Every read is bounded, and
 * throws TM-E024 if the memory is not valid.
 */

import type { MemoryReader } from "../../linux/index.js";
import type { Address } from "../../model/base/units.js";
import { unreadableMemory } from "../../model/errors/errors.js";
import type { PythonLayout } from "../layouts/index.js";

/** An interpreter's memory together with its layout. */
export interface PythonMemory {
  readonly reader: MemoryReader;
  readonly layout: PythonLayout;
}

const LONGEST_TYPE_NAME = 512;
const LONGEST_TUPLE = 65_536;

export function typeOf({ reader, layout }: PythonMemory, object: Address): Address {
  return reader.pointer(object + layout.object.type);
}

/** tp_name of a type: "dict", "numpy.ndarray". */
export function typeName({ reader, layout }: PythonMemory, type: Address): string {
  return reader.cstring(reader.pointer(type + layout.type.name), LONGEST_TYPE_NAME);
}

/** tp_name of an object's type. */
export function typeNameOf(python: PythonMemory, object: Address): string {
  return typeName(python, typeOf(python, object));
}

/** Flags of a type, from Include/object.h. */
export const TypeFlag = {
  InlineValues: 1 << 2,
  ManagedDict: 1 << 4,
  HeapType: 1 << 9,
  Long: 1 << 24,
  List: 1 << 25,
  Tuple: 1 << 26,
  Bytes: 1 << 27,
  Unicode: 1 << 28,
  Dict: 1 << 29,
} as const;

/** Whether an object's type, or one of its bases, is the built-in type of the flag. */
export function isA(python: PythonMemory, object: Address, flag: number): boolean {
  const { reader, layout } = python;
  return (reader.uint32(typeOf(python, object) + layout.type.flags) & flag) !== 0;
}

/**
 * A str, truncated after `limit` code points. Layout (Include/cpython/unicodeobject.h): the text of a compact
 * str follows the structure; otherwise the structure points to it. A code point takes 1, 2 or 4 bytes.
 */
export function readText(python: PythonMemory, address: Address, limit = 4096): string {
  const { reader, layout } = python;
  const { unicode } = layout;
  if (!isA(python, address, TypeFlag.Unicode)) {
    throw unreadableMemory(reader.memory.name, address, "expected a str");
  }
  const state = reader.uint32(address + unicode.state);
  const kind = (state >>> unicode.kindShift) & 7;
  const compact = ((state >>> unicode.compactShift) & 1) === 1;
  const ascii = ((state >>> unicode.asciiShift) & 1) === 1;
  const length = reader.int64(address + unicode.length);
  if (!(length >= 0) || (kind !== 1 && kind !== 2 && kind !== 4)) {
    throw unreadableMemory(reader.memory.name, address, "expected a str");
  }
  const start = compact
    ? address + (ascii ? unicode.asciiSize : unicode.compactSize)
    : reader.pointer(address + unicode.pointer);
  const text = decode(reader.bytes(start, Math.min(length, limit) * kind), kind);
  return length > limit ? `${text}…` : text;
}

function decode(bytes: Uint8Array, kind: 1 | 2 | 4): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (kind === 1) {
    return buffer.toString("latin1");
  }
  if (kind === 2) {
    return buffer.toString("utf16le");
  }
  let text = "";
  for (let at = 0; at < buffer.length; at += 4) {
    const point = buffer.readUInt32LE(at);
    text += point > 0x10ffff ? "\ufffd" : String.fromCodePoint(point);
  }
  return text;
}

/** The value of a small int (0 to 2^60); null for others. */
export function readSmallInteger(python: PythonMemory, address: Address): number | null {
  const { reader, layout } = python;
  if (!isA(python, address, TypeFlag.Long)) {
    return null;
  }
  // Up to 3.11, ob_size is the number of 30-bit digits, with the sign; later, lv_tag is digits << 3, with two
  // bits for the sign.
  const { tag, digit } = layout.long;
  const size = tag === null ? reader.int64(address + layout.object.variableSize) : null;
  const word = tag === null ? 0 : reader.uint64(address + tag);
  const digits = size ?? ((word & 3) === 2 ? -1 : Math.floor(word / 8));
  if (digits < 0 || digits > 2 || (size === null && (word & 3) === 1)) {
    return digits === 0 || (word & 3) === 1 ? 0 : null;
  }
  let value = 0;
  for (let index = digits - 1; index >= 0; index--) {
    value = value * 2 ** 30 + reader.uint32(address + digit + index * 4);
  }
  return value;
}

/** The items of a tuple or a list; throws if it has more than 65,536. */
export function readItems(python: PythonMemory, sequence: Address): Address[] {
  const { reader, layout } = python;
  const count = reader.int64(sequence + layout.object.variableSize);
  if (!(count >= 0 && count <= LONGEST_TUPLE)) {
    throw unreadableMemory(reader.memory.name, sequence, `a sequence of ${count} items`);
  }
  const items = isA(python, sequence, TypeFlag.List)
    ? reader.pointer(sequence + layout.list.items)
    : sequence + layout.tuple.items;
  return Array.from({ length: count }, (_, index) => reader.pointer(items + index * 8));
}
