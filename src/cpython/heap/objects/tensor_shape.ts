/**
 * Shape and type of a torch tensor, read from outside. The fields before the sizes differ between torch
 * releases, so the sizes are found by what follows them (c10/core/TensorImpl.h, the same since 1.9):
 *
 *   size_t dimensions
 *   int64  sizes[5], strides[5]        in place; of more dimensions a pointer to sizes, then strides
 *   int64  offset into the storage
 *   int64  elements                    the product of the sizes, which identifies the place
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
/** Number of words of the fields above. */
const OFFSET = 1 + 2 * IN_PLACE;
const ELEMENTS = OFFSET + 1;
const TYPE = ELEMENTS + 1;

/**
 * c10/core/ScalarType.h in its order, with the size of an element; the rows of quantized and bit types, which
 * no tensor of numbers has, are empty.
 */
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
  /**
   * Name and element size of the type in a word. Flags use the word up to its last bit, so as a float it would
   * lose the type.
   */
  readonly typeAt: (word: number) => (typeof TYPES)[number] | undefined;
}

/** null if nothing in it looks like a shape that fits a storage of this size. */
export function readTensorShape(
  memory: Memory,
  tensor: Address,
  storageBytes: Bytes,
): TensorShape | null {
  const find = (isWanted: (dimensions: number) => boolean) =>
    findIn(memory, tensor, (fields, at) =>
      isWanted(float64At(fields.words, at)) ? shapeAt(memory, fields, at, storageBytes) : null,
    );
  // Zeros among the strides of a matrix look like a scalar, so a scalar is the last guess.
  return find((dimensions) => dimensions > 0) ?? find((dimensions) => dimensions === 0);
}

/**
 * Number of elements in a row of 8-byte numbers (int64, one dimension), wherever its data is: a list of indices
 * on a device. null if nothing in it looks like one.
 */
export function readRowLength(memory: Memory, tensor: Address): number | null {
  return findIn(memory, tensor, ({ words, typeAt }, at) => {
    const [dimensions, length] = [float64At(words, at), float64At(words, at + 1)];
    const isDense = words[at + 1 + IN_PLACE] === 1;
    const isRow = dimensions === 1 && isDense && words[at + ELEMENTS] === length;
    return isRow && typeAt(at + TYPE)?.[0] === "int64" ? length : null;
  });
}

/** The first match, trying each word as the place where the sizes begin. */
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
  // The last element must be inside the storage.
  const last = shape.reduce((sum, size, axis) => sum + (size - 1) * float64At(strides, axis), 0);
  const [dtype, itemBytes] = type;
  const fits = (float64At(words, at + OFFSET) + last + 1) * itemBytes <= storageBytes;
  return elements > 0 && elements === words[at + ELEMENTS] && fits ? { shape, dtype } : null;
}
