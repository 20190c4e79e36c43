/**
 * Reads single strings and dicts from a program's memory: names of types and modules, steps of root paths. The
 * scan (heap_scan.ts) reads everything large. Missing or invalid data gives null here.
 *
 *   str   0 head  16 length  32 state: kind at bit 2, compact 5, ascii 6   data behind the header
 *   dict  32 ma_keys  40 ma_values
 *   keys until 3.10   0 refcount  8 size  16 lookup  24 usable  32 nentries  40 indices
 *   keys from 3.11    0 refcount  8 log2(size) u8  9 log2(index bytes) u8  10 kind u8  16 usable
 *                     24 nentries  32 indices
 *   behind the indices: { hash, key, value }, or { key, value } where kind is not 0
 */

import type { Memory } from "../../../linux/memory/memory.js";
import type { Address, Bytes } from "../../../model/base/units.js";
import type { HeapLayout } from "../memory/layout.js";
import { wordAt } from "../memory/words.js";

const MOST_TEXT_BYTES = 4096;
const MOST_ENTRY_BYTES = 1 << 22;
/** 2 ** n: raising to a power would take as long as everything else for a dict. */
const POWERS = Float64Array.from({ length: 48 }, (_, n) => 2 ** n);

/** Bytes of memory, all of them; null if some are missing. */
export function readBytes(memory: Memory, address: Address, length: Bytes): Uint8Array | null {
  if (!(address > 0 && address < 2 ** 53)) {
    return null;
  }
  const bytes = new Uint8Array(length);
  return memory.readInto(address, bytes) === length ? bytes : null;
}

/** Whether an object's first word is its reference count: a free block has the address of the next one there. */
export function isCount(word: number, { countFlags }: HeapLayout): boolean {
  return word > 0 && Math.floor(word / 2 ** 32) % (countFlags ? 2 ** 16 : 2 ** 32) === 0;
}

export function readWords(memory: Memory, address: Address, words: number): Float64Array | null {
  const bytes = readBytes(memory, address, words * 8);
  return bytes === null ? null : wordsOf(bytes);
}

function wordsOf(bytes: Uint8Array): Float64Array {
  const halves = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length >>> 2);
  const words = new Float64Array(halves.length >>> 1);
  for (let word = 0; word < words.length; word++) {
    words[word] = wordAt(halves, word * 2);
  }
  return words;
}

/** Text of a str, truncated to `most` characters. */
export function readStr(
  memory: Memory,
  layout: HeapLayout,
  address: Address,
  most = 256,
): string | null {
  const head = readBytes(memory, address, 40);
  if (head === null) {
    return null;
  }
  // Read in halves, because padding after the state fills the word with arbitrary bytes.
  const halves = new Uint32Array(head.buffer);
  const whole = wordAt(halves, 4);
  const length = Math.min(whole, most);
  const state = halves[8] ?? 0;
  const kind = (state >>> 2) & 7;
  const compact = (state >>> 5) & 1;
  const ascii = (state >>> 6) & 1;
  if (compact !== 1 || ![1, 2, 4].includes(kind) || !(whole < 2 ** 40)) {
    return null;
  }
  const start = address + (ascii ? layout.asciiBytes : layout.compactBytes);
  const bytes = readBytes(memory, start, length * kind);
  if (bytes === null) {
    return null;
  }
  const text = Buffer.from(bytes.buffer);
  if (kind === 4) {
    const points = new Uint32Array(bytes.buffer, 0, length);
    return String.fromCodePoint(...Array.from(points, (p) => (p < 0x110000 ? p : 0xfffd)));
  }
  return text.toString(kind === 1 ? "latin1" : "utf16le");
}

/** A C string, truncated to `most` bytes. */
export function readCString(memory: Memory, address: Address, most = 256): string | null {
  if (!(address > 0 && address < 2 ** 53)) {
    return null;
  }
  const bytes = Buffer.alloc(Math.min(most, MOST_TEXT_BYTES));
  const got = memory.readInto(address, bytes);
  const end = bytes.subarray(0, got).indexOf(0);
  return end < 0
    ? got === bytes.length
      ? bytes.toString("utf8")
      : null
    : bytes.toString("utf8", 0, end);
}

/** The figures in a dict's table of keys. */
export interface KeysTable {
  readonly address: Address;
  /** Size of the whole table as getsizeof counts it. */
  readonly bytes: Bytes;
  readonly entriesAt: Address;
  /** 24 { hash, key, value } or 16 { key, value }. */
  readonly entryBytes: Bytes;
  /** Number of entries ever used, including deleted ones. */
  readonly used: number;
  readonly usable: number;
  readonly references: number;
}

/** The table's figures from its header; null if they contradict each other. */
export function parseKeys(
  layout: HeapLayout,
  address: Address,
  head: Uint32Array,
  at: number,
): KeysTable | null {
  const table = noKeys();
  return parseKeysInto(table, layout, address, head, at) ? table : null;
}

/** A table to be filled by {@link parseKeysInto}. */
export function noKeys(): Writable<KeysTable> {
  // Fractions, so that the fields hold addresses without boxing them.
  return {
    address: 0.5,
    bytes: 0.5,
    entriesAt: 0.5,
    entryBytes: 0,
    used: 0,
    usable: 0,
    references: 0,
  };
}

type Writable<Row> = { -readonly [Name in keyof Row]: Row[Name] };

/** The same without an object for each of millions of dicts; false if the figures contradict each other. */
export function parseKeysInto(
  table: Writable<KeysTable>,
  layout: HeapLayout,
  address: Address,
  head: Uint32Array,
  at: number,
): boolean {
  const references = wordAt(head, at);
  let size: number;
  let indexBytes: number;
  let entryBytes = 24;
  let headBytes = 32;
  let field = 4;
  if (layout.dictKeys === "log2") {
    const sizes = head[at + 2] ?? 0;
    const log2 = sizes & 0xff;
    const log2Index = (sizes >>> 8) & 0xff;
    const kind = (sizes >>> 16) & 0xff;
    if (kind > 2 || log2 > 40 || log2Index < log2 || log2Index > log2 + 3) {
      return false;
    }
    size = POWERS[log2] ?? 0;
    indexBytes = POWERS[log2Index] ?? 0;
    entryBytes = kind === 0 ? 24 : 16;
  } else {
    size = wordAt(head, at + 2);
    headBytes = 40;
    field = 6;
    if (!(size >= 1 && size <= 2 ** 40) || !Number.isInteger(Math.log2(size))) {
      return false;
    }
    indexBytes = size * (size <= 0xff ? 1 : size <= 0xffff ? 2 : size <= 0xffffffff ? 4 : 8);
  }
  const usable = wordAt(head, at + field);
  const used = wordAt(head, at + field + 2);
  const room = Math.floor((size * 2) / 3);
  if (used + usable > Math.max(room, 5) + 1) {
    return false;
  }
  table.address = address;
  table.bytes = headBytes + indexBytes + room * entryBytes;
  table.entriesAt = address + headBytes + indexBytes;
  table.entryBytes = entryBytes;
  table.used = used;
  table.usable = usable;
  table.references = references;
  return true;
}

/**
 * Size of a table that belongs to one dict, from its header at `words[at]`; 0 if it is shared or invalid. The
 * same as {@link parseKeys}, without creating an object for each of millions.
 */
export function ownTableBytes(layout: HeapLayout, words: Uint32Array, at: number): Bytes {
  if (words[at] !== 1 || words[at + 1] !== 0) {
    return 0;
  }
  if (layout.dictKeys === "lookup") {
    return parseKeys(layout, 0, words, at)?.bytes ?? 0;
  }
  const sizes = words[at + 2] ?? 0;
  const log2 = sizes & 0xff;
  const log2Index = (sizes >>> 8) & 0xff;
  const kind = (sizes >>> 16) & 0xff;
  if (log2 < 3 || log2 > 40 || log2Index < log2 || log2Index > log2 + 3 || kind > 2) {
    return 0;
  }
  const room = Math.floor(((POWERS[log2] ?? 0) * 2) / 3);
  const used = (words[at + 4] ?? 0) + (words[at + 6] ?? 0);
  return words[at + 5] === 0 && words[at + 7] === 0 && used > room + 1
    ? 0
    : 32 + (POWERS[log2Index] ?? 0) + room * (kind === 0 ? 24 : 16);
}

export function readKeys(memory: Memory, layout: HeapLayout, address: Address): KeysTable | null {
  const bytes = readBytes(memory, address, 40);
  return bytes === null ? null : parseKeys(layout, address, new Uint32Array(bytes.buffer), 0);
}

/** Addresses of keys and values of a dict with its own table, at most `most` of them. */
export function readDictEntries(
  memory: Memory,
  layout: HeapLayout,
  dict: Address,
  most = 100_000,
): { readonly key: Address; readonly value: Address }[] | null {
  const head = readWords(memory, dict, 6);
  const keys = head === null ? null : readKeys(memory, layout, head[4] ?? 0);
  if (head === null || keys === null) {
    return null;
  }
  const count = Math.min(keys.used, most, Math.floor(MOST_ENTRY_BYTES / keys.entryBytes));
  const entries = readWords(memory, keys.entriesAt, (count * keys.entryBytes) / 8);
  const values =
    head[5] === 0 ? null : readWords(memory, (head[5] ?? 0) + layout.valuesStart, count);
  if (entries === null) {
    return null;
  }
  const width = keys.entryBytes / 8;
  return Array.from({ length: count }, (_, n) => ({
    key: entries[n * width + width - 2] ?? 0,
    value: values === null ? (entries[n * width + width - 1] ?? 0) : (values[n] ?? 0),
  })).filter(({ key, value }) => key !== 0 && value !== 0);
}

/** Size of the values of 30 attributes, the most whose names a class shares. */
const LARGEST_PREFIX: Bytes = 32;

/**
 * In 3.11 and 3.12 the block of values begins before them, with the order in which they were set, in bytes. The
 * last byte is the size of that part. `before`: the u32 before the first value. Source: Objects/dictobject.c
 * (new_values).
 */
export function valuesPrefix(layout: HeapLayout, before: number): Bytes {
  const isThere = layout.values === "pointer" || layout.values === "tagged";
  const bytes = isThere ? before >>> 24 : 0;
  return bytes % 8 === 0 && bytes <= LARGEST_PREFIX ? bytes : 0;
}

/**
 * Bytes that an instance of a ctypes type keeps outside itself: 16 data  24 whether it must free them, i32  40
 * size. Small ones are in the object. Source: Modules/_ctypes/ctypes.h (CDataObject).
 */
export function ownDataBytes(words: Uint32Array, at: number): Bytes {
  const size = wordAt(words, at + 10);
  return words[at + 6] === 1 && size > LARGEST_IN_OBJECT && size < 2 ** 47 ? size : 0;
}

const LARGEST_IN_OBJECT = 16;
