/** Types that grew between the first and the last census. */

import type { Bytes } from "../../model/base/units.js";
import type { CensusJson } from "../../model/documents/diagnosis_document.js";
import type { Evidence } from "./evidence.js";

const MOST_TYPES = 12;
const SMALLEST_ADDED_BYTES: Bytes = 50_000;

/**
 * Growth by a few objects of at least this size each may be a copy that existed only during the last census, or a size that
 * was read while it changed. The memory of Python's own types is sampled, so a site shows it if it is kept.
 */
const LARGE_OBJECT_BYTES: Bytes = 1_000_000;
/** Share of such growth by which the live bytes of a site must have grown. */
const LEAST_OF_SITE = 0.5;

/** Largest growth in bytes first; null if there are fewer than two censuses, or nothing grew. */
export function moreObjects({
  census,
  sites,
}: Pick<Evidence, "census" | "sites">): CensusJson | null {
  const [fromMs, toMs] = [census?.timesMs[0], census?.timesMs.at(-1)];
  if (!census || fromMs === undefined || toMs === undefined || fromMs === toMs) {
    return null;
  }
  const types = census.types
    .map(({ type, bytes, objects }) => {
      const now = { objects: objects.at(-1) ?? 0, bytes: Math.round(bytes.at(-1) ?? 0) };
      return {
        type,
        ...now,
        addedObjects: now.objects - (objects[0] ?? 0),
        addedBytes: now.bytes - Math.round(bytes[0] ?? 0),
      };
    })
    .filter(({ addedBytes }) => addedBytes >= SMALLEST_ADDED_BYTES)
    .filter(
      ({ type, addedBytes, addedObjects }) =>
        sites === undefined ||
        type.includes(".") ||
        addedBytes < LARGE_OBJECT_BYTES * Math.max(1, addedObjects) ||
        sites.sites.some(({ liveBytes }) => gainOf(liveBytes) >= LEAST_OF_SITE * addedBytes),
    )
    .sort((a, b) => b.addedBytes - a.addedBytes)
    .slice(0, MOST_TYPES);
  return types.length === 0
    ? null
    : { pid: census.pid, fromMs, toMs, taken: census.timesMs.length, types };
}

function gainOf(liveBytes: Float64Array): Bytes {
  return (liveBytes.at(-1) ?? 0) - (liveBytes[0] ?? 0);
}
