import { LIFETIME_BUCKETS, type SiteTable } from "./profile.js";

/** Columns of {@link SiteTable} that identify a site. */
export const SITE_KEYS = ["stack", "process", "thread", "label", "domain"] as const;

/** Columns of {@link SiteTable} with one value per row; values of equal sites are added. */
export const SITE_FIGURES = [
  "liveBytes",
  "liveObjects",
  "liveVariance",
  "liveSamples",
  "allocatedBytes",
  "allocatedObjects",
  "allocatedVariance",
  "peakBytes",
  "peakObjects",
  "peakVariance",
] as const;

/** A table of `length` sites, all figures 0, to be filled by the caller. */
export function newSiteTable(length: number, cohortCount: number): SiteTable {
  return {
    length,
    stack: new Uint32Array(length),
    process: new Uint16Array(length),
    thread: new Uint32Array(length),
    label: new Uint32Array(length),
    domain: new Uint8Array(length),
    liveBytes: new Float64Array(length),
    liveObjects: new Float64Array(length),
    liveVariance: new Float64Array(length),
    liveSamples: new Uint32Array(length),
    allocatedBytes: new Float64Array(length),
    allocatedObjects: new Float64Array(length),
    allocatedVariance: new Float64Array(length),
    peakBytes: new Float64Array(length),
    peakObjects: new Float64Array(length),
    peakVariance: new Float64Array(length),
    lifetimes: new Float32Array(length * LIFETIME_BUCKETS),
    cohortBytes: new Float64Array(length * cohortCount),
  };
}

/** The given rows of `sites`, in their order. `cohortCount` is that of the snapshot of the table. */
export function pickSites(
  sites: SiteTable,
  rows: ArrayLike<number>,
  cohortCount: number,
): SiteTable {
  const picked = newSiteTable(rows.length, cohortCount);
  for (const column of [...SITE_KEYS, ...SITE_FIGURES]) {
    const from = sites[column];
    const to = picked[column];
    for (let index = 0; index < rows.length; index++) {
      to[index] = from[rows[index] ?? 0] ?? 0;
    }
  }
  for (let index = 0; index < rows.length; index++) {
    const row = rows[index] ?? 0;
    copyRow(sites.lifetimes, row, picked.lifetimes, index, LIFETIME_BUCKETS);
    copyRow(sites.cohortBytes, row, picked.cohortBytes, index, cohortCount);
  }
  return picked;
}

function copyRow<Columns extends Float32Array | Float64Array>(
  from: Columns,
  fromRow: number,
  to: Columns,
  toRow: number,
  width: number,
): void {
  to.set(from.subarray(fromRow * width, (fromRow + 1) * width), toRow * width);
}
