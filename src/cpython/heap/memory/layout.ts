/**
 * The sizes and encodings of objects that the heap's readers need and that differ between versions of CPython, on
 * 64 bit and with a GIL. Everything else that they use has not changed over the supported versions
 * (Include/object.h, Include/cpython/*.h).
 *
 * A table's contents are not trusted: before anything is counted, a pool must satisfy its invariants, a type
 * must lead to `type` through its own type, and a dict's table must match its own figures.
 */
import type { Bytes } from "../../../model/base/units.js";
import { knownFacts, minorOf, type VersionFacts } from "../../interpreter/version_facts.js";
import { LAYOUTS, type PythonLayout } from "../../layouts/index.js";

export interface HeapLayout extends VersionFacts {
  /** POOL_SIZE of Objects/obmalloc.c (pycore_obmalloc.h). */
  readonly poolBytes: Bytes;
  /** ARENA_SIZE. */
  readonly arenaBytes: Bytes;
  /** sizeof(PyASCIIObject), where the characters of an ASCII string begin; sizeof(PyCompactUnicodeObject). */
  readonly asciiBytes: Bytes;
  readonly compactBytes: Bytes;
  /** Offset of a tuple's first item. */
  readonly tupleItems: Bytes;
  /** sizeof(PyTypeObject), sizeof(PyHeapTypeObject) and offsets in the latter. */
  readonly typeBytes: Bytes;
  readonly heapTypeBytes: Bytes;
  readonly heapTypeQualname: Bytes;
  readonly heapTypeCachedKeys: Bytes;
  /** Format of a dict's table: "lookup" (its size and a function) or "log2". */
  readonly dictKeys: "lookup" | "log2";
  /** An int's digits are counted above three sign bits, not in ob_size. */
  readonly taggedInts: boolean;
  /** An object may have its weak list before the GC head. */
  readonly managedWeakLists: boolean;
  /** Offset of the first value in the block of an instance's values. */
  readonly valuesStart: Bytes;
  /** From the headers of that version: frames, whose fields have moved in nearly every version. */
  readonly python: PythonLayout;
}

/** null for an unknown minor version. */
export function heapLayout(minor: number): HeapLayout | null {
  const python = LAYOUTS.find(({ version, debug }) => minorOf(version) === minor && !debug);
  const facts = knownFacts(minor);
  if (facts === null || python === undefined) {
    return null;
  }
  return {
    ...facts,
    poolBytes: python.pool.bytes,
    arenaBytes: python.arena.bytes,
    asciiBytes: python.unicode.asciiSize,
    compactBytes: python.unicode.compactSize,
    tupleItems: python.tuple.items,
    typeBytes: python.type.size,
    heapTypeBytes: python.type.heapSize,
    heapTypeQualname: python.type.heapQualifiedName,
    heapTypeCachedKeys: python.type.heapCachedKeys,
    dictKeys: python.dictKeys.log2Size === null ? "lookup" : "log2",
    taggedInts: python.long.tag !== null,
    managedWeakLists: python.dict.managedWeakListOffset !== null,
    valuesStart: python.dict.valuesItems ?? 0,
    python,
  };
}

/** sizeof(PyGC_Head), before every object that the collector may track. */
export const GC_HEAD_BYTES = 16;
/** Offsets of the dict and the weak list that the object's type keeps before the GC head (from 3.11 and 3.12 on). */
export const PRE_HEADER_BYTES = 16;
