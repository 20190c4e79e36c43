/** Converts sites and live allocations of one snapshot to rows of the model's site table. */

import { addAt, float64At } from "../model/base/columns.js";
import type { ProcessIndex, TimeMs } from "../model/base/units.js";
import { LIFETIME_BUCKETS, type SiteTable } from "../model/profile/profile.js";
import { newSiteTable, pickSites } from "../model/profile/site_columns.js";
import { readEstimate, readUint64 } from "./bytes.js";
import { cohortOf } from "./cohorts.js";
import type { ProcessDictionary } from "./dictionary.js";
import { CONSTANTS, LIVE, SITE } from "./layout.js";
import type { SegmentSnapshot } from "./reader.js";

/** The rows of one process that have any figure. `bounds`: upper bounds of the cohorts of the run that
 * began at `startMs`. A row's cohorts add up to its live bytes. */
export function sitesOf(
  snapshot: SegmentSnapshot,
  dictionary: ProcessDictionary,
  process: ProcessIndex,
  bounds: readonly TimeMs[],
  startMs: TimeMs,
): SiteTable {
  const count = snapshot.sites.count;
  const sites = newSiteTable(count, bounds.length);
  const bytes = snapshot.sites.bytes;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const used: number[] = [];
  for (let row = 0; row < count; row++) {
    if (fillSite(sites, row, view, snapshot.header.peakNumber)) {
      const at = row * SITE.size;
      sites.stack[row] = dictionary.stack(view.getUint32(at + SITE.stack, true));
      sites.label[row] = dictionary.label(view.getUint32(at + SITE.label, true));
      sites.thread[row] = dictionary.thread(view.getUint16(at + SITE.thread, true));
      sites.process[row] = process;
      used.push(row);
    }
  }
  fillCohorts(sites, snapshot, bounds, startMs);
  return pickSites(sites, used, bounds.length);
}

/** False if the record is unused, was never complete, or has an unknown domain. */
function fillSite(sites: SiteTable, row: number, view: DataView, peakNumber: number): boolean {
  const at = row * SITE.size;
  const domain = view.getUint16(at + SITE.domain, true);
  if (domain >= CONSTANTS.TM_DOMAIN_COUNT) {
    return false;
  }
  sites.domain[row] = domain;
  sites.allocatedBytes[row] = readEstimate(view, at + SITE.allocated_bytes);
  sites.allocatedObjects[row] = readEstimate(view, at + SITE.allocated_objects);
  sites.allocatedVariance[row] = readEstimate(view, at + SITE.allocated_variance);
  const liveSamples = view.getUint32(at + SITE.live_samples, true);
  if (liveSamples > 0) {
    // Without samples, the sums contain only rounding errors.
    sites.liveSamples[row] = liveSamples;
    sites.liveBytes[row] = readEstimate(view, at + SITE.live_bytes);
    sites.liveObjects[row] = readEstimate(view, at + SITE.live_objects);
    sites.liveVariance[row] = readEstimate(view, at + SITE.live_variance);
  }
  // A site that has not changed since the peak holds what it held then.
  if (view.getUint32(at + SITE.peak_number, true) >= peakNumber) {
    sites.peakBytes[row] = readEstimate(view, at + SITE.peak_bytes);
    sites.peakObjects[row] = readEstimate(view, at + SITE.peak_objects);
    sites.peakVariance[row] = readEstimate(view, at + SITE.peak_variance);
  } else {
    sites.peakBytes[row] = float64At(sites.liveBytes, row);
    sites.peakObjects[row] = float64At(sites.liveObjects, row);
    sites.peakVariance[row] = float64At(sites.liveVariance, row);
  }
  for (let bucket = 0; bucket < LIFETIME_BUCKETS; bucket++) {
    const objects = view.getFloat32(at + SITE.lifetimes + 4 * bucket, true);
    sites.lifetimes[row * LIFETIME_BUCKETS + bucket] =
      objects > 0 && Number.isFinite(objects) ? objects : 0;
  }
  return (
    float64At(sites.allocatedBytes, row) > 0 ||
    float64At(sites.liveBytes, row) > 0 ||
    float64At(sites.peakBytes, row) > 0
  );
}

/**
 * The live table has the allocation times of each site's bytes. It was read a moment before the sites and lacks
 * torn entries, so it provides the shares, and the site's own figure provides the sum.
 */
function fillCohorts(
  sites: SiteTable,
  snapshot: SegmentSnapshot,
  bounds: readonly TimeMs[],
  startMs: TimeMs,
): void {
  const { cohortBytes, liveBytes } = sites;
  const width = bounds.length;
  const toRealtime = snapshot.header.startRealtimeMs - snapshot.header.startMonotonicMs;
  const bytes = snapshot.live.bytes;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const sums = new Float64Array(sites.length);
  for (let at = 0; at < bytes.length; at += LIVE.size) {
    const site = view.getUint32(at + LIVE.site, true);
    if (readUint64(view, at + LIVE.address) === 0 || site >= sites.length) {
      continue;
    }
    const weight = readUint64(view, at + LIVE.weight_bytes);
    const probability = -Math.expm1(-weight / view.getFloat32(at + LIVE.period_bytes, true));
    if (!(probability > 0 && probability <= 1)) {
      continue;
    }
    const estimate = readUint64(view, at + LIVE.bytes) / probability;
    const cohort = cohortOf(bounds, startMs, readUint64(view, at + LIVE.birth_ms) + toRealtime);
    addAt(cohortBytes, site * width + cohort, estimate);
    addAt(sums, site, estimate);
  }
  const recordView = new DataView(snapshot.sites.bytes.buffer, snapshot.sites.bytes.byteOffset);
  for (let row = 0; row < sites.length; row++) {
    if (float64At(sums, row) > 0) {
      const scale = float64At(liveBytes, row) / float64At(sums, row);
      for (let cohort = 0; cohort < width; cohort++) {
        const at = row * width + cohort;
        cohortBytes[at] = float64At(cohortBytes, at) * scale;
      }
    } else if (float64At(liveBytes, row) > 0) {
      const lastMs = readUint64(recordView, row * SITE.size + SITE.last_ms) + toRealtime;
      cohortBytes[row * width + cohortOf(bounds, startMs, lastMs)] = float64At(liveBytes, row);
    }
  }
}
