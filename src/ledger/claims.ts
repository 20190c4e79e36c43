/**
 * Address ranges with a known owner beyond the mapping's name: first Python's arenas, then glibc's heaps and
 * blocks, then stacks. Ascending and disjoint.
 */

import type { PoolCounts, PythonArenas } from "../cpython/interpreter/arenas.js";
import type { AddressRange } from "../linux/memory/memory.js";
import { float64At, itemAt } from "../model/base/columns.js";
import type { Address } from "../model/base/units.js";
import type { LedgerPartName } from "../model/profile/ledger.js";
import type { GlibcHeap } from "../native/glibc_heap.js";

/** Free memory within claims: ranges by address; `shares` of each are free; all of it if absent. */
export interface FreeRanges {
  readonly starts: Float64Array;
  readonly ends: Float64Array;
  readonly shares: Float64Array | null;
}

export interface Claim extends AddressRange {
  /** The part that its used memory belongs to. */
  readonly used: LedgerPartName;
  readonly free: { readonly part: LedgerPartName; readonly ranges: FreeRanges } | null;
}

interface Owners {
  readonly arenas: PythonArenas | null;
  readonly pools: PoolCounts | null;
  readonly heap: GlibcHeap | null;
  readonly stacks: readonly AddressRange[];
}

/** End of the brk heap at the start of the reading, and when smaps is read; 0: there is none. */
export interface Break {
  readonly before: Address;
  readonly now: Address;
}

export function claimsOf(
  { arenas, pools, heap, stacks }: Owners,
  brk: Break = { before: 0, now: 0 },
): Claim[] {
  const claims: Claim[] = [];
  if (arenas !== null && pools !== null) {
    const ranges = freeOfPools(arenas, pools);
    for (const range of arenaRanges(arenas)) {
      claims.push({ ...range, used: "python.used", free: { part: "python.free", ranges } });
    }
  }
  if (heap !== null) {
    const ranges = { starts: heap.free.starts, ends: heap.free.ends, shares: null };
    for (const { regions } of heap.arenas) {
      for (const region of regions) {
        claims.push({
          ...withGrowth(region, brk),
          used: "malloc.used",
          free: { part: "malloc.free", ranges },
        });
      }
    }
    heap.mmapped.ranges.starts.forEach((start, index) => {
      const end = float64At(heap.mmapped.ranges.ends, index);
      claims.push({ start, end, used: "malloc.used", free: null });
    });
  }
  for (const { start, end } of stacks) {
    claims.push({ start, end, used: "stacks", free: null });
  }
  return apart(claims);
}

export function arenaRanges({ addresses, arenaBytes }: PythonArenas): AddressRange[] {
  return Array.from(addresses, (start) => ({ start, end: start + arenaBytes })).sort(
    (a, b) => a.start - b.start,
  );
}

/** A heap that ended at the break before the reading is the one that has moved the break since then. */
function withGrowth({ start, end }: AddressRange, { before, now }: Break): AddressRange {
  return { start, end: start < before && end >= before ? Math.max(end, now) : end };
}

/** If claims overlap (memory moved between two readings), the later address is cut. */
function apart(claims: Claim[]): Claim[] {
  claims.sort((a, b) => a.start - b.start);
  const result: Claim[] = [];
  let behind = 0;
  for (const claim of claims) {
    const start = Math.max(claim.start, behind);
    if (start < claim.end) {
      result.push(start === claim.start ? claim : { ...claim, start });
      behind = claim.end;
    }
  }
  return result;
}

/** Each pool's free blocks, spread over the pool, or over those that it represents. */
function freeOfPools(arenas: PythonArenas, pools: PoolCounts): FreeRanges {
  const { poolBytes } = arenas;
  const order = Uint32Array.from(pools.addresses, (_, index) => index).sort(
    (a, b) => float64At(pools.addresses, a) - float64At(pools.addresses, b),
  );
  const starts: number[] = [];
  const ends: number[] = [];
  const shares: number[] = [];
  for (const index of order) {
    const share = 1 - float64At(pools.usedBytes, index) / poolBytes;
    if (share > 0) {
      starts.push(float64At(pools.addresses, index));
      ends.push(float64At(pools.addresses, index) + float64At(pools.spans, index));
      shares.push(share);
    }
  }
  return withWhole({ starts, ends, shares }, neverUsed(arenas));
}

/** Pools that were never used; resident only if the kernel used huge pages. */
function neverUsed({ addresses, unusedFrom, arenaBytes }: PythonArenas): AddressRange[] {
  return Array.from(addresses, (address, row): AddressRange => {
    return { start: float64At(unusedFrom, row), end: address + arenaBytes };
  }).filter(({ start, end }) => end > start);
}

function withWhole(
  partly: { readonly starts: Address[]; readonly ends: Address[]; readonly shares: number[] },
  whole: readonly AddressRange[],
): FreeRanges {
  const rows = [
    ...partly.starts.map((start, index) => ({
      start,
      end: itemAt(partly.ends, index),
      share: itemAt(partly.shares, index),
    })),
    ...whole.map(({ start, end }) => ({ start, end, share: 1 })),
  ].sort((a, b) => a.start - b.start);
  return {
    starts: Float64Array.from(rows, ({ start }) => start),
    ends: Float64Array.from(rows, ({ end }) => end),
    shares: Float64Array.from(rows, ({ share }) => share),
  };
}
