/** Suspects whose holder has a bound (maxsize, maxlen) that is not exceeded: caches that are filling. */

import type { Bytes, TimeMs } from "../../model/base/units.js";
import type { HolderJson } from "../../model/documents/diagnosis_document.js";
import { valueAt } from "../sites/site_history.js";
import type { SiteJudgement } from "../sites/suspects.js";
import type { Evidence, HolderEvidence } from "./evidence.js";

export interface BoundedSuspect {
  readonly suspect: SiteJudgement;
  readonly bound: number;
  readonly holder: HolderJson;
}

/** Share of a site's live bytes at the time of the lookup; a holder with less may hold some of them by coincidence. */
const LEAST_HELD = 0.3;
/** If a full container holds this many times its former bytes at the end, its entries themselves grow. */
const MOST_SINCE_FULL = 1.25;

/** A container that would hold more when it is full has no bound in practice. */
const MOST_WHEN_FULL: Bytes = 2 ** 38;

/** null if the suspect's holder has no bound that it can reach, or is full but still grows. */
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
  const whenFull = holder.entries > 0 ? (holder.retainedBytes / holder.entries) * bound : 0;
  const isPast = holder.entries >= bound && now > MOST_SINCE_FULL * then;
  const isHeld = holder.retainedBytes >= LEAST_HELD * then;
  return isHeld && !isPast && whenFull <= MOST_WHEN_FULL ? { suspect, bound, holder } : null;
}

function liveAt(evidence: Evidence, { site }: SiteJudgement, timeMs: TimeMs): Bytes {
  const seen = site.type === undefined ? evidence.sites?.snapshotTimes : evidence.census?.timesMs;
  return valueAt({ snapshotTimes: seen ?? [] }, site.liveBytes, timeMs);
}
