/**
 * Divides one mapping's resident bytes by address.
 *
 *   mapping    |-----------------------------------------------|   RSS by smaps
 *   resident   ######..####################..#########.....####    pages by pagemap
 *   claims        [arena ][arena ]  [heap               ]
 *   free            ~~  ~    ~~       ~~~   ~~~~  ~
 *
 * Each page's bytes are attributed to the claim that covers them, as free or used, so a page with both is
 * divided by bytes. pagemap and smaps are read one after another, so the figures are scaled to those of smaps
 * and rounded so that the sum remains exact.
 */

import type { AddressRange } from "../linux/memory/memory.js";
import { float64At, itemAt } from "../model/base/columns.js";
import type { Address, Bytes } from "../model/base/units.js";
import type { LedgerPartName } from "../model/profile/ledger.js";
import type { Claim, FreeRanges } from "./claims.js";

/** Bytes by part; they add up to `rssBytes`. */
export function divideMapping(
  mapping: AddressRange & { readonly rssBytes: Bytes },
  resident: readonly AddressRange[],
  claims: readonly Claim[],
  otherwise: LedgerPartName,
): Map<LedgerPartName, Bytes> {
  const weights = new Map<LedgerPartName, number>();
  const add = (part: LedgerPartName, bytes: number) => {
    if (bytes > 0) {
      weights.set(part, (weights.get(part) ?? 0) + bytes);
    }
  };
  let total = 0;
  for (const { start, end } of resident) {
    total += Math.min(end, mapping.end) - Math.max(start, mapping.start);
  }
  let claimed = 0;
  for (let index = firstBehind(claims, mapping.start); index < claims.length; index++) {
    const claim = itemAt(claims, index);
    if (claim.start >= mapping.end) {
      break;
    }
    const start = Math.max(claim.start, mapping.start);
    const end = Math.min(claim.end, mapping.end);
    const present = clip(resident, start, end);
    const bytes = present.reduce((sum, range) => sum + range.end - range.start, 0);
    const free = claim.free === null ? 0 : Math.min(bytes, freeBytes(present, claim.free.ranges));
    claimed += bytes;
    add(claim.used, bytes - free);
    if (claim.free !== null) {
      add(claim.free.part, free);
    }
  }
  add(otherwise, total - claimed);
  return scale(weights, mapping.rssBytes, otherwise);
}

/** Integers proportional to the weights that add up to `bytes`; the largest absorbs the rounding. */
function scale(
  weights: ReadonlyMap<LedgerPartName, number>,
  bytes: Bytes,
  otherwise: LedgerPartName,
): Map<LedgerPartName, Bytes> {
  const total = [...weights.values()].reduce((sum, weight) => sum + weight, 0);
  const result = new Map<LedgerPartName, Bytes>();
  let left = bytes;
  let largest: LedgerPartName = otherwise;
  let most = 0;
  for (const [part, weight] of weights) {
    const share = Math.floor((weight / total) * bytes);
    result.set(part, share);
    left -= share;
    if (weight > most) {
      most = weight;
      largest = part;
    }
  }
  return result.set(largest, (result.get(largest) ?? 0) + left);
}

function freeBytes(present: readonly AddressRange[], ranges: FreeRanges): number {
  let bytes = 0;
  for (const { start, end } of present) {
    bytes += overlap(ranges, start, end);
  }
  return bytes;
}

/** Free bytes of [start, end). */
function overlap({ starts, ends, shares }: FreeRanges, start: Address, end: Address): number {
  let bytes = 0;
  for (let index = firstEndAbove(ends, start); index < starts.length; index++) {
    if (float64At(starts, index) >= end) {
      break;
    }
    const common =
      Math.min(end, float64At(ends, index)) - Math.max(start, float64At(starts, index));
    bytes += common * (shares === null ? 1 : float64At(shares, index));
  }
  return bytes;
}

/**
 * Resident whole pages inside the ranges, which trimming can release. The first 48 bytes of a chunk are needed
 * for the free lists.
 */
export function wholePages(
  starts: Float64Array,
  ends: Float64Array,
  residentOf: (start: Address, end: Address) => readonly AddressRange[],
): Bytes {
  const PAGE = 4096;
  const HEADER = 48;
  let bytes = 0;
  for (let index = 0; index < starts.length; index++) {
    const start = Math.ceil((float64At(starts, index) + HEADER) / PAGE) * PAGE;
    const end = Math.floor(float64At(ends, index) / PAGE) * PAGE;
    if (end > start) {
      for (const range of residentOf(start, end)) {
        bytes += range.end - range.start;
      }
    }
  }
  return bytes;
}

function clip(ranges: readonly AddressRange[], start: Address, end: Address): AddressRange[] {
  const inside: AddressRange[] = [];
  for (let index = firstBehind(ranges, start); index < ranges.length; index++) {
    const range = itemAt(ranges, index);
    if (range.start >= end) {
      break;
    }
    inside.push({ start: Math.max(start, range.start), end: Math.min(end, range.end) });
  }
  return inside;
}

/** First of ascending ranges that ends after the address. */
function firstBehind(ranges: readonly AddressRange[], address: Address): number {
  let low = 0;
  let high = ranges.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (itemAt(ranges, middle).end <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

function firstEndAbove(ends: Float64Array, address: Address): number {
  let low = 0;
  let high = ends.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (float64At(ends, middle) <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}
