/**
 * The contents of a copy of a program's memory: resident pages of its heaps, and of the data of the program and
 * its libraries. Large buffers of plain numbers (arrays, weights) are left out, because they contain no
 * references.
 */

import { mappedChunkBytes } from "../../../linux/memory/mapped_chunk.js";
import type { AddressRange, Mapping, Memory } from "../../../linux/memory/memory.js";
import { itemAt } from "../../../model/base/columns.js";
import type { Address, Bytes } from "../../../model/base/units.js";
import { heapRegions, isTablesOfLibrary } from "./heap_regions.js";
import type { HeapLayout } from "./layout.js";

const PAGE = 4096;
/** Mapped malloc chunks of at least this size are copied only if they contain references. */
const LARGE_CHUNK = 256 * 1024;
const SAMPLE_WORDS = 64;

export interface CopyPlan {
  /** Large buffers without references, which are left out. Ascending. */
  readonly leftOut: readonly AddressRange[];
  /** Number of bytes to copy. */
  readonly bytes: Bytes;
}

/** What a copy would contain: resident pages of heaps, and of data of programs and libraries. */
export function planCopy(memory: Memory, { poolBytes }: HeapLayout): CopyPlan {
  const leftOut: AddressRange[] = [];
  const head = new Uint8Array(SAMPLE_WORDS * 8);
  const ofBreak = memory.mappings.find(({ path }) => path === "[heap]");
  for (const region of heapRegions(memory)) {
    if (region.start === ofBreak?.start) {
      continue; // malloc's chunks in these are not separate mappings
    }
    for (const { start, end } of memory.resident(region.start, region.end)) {
      let stepped = start;
      for (let at = start; end - at >= LARGE_CHUNK; ) {
        const size = largeChunkAt(memory, at, end, head);
        if (size === 0 && at % poolBytes === 0 && isPool(head, poolBytes)) {
          // Nothing else begins inside it, and between two pools that are this near there is no large chunk.
          const far = at + LARGE_CHUNK;
          const isBetweenPools = at >= stepped && isPoolAt(memory, far, end, head, poolBytes);
          stepped = isBetweenPools ? far : Math.max(stepped, far);
          at = isBetweenPools ? far : at + poolBytes;
          continue;
        }
        if (size > 0 && !chunkHoldsReferences(memory, at, size, head)) {
          // Its first page stays, because an object may begin there.
          leftOut.push({ start: at + PAGE, end: at + size });
        }
        at += size > 0 ? size : PAGE;
      }
    }
  }
  return { leftOut, bytes: sumOf(copyRanges(memory, leftOut)) };
}

export function sumOf(ranges: readonly AddressRange[]): Bytes {
  return ranges.reduce((sum, { start, end }) => sum + end - start, 0);
}

/** All memory that can be copied now, without what the plan leaves out. */
export function copyRanges(memory: Memory, leftOut: readonly AddressRange[]): AddressRange[] {
  return rangesOf(memory, memory.mappings.filter(isData), leftOut);
}

/**
 * The part that must be from one moment: heaps, and the interpreter's own data. Fast, because the program may
 * be paused.
 */
export function momentRanges(memory: Memory, leftOut: readonly AddressRange[]): AddressRange[] {
  const own = interpreterFiles(memory);
  const data = memory.mappings.filter(isData).filter(({ path }) => own.has(path));
  return rangesOf(memory, data, leftOut);
}

function rangesOf(
  memory: Memory,
  data: readonly AddressRange[],
  leftOut: readonly AddressRange[],
): AddressRange[] {
  const regions = [...heapRegions(memory), ...data].sort((a, b) => a.start - b.start);
  const ranges: AddressRange[] = [];
  let next = 0;
  for (const region of regions) {
    for (const { start, end } of memory.resident(region.start, region.end)) {
      let at = start;
      while (next < leftOut.length && itemAt(leftOut, next).end <= at) {
        next += 1;
      }
      for (let n = next; n < leftOut.length && itemAt(leftOut, n).start < end; n++) {
        const hole = itemAt(leftOut, n);
        if (hole.start > at) {
          ranges.push({ start: at, end: hole.start });
        }
        at = Math.max(at, hole.end);
      }
      if (at < end) {
        ranges.push({ start: at, end });
      }
    }
  }
  return ranges;
}

function largeChunkAt(memory: Memory, at: Address, end: Address, head: Uint8Array): Bytes {
  if (end - at < LARGE_CHUNK || memory.readInto(at, head) < head.length) {
    return 0;
  }
  const bytes = mappedChunkBytes(new Uint32Array(head.buffer), 0);
  return bytes >= LARGE_CHUNK && at + bytes <= end ? bytes : 0;
}

function isPoolAt(memory: Memory, at: Address, end: Address, head: Uint8Array, poolBytes: Bytes) {
  const got = at + head.length <= end ? memory.readInto(at, head) : 0;
  return got === head.length && isPool(head, poolBytes);
}

/** Whether a page begins with the header of a pool (heap_scan.ts). */
function isPool(head: Uint8Array, poolBytes: Bytes): boolean {
  const words = new Uint32Array(head.buffer);
  const sizeClass = words[9] ?? 0;
  return sizeClass < 32 && words[11] === poolBytes - (sizeClass + 1) * 16;
}

/**
 * Whether the range may contain references: its first words look like references, or those at another place in
 * it do. A set's table is sparse, and half of it are hashes.
 */
function chunkHoldsReferences(memory: Memory, at: Address, size: Bytes, head: Uint8Array): boolean {
  if (holdsReferences(head, true)) {
    return true;
  }
  const sample = new Uint8Array(head.length);
  return SAMPLED_AT.some((share) => {
    const place = at + Math.floor((size * share) / PAGE) * PAGE;
    // Reading must not make anything resident.
    const present = memory.resident(place, place + PAGE).length > 0;
    return (
      present && memory.readInto(place, sample) === sample.length && holdsReferences(sample, false)
    );
  });
}

const SAMPLED_AT = [0.25, 0.5, 0.75, 0.9];

/**
 * True if at least a third of the nonzero words could be addresses or, at the beginning, one of the first few
 * words is a small count.
 */
function holdsReferences(sample: Uint8Array, beginning: boolean): boolean {
  const words = new Uint32Array(sample.buffer);
  let addresses = 0;
  let zeroes = 0;
  for (let word = 2; word < SAMPLE_WORDS; word++) {
    const high = words[word * 2 + 1] ?? 0;
    const low = words[word * 2] ?? 0;
    if (low === 0 && high === 0) {
      zeroes += 1;
    } else if ((low & 7) === 0 && high <= 0x7fff && (high > 0 || low > 0x400000)) {
      addresses += 1;
    }
  }
  // A dict's table begins with a count of one and its sizes, followed by indices that match no pattern.
  const table =
    beginning &&
    (words[4] ?? 0) >= 1 &&
    (words[4] ?? 0) < 2 ** 24 &&
    words[5] === 0 &&
    (words[7] ?? 0) < 2 ** 16;
  return table || addresses * 3 > SAMPLE_WORDS - zeroes;
}

/** The rest: variables of libraries. */
export function libraryRanges(memory: Memory): AddressRange[] {
  const own = interpreterFiles(memory);
  return memory.mappings
    .filter(isData)
    .filter(({ path }) => !own.has(path))
    .flatMap(({ start, end }) => memory.resident(start, end));
}

/** The program, and libpython if it is a shared library. */
function interpreterFiles({ mappings }: Memory): ReadonlySet<string> {
  const program = mappings.find(({ inode, path }) => inode !== 0 && path.startsWith("/"))?.path;
  const libraries = mappings.map(({ path }) => path).filter((path) => LIBPYTHON.test(path));
  return new Set(program === undefined ? libraries : [program, ...libraries]);
}

const LIBPYTHON = /\/libpython3[^/]*\.so[^/]*$/;

/** Private and writable parts of files: .data, .bss that begins on a page of the file, and a library's large .bss. */
function isData(mapping: Mapping, n: number, mappings: readonly Mapping[]): boolean {
  const { readable, writable, shared, inode, path } = mapping;
  const isOfFile = (inode !== 0 && !path.startsWith("/dev/")) || isTablesOfLibrary(mappings, n);
  return readable && writable && !shared && isOfFile;
}
