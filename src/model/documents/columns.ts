/**
 * Encodes and decodes values with typed arrays and Maps: MessagePack with extension types.
 *
 *   type  1      2     3       4      5       6      7        8        16
 *   is    Uint8  Int8  Uint16  Int16  Uint32  Int32  Float32  Float64  Map
 *
 * A typed array's payload is [padding length: 1 byte][padding][elements, little-endian], padded so that
 * the elements lie at a multiple of 8 of the whole buffer: decoding then makes a view and copies
 * nothing. A Map's payload is padded likewise and contains the array of its [key, value] pairs.
 * Plain Uint8Arrays use MessagePack's own byte type. Runs in Node and in browsers.
 */

import { Decoder, Encoder, ExtensionCodec } from "@msgpack/msgpack";
import { itemAt } from "../base/columns.js";
import { damagedInput } from "../errors/errors.js";
import { checkMessageStructure } from "./message_structure.js";

type Column =
  | Int8Array
  | Uint16Array
  | Int16Array
  | Uint32Array
  | Int32Array
  | Float32Array
  | Float64Array;

interface ColumnClass {
  readonly BYTES_PER_ELEMENT: number;
  new (buffer: ArrayBufferLike, byteOffset: number, length: number): Column;
}

const COLUMN_TYPES: readonly (readonly [number, ColumnClass])[] = [
  [2, Int8Array],
  [3, Uint16Array],
  [4, Int16Array],
  [5, Uint32Array],
  [6, Int32Array],
  [7, Float32Array],
  [8, Float64Array],
];
const MAP_TYPE = 16;
const ALIGNMENT = 8;
/** Deepest nesting of Maps; far more than any of our documents. */
const MAX_MAP_DEPTH = 16;

/** The bytes of `value`: plain objects, arrays, strings, numbers, booleans, null, typed arrays, Maps.
 * Keys whose value is undefined are left out. */
export function encodeColumns(value: unknown): Uint8Array<ArrayBuffer> {
  return encoder().encode(value);
}

/** The value that {@link encodeColumns} wrote. Typed arrays are views into `bytes` if it is aligned to 8,
 * otherwise copies; do not modify `bytes`. `source` names the bytes in errors.
 * @throws TidemarkError TM-E005 for anything that is not such a value, without allocating more than a
 * small multiple of `bytes`. */
export function decodeColumns(bytes: Uint8Array, source: string): unknown {
  try {
    return decode(bytes, 0);
  } catch (error) {
    throw damagedInput(source, error instanceof Error ? error.message : String(error));
  }
}

function encoder(): Encoder<undefined> {
  return new Encoder({ extensionCodec: encodingCodec, ignoreUndefined: true });
}

function decode(bytes: Uint8Array, mapDepth: number): unknown {
  checkMessageStructure(bytes);
  return new Decoder({ extensionCodec: itemAt(decodingCodecs, mapDepth) }).decode(bytes);
}

const encodingCodec = new ExtensionCodec();
for (const [type, Class] of COLUMN_TYPES) {
  encodingCodec.register({
    type,
    encode: (value) =>
      value instanceof Class
        ? (position) =>
            padded(position, new Uint8Array(value.buffer, value.byteOffset, value.byteLength))
        : null,
    decode: notUsed,
  });
}
encodingCodec.register({
  type: MAP_TYPE,
  encode: (value) =>
    value instanceof Map ? (position) => padded(position, encoder().encode([...value])) : null,
  decode: notUsed,
});

/** One codec per depth of Maps, because an extension's decoder does not know its depth. */
const decodingCodecs = Array.from({ length: MAX_MAP_DEPTH + 1 }, (_, depth) => {
  const codec = new ExtensionCodec();
  for (const [type, Class] of COLUMN_TYPES) {
    codec.register({
      type,
      encode: () => null,
      decode: (payload) => columnOf(Class, unpadded(payload)),
    });
  }
  codec.register({
    type: MAP_TYPE,
    encode: () => null,
    decode: (payload) => mapOf(unpadded(payload), depth + 1),
  });
  return codec;
});

function notUsed(): never {
  throw new Error("the encoding codec does not decode");
}

function padded(position: number, body: Uint8Array): Uint8Array {
  const padding = (ALIGNMENT - ((position + 1) % ALIGNMENT)) % ALIGNMENT;
  const payload = new Uint8Array(1 + padding + body.length);
  payload[0] = padding;
  payload.set(body, 1 + padding);
  return payload;
}

function unpadded(payload: Uint8Array): Uint8Array {
  const padding = payload[0];
  if (padding === undefined || padding >= ALIGNMENT || padding + 1 > payload.length) {
    throw new Error("a column's padding is wrong");
  }
  return payload.subarray(1 + padding);
}

function columnOf(Class: ColumnClass, body: Uint8Array): Column {
  if (body.byteLength % Class.BYTES_PER_ELEMENT !== 0) {
    throw new Error("a column ends within an element");
  }
  const length = body.byteLength / Class.BYTES_PER_ELEMENT;
  if (body.byteOffset % Class.BYTES_PER_ELEMENT === 0) {
    return new Class(body.buffer, body.byteOffset, length);
  }
  return new Class(body.slice().buffer, 0, length);
}

function mapOf(body: Uint8Array, depth: number): Map<unknown, unknown> {
  if (depth > MAX_MAP_DEPTH) {
    throw new Error("maps are nested too deeply");
  }
  const pairs = decode(body, depth);
  if (!Array.isArray(pairs) || !pairs.every((pair) => Array.isArray(pair) && pair.length === 2)) {
    throw new Error("a map is not made of pairs");
  }
  return new Map(pairs);
}
