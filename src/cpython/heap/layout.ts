/**
 * What of CPython's object layouts differs between 3.9 and 3.15, on 64 bit and with a GIL. All else that
 * the heap's readers use has stood still over these versions (Include/object.h, Include/cpython/*.h).
 *
 * Nothing is believed for being in a table: a pool must satisfy its invariants, a type must lead to
 * `type` through its own type, a dict's table must fit its own figures, before anything is counted.
 */
import type { Bytes } from "../../model/units.js";
import { LAYOUTS, type PythonLayout } from "../layouts/index.js";
import { minorOf } from "../published.js";

export interface HeapLayout {
  readonly minor: number;
  /** POOL_SIZE of Objects/obmalloc.c (pycore_obmalloc.h). */
  readonly poolBytes: Bytes;
  /** ARENA_SIZE. */
  readonly arenaBytes: Bytes;
  /** sizeof(PyASCIIObject): where an ASCII string's characters begin; of PyCompactUnicodeObject. */
  readonly asciiBytes: Bytes;
  readonly compactBytes: Bytes;
  /** Offset of a tuple's first item. */
  readonly tupleItems: Bytes;
  /** sizeof(PyTypeObject), sizeof(PyHeapTypeObject) and offsets in the latter. */
  readonly typeBytes: Bytes;
  readonly heapTypeBytes: Bytes;
  readonly heapTypeQualname: Bytes;
  readonly heapTypeCachedKeys: Bytes;
  /** Of a dict's table: "lookup" until 3.10 (its size and a function), "log2" from 3.11 on. */
  readonly dictKeys: "lookup" | "log2";
  /** Where instances keep attributes that are in no dict: see edges_instance.ts. */
  readonly values: "dict" | "pointer" | "tagged" | "inline";
  /** From 3.14 on the upper half of the reference count holds flags. */
  readonly countFlags: boolean;
  /** Digits that getsizeof counts for a zero (3.11.2 on: one). */
  readonly leastDigits: 0 | 1;
  /** An int's digits are counted above three bits of sign, not in ob_size. */
  readonly taggedInts: boolean;
  /** By the headers of that version: frames, whose fields have moved with nearly every one. */
  readonly python: PythonLayout;
}

const KIB = 1024;

/** null for a minor version that is not known. */
export function heapLayout(minor: number): HeapLayout | null {
  const python = LAYOUTS.find(({ version, debug }) => minorOf(version) === minor && !debug);
  if (minor < 9 || minor > 15 || python === undefined) {
    return null;
  }
  const small = minor < 10;
  const wideStrings = minor < 12;
  // Until 3.11 a type ends with tp_vectorcall; 3.12 adds tp_watched, 3.15 another word.
  const typeBytes = minor < 12 ? 408 : minor < 15 ? 416 : 424;
  return {
    minor,
    poolBytes: (small ? 4 : 16) * KIB,
    arenaBytes: (small ? 256 : 1024) * KIB,
    asciiBytes: wideStrings ? 48 : 40,
    compactBytes: wideStrings ? 72 : 56,
    tupleItems: minor < 14 ? 24 : 32,
    typeBytes,
    heapTypeBytes: HEAP_TYPE_BYTES[minor] as Bytes,
    heapTypeQualname: typeBytes + (small ? 448 : 456),
    heapTypeCachedKeys: typeBytes + (small ? 456 : 464),
    dictKeys: minor < 11 ? "lookup" : "log2",
    values: minor < 11 ? "dict" : minor < 12 ? "pointer" : minor < 13 ? "tagged" : "inline",
    countFlags: minor >= 14,
    leastDigits: minor < 11 ? 0 : 1,
    taggedInts: minor >= 12,
    python,
  };
}

/** sizeof(PyHeapTypeObject) by minor version. */
const HEAP_TYPE_BYTES: Readonly<Record<number, Bytes>> = {
  9: 880,
  10: 888,
  11: 904,
  12: 920,
  13: 928,
  14: 936,
  15: 944,
};

/** sizeof(PyGC_Head), before every object that the collector may track. */
export const GC_HEAD_BYTES = 16;
/** Of a dict and a weak list that the object's type keeps before the GC head (from 3.11, 3.12 on). */
export const PRE_HEADER_BYTES = 16;
