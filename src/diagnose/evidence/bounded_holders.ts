/** Suspects whose holder carries its own bound (maxsize, maxlen) and is not past it: caches that are filling. */

import type { Bytes, TimeMs } from "../../model/base/units.js";
import type { HolderJson } from "../../model/documents/diagnosis_document.js";
import { type SiteJudgement, valueAt } from "../sites/suspects.js";
import type { Evidence, HolderEvidence } from "./evidence.js";

export interface BoundedSuspect {
  readonly suspect: SiteJudgement;
  readonly bound: number;
  readonly holder: HolderJson;
}

/** Of a site's live bytes when the holder was found: one that holds less holds some of them by chance. */
const LEAST_HELD = 0.3;
/** What a container held when it was full, and this many times that at the end: its entries themselves grow. */
const MOST_SINCE_FULL = 1.25;

/** null where the suspect's holder has no bound, or is full and grows all the same. */
export function boundedBy(
  evidence: Evidence,
  suspect: SiteJudgement,
  found: HolderEvidence | null,
): BoundedSuspect | null {
  if (!found?.bound || !found.holder) {
    return null;
  }
  const { bound, holder, foundMs } = found;
  const then = liveAt(evidence, suspect, foundMs);
  const now = liveAt(evidence, suspect, evidence.window.endMs);
  const isPast = holder.entries >= bound && now > MOST_SINCE_FULL * then;
  return holder.retainedBytes >= LEAST_HELD * then && !isPast ? { suspect, bound, holder } : null;
}

function liveAt(evidence: Evidence, { site }: SiteJudgement, timeMs: TimeMs): Bytes {
  const seen = site.type === undefined ? evidence.sites?.lookTimes : evidence.census?.timesMs;
  return valueAt({ lookTimes: seen ?? [] }, site.liveBytes, timeMs);
}
