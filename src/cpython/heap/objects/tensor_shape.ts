/**
 * Shape and type of a torch tensor, read from outside. Fields before the sizes come and go with torch's
 * releases, so the sizes are found by what follows them (c10/core/TensorImpl.h, the same since 1.9):
 *
 *   size_t dimensions
 *   int64  sizes[5], strides[5]        in place; of more dimensions a pointer to sizes, then strides
 *   int64  offset into the storage
 *   int64  elements                    the product of the sizes: what tells that this is the place
 *   u16    type                        row of the list of scalar types
 */

import type { Memory } from "../../../linux/memory/memory.js";
import { float64At, uint8At } from "../../../model/base/columns.js";
import type { Address, Bytes } from "../../../model/base/units.js";
import { readBytes, readWords } from "./small_objects.js";

interface TensorShape {
  readonly shape: readonly number[];
  /** "float16", as torch names it. */
  readonly dtype: string;
}

const WORDS = 32;
const FIRST_WORD = 3;
const IN_PLACE = 5;
const MOST_DIMENSIONS = 64;
/** Words of the fields above. */
const OFFSET = 1 + 2 * IN_PLACE;
const ELEMENTS = OFFSET + 1;
const TYPE = ELEMENTS + 1;

/** c10/core/ScalarType.h, in its order, with the bytes of an element; the rows of quantised and bit types
 * that no tensor of numbers has are empty. */
const TYPES: readonly (readonly [name: string, bytes: Bytes])[] = [
  ["uint8", 1],
  ["int8", 1],
  ["int16", 2],
  ["int32", 4],
  ["int64", 8],
  ["float16", 2],
  ["float32", 4],
  ["float64", 8],
  ["complex32", 4],
  ["complex64", 8],
  ["complex128", 16],
  ["bool", 1],
  ["qint8", 1],
  ["quint8", 1],
  ["qint32", 4],
  ["bfloat16", 2],
  ["quint4x2", 1],
  ["quint2x4", 1],
  ["bits1x8", 1],
  ["bits2x4", 1],
  ["bits4x2", 1],
  ["bits8", 1],
  ["bits16", 2],
  ["float8_e5m2", 1],
  ["float8_e4m3fn", 1],
  ["float8_e5m2fnuz", 1],
  ["float8_e4m3fnuz", 1],
  ["uint16", 2],
  ["uint32", 4],
  ["uint64", 8],
];

interface Fields {
  readonly words: Float64Array;
  /** The name and the size of an element, by the type that stands in a word. Flags share that word up to its last
   * bit, so as a float it would have lost the type. */
  readonly typeAt: (word: number) => (typeof TYPES)[number] | undefined;
}

/** null where nothing in it reads like a shape that fits a storage of so many bytes. */
export function readTensorShape(
  memory: Memory,
  tensor: Address,
  storageBytes: Bytes,
): TensorShape | null {
  return findIn(memory, tensor, (fields, at) => shapeAt(memory, fields, at, storageBytes));
}

/** How many elements a row of numbers of 8 bytes has (int64, one dimension), wherever its data lies: a list of
 * indices on a device. null where nothing in it reads like one. */
export function readRowLength(memory: Memory, tensor: Address): number | null {
  return findIn(memory, tensor, ({ words, typeAt }, at) => {
    const [dimensions, length] = [float64At(words, at), float64At(words, at + 1)];
    const isDense = words[at + 1 + IN_PLACE] === 1;
    const isRow = dimensions === 1 && isDense && words[at + ELEMENTS] === length;
    return isRow && typeAt(at + TYPE)?.[0] === "int64" ? length : null;
  });
}

/** The first that is found, trying each word as the one where the sizes begin. */
function findIn<Found>(
  memory: Memory,
  tensor: Address,
  find: (fields: Fields, at: number) => Found | null,
): Found | null {
  const bytes = readBytes(memory, tensor, WORDS * 8);
  const words = readWords(memory, tensor, WORDS);
  if (bytes === null || words === null) {
    return null;
  }
  const fields = {
    words,
    typeAt: (word: number) => TYPES[uint8At(bytes, 8 * word) + 256 * uint8At(bytes, 8 * word + 1)],
  };
  for (let at = FIRST_WORD; at + TYPE < WORDS; at++) {
    const found = find(fields, at);
    if (found !== null) {
      return found;
    }
  }
  return null;
}

function shapeAt(
  memory: Memory,
  { words, typeAt }: Fields,
  at: number,
  storageBytes: Bytes,
): TensorShape | null {
  const dimensions = float64At(words, at);
  const type = typeAt(at + TYPE);
  if (!(dimensions <= MOST_DIMENSIONS) || type === undefined) {
    return null;
  }
  const inPlace = dimensions <= IN_PLACE;
  const lists = inPlace
    ? words.subarray(at + 1, at + OFFSET)
    : readWords(memory, float64At(words, at + 1), 2 * dimensions);
  if (lists === null) {
    return null;
  }
  const shape = Array.from(lists.subarray(0, dimensions));
  const stridesAt = inPlace ? IN_PLACE : dimensions;
  const strides = lists.subarray(stridesAt, stridesAt + dimensions);
  const elements = shape.reduce((product, size) => product * size, 1);
  // The last element that it reaches must lie within the storage.
  const last = shape.reduce((sum, size, axis) => sum + (size - 1) * float64At(strides, axis), 0);
  const [dtype, itemBytes] = type;
  const fits = (float64At(words, at + OFFSET) + last + 1) * itemBytes <= storageBytes;
  return elements > 0 && elements === words[at + ELEMENTS] && fits ? { shape, dtype } : null;
}
