/** The documents of `tidemark heap` and `tidemark heap diff`; rules as in documents.ts. */

import type { Bytes, Millis, Objects, TimeMs } from "../../base/units.js";
import type { TargetJson } from "../documents.js";

export interface HeapTypeJson {
  /** `module.qualname`, `builtins.` left out. */
  type: string;
  /** "builtins" for those. */
  module: string;
  objects: Objects;
  /** As sys.getsizeof, and the buffers beside it. */
  bytes: Bytes;
  /** Of `bytes`, what getsizeof leaves out: storages of tensors, attributes kept without a dict. */
  bufferBytes: Bytes;
  /** Objects that the garbage collector tracks. */
  trackedObjects: Objects;
  /** With a graph: what would be freed if all objects of the type went. */
  retainedBytes?: Bytes;
}

export interface HeapHolderJson {
  /** From a root: "module app", "CACHE", "dict["users"]". */
  path: string[];
  type: string;
  /** Hexadecimal. */
  address: string;
  retainedBytes: Bytes;
  /** Objects that would go with it. */
  objects: Objects;
  /** Of a container; 0 of anything else. */
  entries: Objects;
}

/** `tidemark.heap/1` */
export interface HeapJson {
  schema: "tidemark.heap/1";
  target: TargetJson;
  atMs: TimeMs;
  /** Everything is of one moment: the program stood still, or it is a core file. */
  paused: boolean;
  pauseMs: Millis;
  totals: { objects: Objects; bytes: Bytes };
  /** By bytes (with a graph: by retained bytes), largest first. */
  types: HeapTypeJson[];
  /** With a graph: where memory gathers, largest first. */
  holders?: HeapHolderJson[];
  /** With --to: ways from roots, the largest first. */
  paths?: { to: string; path: string[]; retainedBytes: Bytes; objects: Objects }[];
  /** With a graph: numbers that each are an object, where an array would hold them bare. */
  boxed?: {
    path: string[];
    container: string;
    of: string;
    objects: Objects;
    bytes: Bytes;
    arrayBytes: Bytes;
  }[];
  /** With a graph: what lives by references among itself alone. */
  garbage?: { objects: Objects; bytes: Bytes };
  limits: string[];
}

/** `tidemark.heapdiff/1`: what appeared, grew, shrank and went from A to B. */
export interface HeapDiffJson {
  schema: "tidemark.heapdiff/1";
  a: { file: string; atMs: TimeMs; target: TargetJson };
  b: { file: string; atMs: TimeMs; target: TargetJson };
  totals: { objectsA: Objects; objectsB: Objects; bytesA: Bytes; bytesB: Bytes };
  /** By growth, largest first. */
  types: {
    type: string;
    change: HeapChange;
    objectsA: Objects;
    objectsB: Objects;
    bytesA: Bytes;
    bytesB: Bytes;
    growthBytes: Bytes;
  }[];
  /** Where both files hold a graph: containers by the growth of what they retain. */
  holders: {
    path: string[];
    type: string;
    change: HeapChange;
    entriesA: Objects;
    entriesB: Objects;
    retainedBytesA: Bytes;
    retainedBytesB: Bytes;
    growthBytes: Bytes;
  }[];
  limits: string[];
}

export type HeapChange = "appeared" | "grew" | "shrank" | "went" | "same";
