/**
 * The size of an object like sys.getsizeof (including the GC head), and the buffers that it owns in addition.
 * Sizes inside the object are added at once. A dict's table and an array's dimensions are elsewhere; their
 * addresses are returned to the caller.
 */

import type { Bytes } from "../../../model/base/units.js";
import type { HeapLayout } from "../memory/layout.js";
import { signedWordAt } from "../memory/words.js";
import {
  SHAPE_ARRAY,
  SHAPE_BYTEARRAY,
  SHAPE_BYTES,
  SHAPE_DEQUE,
  SHAPE_DICT,
  SHAPE_FRAME,
  SHAPE_INT,
  SHAPE_LIST,
  SHAPE_ORDERED_DICT,
  SHAPE_SET,
  SHAPE_STR,
  SHAPE_TUPLE,
  SHAPE_TYPE,
  type TypeFacts,
} from "./type_table.js";

/** sizeof(block) of Modules/_collectionsmodule.c: 64 items and two links. */
const DEQUE_BLOCK_BYTES = 528;
const DEQUE_BLOCK_ITEMS = 64;
/** For one object: inline attributes, a type's members. */
const LARGEST_ATTRIBUTES = 4096;
/** A chunk's rounding, and a rest that is too small to be split off. */
const SLACK = 64;
const LARGEST_FRAME = 1 << 20;
/**
 * The room in a chunk for a request of 513 bytes. The agent makes pymalloc pass this size to malloc for each
 * small object that it samples (agent/src/hooks/python.c).
 */
const SAMPLED_ROOM = 520;
/** offsetof(PyLongObject, ob_digit). */
const INT_HEAD_BYTES = 24;

/** Kinds for which each object must be read. */
const VARIABLE: ReadonlySet<number> = new Set([
  SHAPE_STR,
  SHAPE_INT,
  SHAPE_LIST,
  SHAPE_ORDERED_DICT,
  SHAPE_SET,
  SHAPE_BYTEARRAY,
  SHAPE_DEQUE,
  SHAPE_TYPE,
  SHAPE_TUPLE,
  SHAPE_BYTES,
  SHAPE_FRAME,
]);

/** The result of {@link ownBytes} for every object of a type; null if it depends on the object. */
export function fixedBytes({ shape, itemSize, preHeader, basicSize }: TypeFacts): Bytes | null {
  const hasItems = itemSize !== 0 && shape !== SHAPE_DICT && shape !== SHAPE_ARRAY;
  return VARIABLE.has(shape) || hasItems ? null : preHeader + basicSize;
}

/**
 * Bytes of an object without tables elsewhere. `words[at]` is its first u32, and `room` bytes follow in its
 * block; a larger size is rejected.
 */
export function ownBytes(
  { shape, basicSize: basic, itemSize, preHeader: before }: TypeFacts,
  layout: HeapLayout,
  words: Uint32Array,
  at: number,
  room: Bytes,
): Bytes {
  switch (shape) {
    case SHAPE_STR:
      return before + strBytes(layout, words, at, room);
    case SHAPE_INT:
      return before + Math.min(intBytes(layout, basic, words, at), room);
    case SHAPE_LIST:
      return before + basic + 8 * countAt(words, at + 8); // allocated
    case SHAPE_DICT:
      return before + basic;
    case SHAPE_ORDERED_DICT:
      // od_fast_nodes_size words, and a node { key, hash, next, previous } for each entry (ma_used).
      return before + basic + countAt(words, at + 18) * 8 + countAt(words, at + 4) * 32;
    case SHAPE_SET: {
      const slots = countAt(words, at + 8) + 1; // mask
      return before + basic + (slots > 8 ? slots * 16 : 0);
    }
    case SHAPE_BYTEARRAY:
      return before + basic + (layout.byteArrayHoldsObject ? 0 : countAt(words, at + 6)); // ob_alloc
    case SHAPE_DEQUE: {
      const length = countAt(words, at + 4);
      const left = countAt(words, at + 10); // leftindex
      const blocks = Math.max(1, Math.ceil((left + length) / DEQUE_BLOCK_ITEMS));
      return before + basic + blocks * DEQUE_BLOCK_BYTES;
    }
    case SHAPE_TYPE:
      return before + layout.heapTypeBytes;
    case SHAPE_TUPLE:
    case SHAPE_BYTES:
      return before + Math.min(basic + countAt(words, at + 4) * itemSize, room);
    case SHAPE_FRAME:
      // The size of its frame follows from its code; its block has the same size, to within a word.
      return before + (room < LARGEST_FRAME ? room : basic);
    case SHAPE_ARRAY:
      return before + basic;
    default: {
      if (itemSize === 0) {
        return before + basic;
      }
      const bytes = basic + Math.abs(signedWordAt(words, at + 4)) * itemSize;
      return before + (bytes <= room ? bytes : basic);
    }
  }
}

/** A Py_ssize_t that counts something; 0 if it is invalid. */
function countAt(words: Uint32Array, at: number): number {
  const high = words[at + 1] ?? 0;
  return high < 256 ? (words[at] ?? 0) + high * 2 ** 32 : 0;
}

/**
 * Without what precedes the object. Until 3.11 the sign is that of ob_size; from 3.12 on the digit count is
 * above three sign bits.
 */
export function intBytes(layout: HeapLayout, basic: Bytes, words: Uint32Array, at: number): Bytes {
  const digits = layout.taggedInts
    ? countAt(words, at + 4) / 8
    : Math.abs(signedWordAt(words, at + 4));
  const head = layout.taggedInts ? basic : INT_HEAD_BYTES;
  return head + Math.max(Math.floor(digits), layout.leastDigits) * 4;
}

/** Without what precedes the object. */
export function strBytes(layout: HeapLayout, words: Uint32Array, at: number, room: Bytes): Bytes {
  const length = countAt(words, at + 4);
  const state = words[at + 8] ?? 0;
  const kind = (state >>> 2) & 7;
  const compact = (state >>> 5) & 1;
  const ascii = (state >>> 6) & 1;
  if (compact === 1 && ascii === 1) {
    return Math.min(layout.asciiBytes + length + 1, room);
  }
  // If the UTF-8 form is cached, it is a separate copy: utf8 and utf8_length end the compact header.
  const utf8Length = at + (layout.asciiBytes >>> 2);
  const cached = words[utf8Length + 2] !== 0 || words[utf8Length + 3] !== 0;
  const utf8 = cached ? countAt(words, utf8Length) + 1 : 0;
  if (compact === 1) {
    return Math.min(layout.compactBytes + (length + 1) * kind, room) + utf8;
  }
  // In a subclass, the pointer to the characters ends the header.
  return layout.compactBytes + 8 + (length + 1) * kind + (ascii ? 0 : utf8);
}

/**
 * Whether a malloc chunk with `room` bytes from the object on can be this object's own. Freed memory and tables
 * of addresses contain words that look like an object in a chunk of any size.
 *
 * A chunk of {@link SAMPLED_ROOM} fits any small object.
 */
export function fitsChunk(
  { shape, basicSize: basic, itemSize, preHeader, inlineValues }: TypeFacts,
  layout: HeapLayout,
  words: Uint32Array,
  at: number,
  room: Bytes,
): boolean {
  const sampled = room + preHeader === SAMPLED_ROOM;
  // A compact str takes less than its type's basic size, which includes a pointer.
  if (room < basic && shape !== SHAPE_STR) {
    return false;
  }
  let bytes: Bytes;
  switch (shape) {
    case SHAPE_STR:
      bytes = strInBlock(layout, words, at);
      break;
    case SHAPE_INT:
      bytes = intBytes(layout, basic, words, at);
      break;
    case SHAPE_FRAME:
      return room < LARGEST_FRAME;
    default:
      bytes = basic + Math.abs(signedWordAt(words, at + 4)) * itemSize;
      if (shape !== SHAPE_TUPLE && shape !== SHAPE_BYTES) {
        // The meaning of `ob_size` depends on the type, so only the minimum can be checked.
        return sampled || room <= Math.max(bytes, basic + LARGEST_ATTRIBUTES) + SLACK;
      }
  }
  // A subclass keeps attributes after its items.
  return room + 8 >= bytes && (sampled || room <= bytes + inlineValues + SLACK + room / 8);
}

function strInBlock(layout: HeapLayout, words: Uint32Array, at: number): Bytes {
  const state = words[at + 8] ?? 0;
  const compact = (state >>> 5) & 1;
  if (compact === 0) {
    return layout.compactBytes + 8;
  }
  const length = countAt(words, at + 4);
  return (state >>> 6) & 1
    ? layout.asciiBytes + length + 1
    : layout.compactBytes + (length + 1) * ((state >>> 2) & 7);
}
