/** The documents of `tidemark heap` and `tidemark heap diff`; rules as in documents.ts. */

import type { Bytes, Millis, Objects, TimeMs } from "../../base/units.js";
import type { TargetJson } from "../documents.js";

export interface HeapTypeJson {
  /** `module.qualname`, without `builtins.`. */
  type: string;
  /** "builtins" for built-in types. */
  module: string;
  objects: Objects;
  /** As sys.getsizeof, plus the buffers it does not count. */
  bytes: Bytes;
  /** The part of `bytes` that getsizeof does not count: storages of tensors, attributes kept without a dict. */
  bufferBytes: Bytes;
  /** Objects that the garbage collector tracks. */
  trackedObjects: Objects;
  /** With a graph: bytes freed if all objects of the type were removed. */
  retainedBytes?: Bytes;
}

export interface HeapHolderJson {
  /** From a root: "module app", "CACHE", "dict["users"]". */
  path: string[];
  type: string;
  /** Hexadecimal. */
  address: string;
  retainedBytes: Bytes;
  /** Objects that would be freed with it. */
  objects: Objects;
  /** Entries of a container; otherwise 0. */
  entries: Objects;
}

/** `tidemark.heap/1` */
export interface HeapJson {
  schema: "tidemark.heap/1";
  target: TargetJson;
  atMs: TimeMs;
  /** Whether everything is of one moment: the program was paused, or it is a core file. */
  paused: boolean;
  pauseMs: Millis;
  totals: { objects: Objects; bytes: Bytes };
  /** By bytes (with a graph: by retained bytes), largest first. */
  types: HeapTypeJson[];
  /** With a graph: holders of most memory, largest first. */
  holders?: HeapHolderJson[];
  /** With --to: paths from roots, largest first. */
  paths?: { to: string; path: string[]; retainedBytes: Bytes; objects: Objects }[];
  /** With a graph: numbers stored as separate objects, which an array would store as plain values. */
  boxed?: {
    path: string[];
    container: string;
    of: string;
    objects: Objects;
    bytes: Bytes;
    arrayBytes: Bytes;
  }[];
  /** With a graph: objects that are referenced only by each other. */
  garbage?: { objects: Objects; bytes: Bytes };
  limits: string[];
}

/** `tidemark.heapdiff/1`: what appeared, grew, shrank and disappeared from A to B. */
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
  /** If both files have a graph: containers by growth of their retained size. */
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
