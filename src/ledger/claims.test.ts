import { expect, test } from "vitest";
import type { GlibcHeap } from "../native/glibc_heap.js";
import { RangeColumns } from "../native/range_columns.js";
import { type Break, claimsOf } from "./claims.js";

/** One arena by brk, one that a thread has. */
function heapRanges(brk: Break): number[][] {
  const regions = [
    { start: 0x10000, end: 0x50000, firstChunk: 0x10000, top: 0x48000 },
    { start: 0x7f0000, end: 0x800000, firstChunk: 0x7f0000, top: 0x7f8000 },
  ];
  const heap = {
    arenas: regions.map((region) => ({ regions: [region] })),
    free: new RangeColumns(),
    mmapped: { ranges: new RangeColumns() },
  } as unknown as GlibcHeap;
  return claimsOf({ arenas: null, pools: null, heap, stacks: [] }, brk).map(({ start, end }) => [
    start,
    end,
  ]);
}

const THREAD = [0x7f0000, 0x800000];

test("a heap that ended at the program break grows with it", () => {
  expect(heapRanges({ before: 0x50000, now: 0x90000 })).toEqual([[0x10000, 0x90000], THREAD]);
  expect(heapRanges({ before: 0x40000, now: 0x90000 })).toEqual([[0x10000, 0x90000], THREAD]);
});

test("memory of others beyond it is not malloc's, nor is returned memory", () => {
  expect(heapRanges({ before: 0x60000, now: 0x90000 })).toEqual([[0x10000, 0x50000], THREAD]);
  expect(heapRanges({ before: 0x50000, now: 0x40000 })).toEqual([[0x10000, 0x50000], THREAD]);
  expect(heapRanges({ before: 0, now: 0 })).toEqual([[0x10000, 0x50000], THREAD]);
});
