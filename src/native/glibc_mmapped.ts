/**
 * Blocks to which malloc gave their own mappings, such as NumPy's and PyTorch's buffers. The kernel merges
 * adjacent mappings, so one line of /proc/PID/maps may contain many blocks, and NumPy's madvise splits others.
 * The blocks are found by their headers, which are at the beginnings of pages
 * (src/linux/memory/mapped_chunk.ts). memalign writes a second header further on and leaves this one unchanged.
 *
 * Data of the program may look the same. mp_ holds the number and total size of the blocks: both are returned
 * for comparison, and the search ends when that many were found.
 */

import { mappedChunkBytes } from "../linux/memory/mapped_chunk.js";
import type { AddressRange, Mapping, Memory } from "../linux/memory/memory.js";
import { itemAt } from "../model/base/columns.js";
import type { Bytes } from "../model/base/units.js";
import { RangeColumns } from "./range_columns.js";

export interface MmappedChunks {
  /** Their whole mappings, ascending. */
  readonly ranges: RangeColumns;
  readonly bytes: Bytes;
  /** The limit on pages was reached. */
  readonly cut: boolean;
}

const PAGE = 4096;
const PIECE_PAGES = 256;
/** Residency is requested for this many bytes at once; it is never requested for the inside of a large block. */
const SLICE = 2 ** 28;

/**
 * @param known ranges with other contents, ascending and without overlaps (heaps, Python's arenas)
 * @param chunks number of blocks according to mp_, at which the search ends
 * @param mostPages maximum number of pages whose beginning is read
 * @param mostSpace maximum address space whose residency is requested. A program may reserve a thousand times
 *   what it uses, so small gaps are searched before large ones.
 */
export function findMmappedChunks(
  memory: Memory,
  known: readonly AddressRange[],
  chunks: number,
  mostPages: number,
  mostSpace: Bytes,
): MmappedChunks {
  const ranges = new RangeColumns();
  const search: Search = {
    bytes: 0,
    pages: mostPages,
    space: mostSpace,
    buffer: new Uint8Array(PIECE_PAGES * PAGE),
  };
  const gaps = anonymousRuns(memory.mappings).flatMap((run) => without(run, known));
  gaps.sort((a, b) => a.end - a.start - (b.end - b.start));
  for (const gap of gaps) {
    searchGap(memory, gap, chunks, search, ranges);
  }
  const exhausted = search.pages <= 0 || search.space <= 0;
  return {
    ranges: ranges.sorted(),
    bytes: search.bytes,
    cut: ranges.length < chunks && exhausted,
  };
}

/**
 * Adjacent anonymous mappings are joined: NumPy requests huge pages inside a large block (madvise), which
 * splits the block's mapping in two.
 */
function anonymousRuns(mappings: readonly Mapping[]): AddressRange[] {
  const runs: AddressRange[] = [];
  for (const mapping of mappings) {
    if (!isAnonymous(mapping)) {
      continue;
    }
    const last = runs[runs.length - 1];
    if (last?.end === mapping.start) {
      runs[runs.length - 1] = { start: last.start, end: mapping.end };
    } else {
      runs.push({ start: mapping.start, end: mapping.end });
    }
  }
  return runs;
}

function isAnonymous({ readable, writable, shared, inode, path }: Mapping): boolean {
  return (
    readable && writable && !shared && inode === 0 && (path === "" || path.startsWith("[anon"))
  );
}

interface Search {
  bytes: Bytes;
  /** Resident pages that may still be read, and address space whose residency may still be requested. */
  pages: number;
  space: Bytes;
  readonly buffer: Uint8Array;
}

/** Reads page by page until a header shows how long its block is; the next block may begin after it. */
function searchGap(
  memory: Memory,
  gap: AddressRange,
  chunks: number,
  search: Search,
  ranges: RangeColumns,
): void {
  let from = gap.start;
  while (from < gap.end && ranges.length < chunks && search.pages > 0 && search.space > 0) {
    const end = Math.min(gap.end, from + SLICE);
    search.space -= end - from;
    const resident = memory.resident(from, end);
    from = searchResident(memory, resident, { start: from, end: gap.end }, chunks, search, ranges);
    from = Math.max(from, end);
  }
}

/** @returns the end of the last block found, or the beginning of `gap` */
function searchResident(
  memory: Memory,
  resident: readonly AddressRange[],
  gap: AddressRange,
  chunks: number,
  search: Search,
  ranges: RangeColumns,
): number {
  const words = new Uint32Array(search.buffer.buffer);
  let from = gap.start;
  for (const { start, end } of resident) {
    let page = Math.max(start, from);
    let pieceStart = 0;
    let pieceEnd = 0;
    // After a block, the next one is probably adjacent: small reads first, larger ones if they find nothing.
    let pieceBytes = PAGE;
    while (page < end && ranges.length < chunks && search.pages > 0) {
      if (page >= pieceEnd) {
        const length = Math.min(pieceBytes, end - page);
        const read = memory.readInto(page, search.buffer.subarray(0, length));
        pieceStart = page;
        pieceEnd = page + read - (read % PAGE);
        pieceBytes = Math.min(pieceBytes * 4, search.buffer.length);
        if (pieceEnd === pieceStart) {
          break;
        }
      }
      search.pages -= 1;
      const bytes = mappedChunkBytes(words, (page - pieceStart) / 4);
      if (bytes > 0 && page + bytes <= gap.end) {
        ranges.push(page, page + bytes);
        search.bytes += bytes;
        page += bytes;
        from = page;
        pieceEnd = 0;
        pieceBytes = PAGE;
      } else {
        page += PAGE;
      }
    }
  }
  return from;
}

/** The range without the known ranges, ascending. */
function without(run: AddressRange, known: readonly AddressRange[]): AddressRange[] {
  const gaps: AddressRange[] = [];
  let start = run.start;
  for (let index = firstAfter(known, run.start); index < known.length; index++) {
    const range = itemAt(known, index);
    if (range.start >= run.end) {
      break;
    }
    if (range.start > start) {
      gaps.push({ start, end: range.start });
    }
    start = Math.max(start, range.end);
  }
  return start < run.end ? [...gaps, { start, end: run.end }] : gaps;
}

function firstAfter(known: readonly AddressRange[], address: number): number {
  let low = 0;
  let high = known.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (itemAt(known, middle).end <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}
