/** Replays allocations and frees: live bytes, bytes at the peak and allocated bytes by site. */
import type { Bytes, TimeMs } from "../../model/base/units.js";
import { tooLarge } from "../../model/errors/errors.js";
import type { ForeignFigures } from "./imported_sites.js";

/** The largest number of keys in a Map is 2^24. */
const MOST_LIVE = 16_000_000;
const MOST_MAPPINGS = 100_000;

interface Mapping {
  start: number;
  end: number;
  site: number;
}

/** Sites are numbers from 0. */
export class LiveBlocks {
  readonly #path: string;
  readonly #slots = new Map<number, number>();
  readonly #sizes: Bytes[] = [];
  readonly #sites: number[] = [];
  readonly #free: number[] = [];
  /** By start, without overlaps. */
  readonly #mappings: Mapping[] = [];
  readonly #totals: SiteTotals[] = [];
  #live: Bytes = 0;
  #peak: Bytes = 0;
  /** Counts new peaks: a site whose count is older had its present figures at the peak. */
  #peaks = 0;
  #peakMs: TimeMs = 0;
  timeMs: TimeMs = 0;

  constructor(path: string) {
    this.#path = path;
  }

  get live(): Bytes {
    return this.#live;
  }

  get peakMs(): TimeMs {
    return this.#peakMs;
  }

  allocate(address: number, size: Bytes, site: number): void {
    this.free(address); // a free that was not recorded
    if (this.#slots.size >= MOST_LIVE) {
      throw tooLarge(this.#path, `${MOST_LIVE} live blocks`);
    }
    const slot = this.#free.pop() ?? this.#sizes.length;
    this.#sizes[slot] = size;
    this.#sites[slot] = site;
    this.#slots.set(address, slot);
    this.#change(site, size, 1);
  }

  /** A block that was allocated before the recording is unknown, and ignored. */
  free(address: number): void {
    const slot = this.#slots.get(address);
    if (slot !== undefined) {
      this.#slots.delete(address);
      this.#free.push(slot);
      this.#change(this.#sites[slot] ?? 0, -(this.#sizes[slot] ?? 0), -1);
    }
  }

  map(start: number, size: Bytes, site: number): void {
    this.unmap(start, size);
    if (this.#mappings.length >= MOST_MAPPINGS) {
      throw tooLarge(this.#path, `${MOST_MAPPINGS} live mappings`);
    }
    this.#mappings.splice(this.#firstAfter(start), 0, { start, end: start + size, site });
    this.#change(site, size, 1);
  }

  /** May free parts of several mappings. */
  unmap(start: number, size: Bytes): void {
    const end = start + size;
    let at = this.#firstAfter(start);
    while (at < this.#mappings.length && (this.#mappings[at]?.start ?? end) < end) {
      const mapping = this.#mappings[at] as Mapping;
      const left = Math.max(0, start - mapping.start);
      const right = Math.max(0, mapping.end - end);
      const rest: Mapping[] = [
        ...(left > 0 ? [{ ...mapping, end: start }] : []),
        ...(right > 0 ? [{ ...mapping, start: end }] : []),
      ];
      this.#mappings.splice(at, 1, ...rest);
      this.#change(mapping.site, left + right - (mapping.end - mapping.start), rest.length - 1);
      at += rest.length;
    }
  }

  /** Figures of a site at the end; undefined if it never allocated. */
  figures(site: number): ForeignFigures | undefined {
    const totals = this.#totals[site];
    if (totals === undefined) {
      return undefined;
    }
    const isOld = totals.peaks !== this.#peaks;
    return {
      live: totals.live,
      liveObjects: totals.count,
      peak: isOld ? totals.live : totals.atPeak,
      peakObjects: isOld ? totals.count : totals.countAtPeak,
      allocated: totals.allocated,
      allocatedObjects: totals.allocations,
    };
  }

  get siteCount(): number {
    return this.#totals.length;
  }

  #change(site: number, bytes: Bytes, count: number): void {
    this.#totals[site] ??= newTotals();
    const totals = this.#totals[site];
    if (totals.peaks !== this.#peaks) {
      totals.peaks = this.#peaks;
      totals.atPeak = totals.live;
      totals.countAtPeak = totals.count;
    }
    totals.live += bytes;
    totals.count += count;
    if (bytes > 0) {
      totals.allocated += bytes;
      totals.allocations += 1;
    }
    this.#live += bytes;
    if (this.#live > this.#peak) {
      this.#peak = this.#live;
      this.#peaks += 1;
      this.#peakMs = this.timeMs;
    }
  }

  /** Row of the first mapping that ends after `start`. */
  #firstAfter(start: number): number {
    let low = 0;
    let high = this.#mappings.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#mappings[middle]?.end ?? 0) > start) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }
}

interface SiteTotals {
  live: Bytes;
  count: number;
  allocated: Bytes;
  allocations: number;
  atPeak: Bytes;
  countAtPeak: number;
  peaks: number;
}

function newTotals(): SiteTotals {
  return { live: 0, count: 0, allocated: 0, allocations: 0, atPeak: 0, countAtPeak: 0, peaks: -1 };
}
