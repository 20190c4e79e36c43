/** Data of the pages of one heap and of two heaps, written by the CLI into one HTML file. */

import type { HeapTree } from "../../heap/heap_tree.js";
import type { HeapDiffJson, HeapJson } from "./heap_document.js";

/** `tidemark.heapPage/1`. Encoded with {@link ./columns.ts}. */
export interface HeapPageDocument {
  readonly schema: "tidemark.heapPage/1";
  readonly title: string;
  readonly heap: HeapJson;
  /** null if there is no graph, for the reason in `heap.limits`. */
  readonly tree: NamedHeapTree | null;
}

export interface NamedHeapTree extends HeapTree {
  /** For each row, the path from the row above as text; none for rows that are not a single object. */
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
