/** What the pages of a heap, and of two, hold: written by the CLI into one HTML file. */

import type { HeapTree } from "../../heap/heap_tree.js";
import type { HeapDiffJson, HeapJson } from "./heap_document.js";

/** `tidemark.heapPage/1`. Encoded with {@link ./columns.ts}. */
export interface HeapPageDocument {
  readonly schema: "tidemark.heapPage/1";
  readonly title: string;
  readonly heap: HeapJson;
  /** null where there is no graph: `heap.limits` says why. */
  readonly tree: NamedHeapTree | null;
}

export interface NamedHeapTree extends HeapTree {
  /** By row, the way from the row above in words; none of rows that are no one object. */
  readonly steps: readonly (readonly string[])[];
}

/** `tidemark.heapDiffPage/1`. Encoded with {@link ./columns.ts}. */
export interface HeapDiffPageDocument {
  readonly schema: "tidemark.heapDiffPage/1";
  readonly title: string;
  readonly diff: HeapDiffJson;
}

export const HEAP_PAGE_SCHEMA = "tidemark.heapPage/1";
export const HEAP_DIFF_PAGE_SCHEMA = "tidemark.heapDiffPage/1";
