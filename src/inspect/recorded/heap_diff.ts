/** The document of `tidemark heap diff`: the difference between two files of `heap --save`. */

import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { diffHeaps } from "../../model/documents/heap/heap_diff.js";
import type { HeapDiffJson } from "../../model/documents/heap/heap_document.js";
import { decodeHeap, type SavedHeap } from "../../model/documents/heap/heap_file.js";
import {
  HEAP_DIFF_PAGE_SCHEMA,
  type HeapDiffPageDocument,
} from "../../model/documents/heap/heap_page.js";
import { fileNotFound, fileUnusable, oneLine } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";

/** The start of a process is computed from the clock at each snapshot: the results differ by a few milliseconds. */
const SAME_START_MS = 1000;

/** Throws TM-E003, TM-E004 (no such file, not readable) and the errors of `decodeHeap` for a damaged file. */
export function heapDiffDocument(a: string, b: string): HeapDiffJson {
  const [heapA, heapB] = [readHeap(a), readHeap(b)];
  return {
    schema: "tidemark.heapdiff/1",
    a: sideOf(a, heapA),
    b: sideOf(b, heapB),
    ...diffHeaps(heapA, heapB),
    limits: limitsOf(heapA, heapB),
  };
}

export function heapDiffPage(diff: HeapDiffJson): HeapDiffPageDocument {
  const title = `heap ${oneLine(basename(diff.a.file))} -> ${oneLine(basename(diff.b.file))}`;
  return { schema: HEAP_DIFF_PAGE_SCHEMA, title, diff };
}

function sideOf(file: string, { atMs, target }: SavedHeap): HeapDiffJson["a"] {
  return { file, atMs, target };
}

function limitsOf(a: SavedHeap, b: SavedHeap): string[] {
  const limits = [...new Set([...a.limits, ...b.limits])];
  const apartMs = Math.abs(a.target.startedMs - b.target.startedMs);
  if (a.target.pid !== b.target.pid || apartMs > SAME_START_MS) {
    limits.push("the two files are of different processes");
  }
  if (a.holders === undefined || b.holders === undefined) {
    limits.push("without --retained in both files, holders cannot be compared");
  }
  return limits;
}

function readHeap(path: string): SavedHeap {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    const { code, message } = reasonOf(error);
    throw code === "ENOENT" ? fileNotFound(path) : fileUnusable(path, "read", message);
  }
  return decodeHeap(bytes, oneLine(path));
}
