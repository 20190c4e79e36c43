/** Types that grew between the first and the last census. */

import type { Bytes } from "../../model/base/units.js";
import type { CensusJson } from "../../model/documents/diagnosis_document.js";
import type { CensusEvidence } from "./evidence.js";

const MOST_TYPES = 12;
const SMALLEST_ADDED_BYTES: Bytes = 50_000;

/** Largest growth in bytes first; null if there are fewer than two censuses, or nothing grew. */
export function moreObjects(census: CensusEvidence | undefined): CensusJson | null {
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
    .sort((a, b) => b.addedBytes - a.addedBytes)
    .slice(0, MOST_TYPES);
  return types.length === 0
    ? null
    : { pid: census.pid, fromMs, toMs, taken: census.timesMs.length, types };
}
