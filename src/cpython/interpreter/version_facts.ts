/**
 * The differences between minor versions of CPython that no offset expresses: encodings, flags and orders. Offsets
 * and sizes are in layouts/, which are generated from the headers. Readers take the facts of the interpreter that
 * they read from here and compare no version numbers themselves.
 *
 * Each version's row holds what changed since the version before it.
 */
import type { Bytes } from "../../model/base/units.js";

export interface VersionFacts {
  /** The x of 3.x. */
  readonly minor: number;
  /**
   * A function that this version added to the API and that every build since then exports. It identifies the
   * version of an interpreter that exports no Py_Version; null: Py_Version is exported. Source:
   * Include/cpython/.
   */
  readonly addedFunction: string | null;
  /**
   * Offset of `debugger_support` in _Py_DebugOffsets (PEP 768); null if the version does not have it. Source:
   * Include/internal/pycore_debug_offsets.h.
   */
  readonly debuggerSupport: Bytes | null;
  /**
   * Encoding of co_lnotab or co_linetable; see code_lines.ts. Source: Objects/lnotab_notes.txt (3.9, 3.10),
   * Objects/locations.md (later InternalDocs/code_objects.md).
   */
  readonly lineTable: "pairs" | "ranges" | "locations";
  /** Number of bytes of code for one step of a frame object's f_lasti. Source: Objects/frameobject.c. */
  readonly lastInstructionUnit: Bytes;
  /**
   * A frame object's f_lineno is 0 unless a debugger traces it; false: an old line may remain there. Source:
   * Objects/frameobject.c (PyFrame_GetLineNumber).
   */
  readonly clearsFrameLine: boolean;
  /**
   * Distance in bytes from the top of a suspended frame's stack down to the object that it awaits, if the frame
   * keeps a pointer to the top. Source: Objects/genobject.c (_PyGen_yf), Python/bytecodes.c (SEND).
   */
  readonly awaitedBelowTop: Bytes;
  /**
   * Where instances keep attributes that are not in a dict; see references.ts. "dict": there are none. Source:
   * Include/internal/pycore_object.h, Objects/dictobject.c.
   */
  readonly values: "dict" | "pointer" | "tagged" | "inline";
  /** The upper half of the reference count holds flags. Source: Include/refcount.h. */
  readonly countFlags: boolean;
  /** Digits that `sys.getsizeof` counts for the int 0. Source: Objects/longobject.c (int___sizeof___impl). */
  readonly leastDigits: 0 | 1;
  /** An exception has `notes` among its fields. Source: Include/cpython/pyerrors.h (PyException_HEAD). */
  readonly exceptionNotes: boolean;
  /** A bytearray's bytes are a separate object. Source: Objects/bytearrayobject.c (ob_bytes_object). */
  readonly byteArrayHoldsObject: boolean;
}

const PYTHON_3_9: VersionFacts = {
  minor: 9,
  addedFunction: "PyFrame_GetCode",
  debuggerSupport: null,
  lineTable: "pairs",
  lastInstructionUnit: 1,
  clearsFrameLine: false,
  awaitedBelowTop: 8,
  values: "dict",
  countFlags: false,
  leastDigits: 0,
  exceptionNotes: false,
  byteArrayHoldsObject: false,
};

const PYTHON_3_10: VersionFacts = {
  ...PYTHON_3_9,
  minor: 10,
  addedFunction: "Py_NewRef",
  lineTable: "ranges",
  lastInstructionUnit: 2,
  clearsFrameLine: true,
};

const PYTHON_3_11: VersionFacts = {
  ...PYTHON_3_10,
  minor: 11,
  addedFunction: null,
  lineTable: "locations",
  values: "pointer",
  leastDigits: 1,
  exceptionNotes: true,
};

const PYTHON_3_12: VersionFacts = { ...PYTHON_3_11, minor: 12, values: "tagged" };

const PYTHON_3_13: VersionFacts = { ...PYTHON_3_12, minor: 13, values: "inline" };

const PYTHON_3_14: VersionFacts = {
  ...PYTHON_3_13,
  minor: 14,
  debuggerSupport: 712,
  countFlags: true,
};

const PYTHON_3_15: VersionFacts = {
  ...PYTHON_3_14,
  minor: 15,
  debuggerSupport: 840,
  awaitedBelowTop: 16, // a word that belongs to SEND (an index, or NULL) is on top
  byteArrayHoldsObject: true,
};

/** Oldest version first. */
export const VERSION_FACTS: readonly VersionFacts[] = [
  PYTHON_3_9,
  PYTHON_3_10,
  PYTHON_3_11,
  PYTHON_3_12,
  PYTHON_3_13,
  PYTHON_3_14,
  PYTHON_3_15,
];

/** The x of a version 3.x, such as "3.11.7". */
export function minorOf(version: string): number {
  return Number(version.split(".")[1]);
}

/** null for an unknown minor version. */
export function knownFacts(minor: number): VersionFacts | null {
  return VERSION_FACTS.find((facts) => facts.minor === minor) ?? null;
}

/** The facts of a version that has a table of offsets, such as "3.11.2". Throws if it has no facts. */
export function factsOf(version: string): VersionFacts {
  const facts = knownFacts(minorOf(version));
  if (facts === null) {
    throw new Error(`no version facts for Python ${version}`); // version_facts.test.ts checks that none is missing
  }
  return facts;
}
