/**
 * Divides a heap into parts that several threads can scan independently.
 *
 *   region   [malloc's own mapping, 90 MiB][arena][arena][arena] ... [arena][another mapping][arena] ...
 *   parts    |<------------ first ------------------->|<------ second ---->|<-------- third -------- ...
 *
 * The scan sees a large block at its header and skips it as a whole, so no part may begin inside one. A part
 * may begin at a pool of an arena, because an arena is never inside a block. Three consecutive pool headers
 * identify an arena; if none is found, the part continues.
 */

import type { AddressRange, Memory } from "../../../linux/memory/memory.js";
import { ResidentWords } from "../../../linux/memory/resident_words.js";
import { present } from "../../../model/base/present.js";
import type { Address, Bytes } from "../../../model/base/units.js";
import { heapRegions } from "./heap_regions.js";
import type { HeapLayout } from "./layout.js";

/** Number of bytes that one thread scans at a time. */
export interface HeapPart extends AddressRange {
  /** The mapped memory around it: an object that begins in a part may end after it. */
  readonly region: AddressRange;
}

const PART: Bytes = 32 * 2 ** 20;
/** In this much memory of arenas, three pools of one arena are adjacent somewhere. */
const SEARCHED: Bytes = 2 * 2 ** 20;
const SIZE_CLASSES = 32;

export function wholeRegions(memory: Memory): HeapPart[] {
  return heapRegions(memory).map((region) => ({ ...region, region }));
}

export function splitHeap(memory: Memory, layout: HeapLayout): HeapPart[] {
  const words = new ResidentWords(memory);
  return heapRegions(memory).flatMap((region) => {
    const starts = [region.start];
    for (let at = region.start + PART; at < region.end; at += PART) {
      const pool = poolInArena(words, layout, at, region.end);
      if (pool !== null && pool > present(starts.at(-1))) {
        starts.push(pool);
      }
    }
    return starts.map((start, n) => ({ start, end: starts[n + 1] ?? region.end, region }));
  });
}

/** The first pool at or after an address that has pools of its own arena before and after it. */
function poolInArena(
  words: ResidentWords,
  { poolBytes }: HeapLayout,
  from: Address,
  end: Address,
): Address | null {
  const last = Math.min(from + SEARCHED, end - 2 * poolBytes);
  for (let pool = Math.ceil(from / poolBytes) * poolBytes; pool < last; pool += poolBytes) {
    const arena = arenaOf(words, pool, poolBytes);
    if (
      arena !== null &&
      arenaOf(words, pool - poolBytes, poolBytes) === arena &&
      arenaOf(words, pool + poolBytes, poolBytes) === arena
    ) {
      return pool;
    }
  }
  return null;
}

/**
 * The number of the arena in a pool's header (heap_scan.ts shows the layout); null if there is no pool. A copy
 * of a header in some block points to the free blocks of the original.
 */
function arenaOf(words: ResidentWords, pool: Address, poolBytes: Bytes): number | null {
  const sizeClass = words.word32(pool + 36);
  const free = words.word(pool + 8);
  const isPool =
    sizeClass < SIZE_CLASSES &&
    words.word32(pool + 44) === poolBytes - (sizeClass + 1) * 16 &&
    (free === 0 || (free > pool && free < pool + poolBytes));
  return isPool ? words.word32(pool + 32) : null;
}
