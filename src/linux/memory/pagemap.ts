/**
 * Which pages of a process are in memory. /proc/PID/pagemap has one u64 per page (Linux,
 * Documentation/admin-guide/mm/pagemap.rst): bit 63 present, bit 62 swapped out, bit 61 file or shared.
 */

import { readSync } from "node:fs";
import { uint8At } from "../../model/base/columns.js";
import type { Address } from "../../model/base/units.js";
import type { AddressRange } from "./memory.js";

const PAGE_BYTES = 4096;
const ENTRY_BYTES = 8;
const ENTRIES_AT_ONCE = 8192;
/** Bit 63 in the last of an entry's eight bytes. */
const PRESENT = 0x80;

const entries = new Uint8Array(ENTRIES_AT_ONCE * ENTRY_BYTES);

/**
 * Appends the present parts of [start, end) to `found`, merging with its last range. A page that was swapped
 * out is not present, because reading it would swap it in.
 * @param pagemap an open /proc/PID/pagemap; it ends early if the process has ended
 */
export function appendPresent(
  pagemap: number,
  start: Address,
  end: Address,
  found: { start: Address; end: Address }[],
): void {
  const lastPage = Math.ceil(end / PAGE_BYTES);
  for (let page = Math.floor(start / PAGE_BYTES); page < lastPage; ) {
    const wanted = Math.min(ENTRIES_AT_ONCE, lastPage - page);
    const got = readSync(pagemap, entries, 0, wanted * ENTRY_BYTES, page * ENTRY_BYTES);
    const count = Math.floor(got / ENTRY_BYTES);
    if (count === 0) {
      return;
    }
    for (let index = 0; index < count; index++) {
      if ((uint8At(entries, index * ENTRY_BYTES + 7) & PRESENT) !== 0) {
        appendPage((page + index) * PAGE_BYTES, found);
      }
    }
    page += count;
  }
}

function appendPage(address: Address, found: { start: Address; end: Address }[]): void {
  const last = found[found.length - 1];
  if (last !== undefined && last.end === address) {
    last.end = address + PAGE_BYTES;
  } else {
    found.push({ start: address, end: address + PAGE_BYTES });
  }
}

/** Clips `ranges` to [start, end), in place. */
export function clip(
  ranges: { start: Address; end: Address }[],
  start: Address,
  end: Address,
): AddressRange[] {
  const first = ranges[0];
  const last = ranges[ranges.length - 1];
  if (first !== undefined && last !== undefined) {
    first.start = Math.max(first.start, start);
    last.end = Math.min(last.end, end);
  }
  return ranges;
}
