/** Sites grouped for the tables: one row per source location and allocator. */
import { addAt, float32At, float64At, int32At, uint8At, uint32At } from "../base/columns.js";
import type { StackId } from "../base/units.js";
import {
  FrameKind,
  LIFETIME_BUCKETS,
  type ProfileSnapshot,
  type ProfileTables,
} from "./profile.js";

export interface SiteGroup {
  readonly key: number;
  /** The innermost Python frame of the stacks, or the innermost frame; or the one that the caller chose. */
  readonly frame: number;
  readonly domain: number;
  liveBytes: number;
  liveObjects: number;
  liveVariance: number;
  liveSamples: number;
  peakBytes: number;
  allocatedBytes: number;
  allocatedObjects: number;
  allocatedVariance: number;
  /** Freed objects, by lifetime bucket. */
  readonly lifetimes: Float64Array;
  /** Live bytes by the snapshot's allocation-time cohorts. */
  readonly cohortBytes: Float64Array;
}

/** Represents the frame of a site with an empty stack. */
export const NO_FRAME = -1;
const DOMAINS = 3;

/** `frameOf`: the frame by which a stack is grouped, or NO_FRAME. */
export function groupSites(
  tables: ProfileTables,
  snapshot: ProfileSnapshot,
  rows: Uint32Array,
  frameOf: (stack: StackId) => number = placedFrame(tables),
): SiteGroup[] {
  const { sites } = snapshot;
  const cohorts = snapshot.cohorts.length;
  const groups = new Map<number, SiteGroup>();
  for (const row of rows) {
    const frame = frameOf(uint32At(sites.stack, row));
    const domain = uint8At(sites.domain, row);
    const key = (frame + 1) * DOMAINS + domain;
    let group = groups.get(key);
    if (!group) {
      group = emptyGroup(key, frame, domain, cohorts);
      groups.set(key, group);
    }
    group.liveBytes += float64At(sites.liveBytes, row);
    group.liveObjects += float64At(sites.liveObjects, row);
    group.liveVariance += float64At(sites.liveVariance, row);
    group.liveSamples += uint32At(sites.liveSamples, row);
    group.peakBytes += float64At(sites.peakBytes, row);
    group.allocatedBytes += float64At(sites.allocatedBytes, row);
    group.allocatedObjects += float64At(sites.allocatedObjects, row);
    group.allocatedVariance += float64At(sites.allocatedVariance, row);
    for (let i = 0; i < LIFETIME_BUCKETS; i++) {
      addAt(group.lifetimes, i, float32At(sites.lifetimes, row * LIFETIME_BUCKETS + i));
    }
    for (let i = 0; i < cohorts; i++) {
      addAt(group.cohortBytes, i, float64At(sites.cohortBytes, row * cohorts + i));
    }
  }
  return [...groups.values()];
}

function emptyGroup(key: number, frame: number, domain: number, cohorts: number): SiteGroup {
  return {
    key,
    frame,
    domain,
    liveBytes: 0,
    liveObjects: 0,
    liveVariance: 0,
    liveSamples: 0,
    peakBytes: 0,
    allocatedBytes: 0,
    allocatedObjects: 0,
    allocatedVariance: 0,
    lifetimes: new Float64Array(LIFETIME_BUCKETS),
    cohortBytes: new Float64Array(cohorts),
  };
}

/** The most informative frame of a stack. `parent[i] < i`, so one pass over the stacks is enough. */
function placedFrame({ stacks, frames }: ProfileTables): (stack: StackId) => number {
  const place = new Int32Array(stacks.length).fill(NO_FRAME);
  const isPython = new Uint8Array(stacks.length);
  for (let stack = 1; stack < stacks.length; stack++) {
    const own = frames.kind[uint32At(stacks.frame, stack)] === FrameKind.python;
    const above = uint32At(stacks.parent, stack);
    const inherits = !own && isPython[above] === 1;
    place[stack] = inherits ? int32At(place, above) : uint32At(stacks.frame, stack);
    isPython[stack] = own || inherits ? 1 : 0;
  }
  return (stack) => int32At(place, stack);
}

/** Median age of the live bytes, in ms; NaN if nothing is live. */
export function medianAge(group: SiteGroup, snapshot: ProfileSnapshot, startMs: number): number {
  const total = group.cohortBytes.reduce((sum, bytes) => sum + bytes, 0);
  if (!(total > 0)) {
    return Number.NaN;
  }
  let older = 0;
  for (const [i, bound] of snapshot.cohorts.entries()) {
    const bytes = float64At(group.cohortBytes, i);
    if (older + bytes >= total / 2) {
      const begin = snapshot.cohorts[i - 1] ?? Math.min(startMs, bound);
      const end = Math.min(bound, snapshot.timeMs);
      const within = bytes > 0 ? (total / 2 - older) / bytes : 0;
      return Math.max(snapshot.timeMs - (begin + (end - begin) * within), 0);
    }
    older += bytes;
  }
  return 0;
}

/** Median lifetime of the freed objects, in ms; NaN if none were freed. */
export function medianLifetime(group: SiteGroup): number {
  const total = group.lifetimes.reduce((sum, objects) => sum + objects, 0);
  if (!(total > 0)) {
    return Number.NaN;
  }
  let shorter = 0;
  for (let i = 0; i < LIFETIME_BUCKETS; i++) {
    const objects = float64At(group.lifetimes, i);
    if (shorter + objects >= total / 2) {
      const within = (total / 2 - shorter) / objects;
      // Buckets double in width, so interpolation is logarithmic.
      return i === 0 ? within : 2 ** (i - 1 + within);
    }
    shorter += objects;
  }
  return 2 ** (LIFETIME_BUCKETS - 1);
}
