/** How the sites of a recording changed between an earlier snapshot and the last: `tidemark live`. */

import type { Bytes, Millis } from "../../model/base/units.js";
import type { SummaryJson } from "../../model/documents/summary_document.js";
import type { Recording } from "../../recording/types.js";
import { groupKey, groupSites, type SiteGroup } from "./rows/site_groups.js";
import { summarize } from "./summary.js";

/** A site and its rates since the snapshot it is compared with. */
export interface MovingSite {
  readonly group: SiteGroup;
  readonly growthPerMinute: Bytes;
  /** Standard error of {@link growthPerMinute}: of the samples added and freed in between, not of all live bytes. */
  readonly growthErrorPerMinute: Bytes;
  readonly allocatedPerSecond: Bytes;
}

/** @internal */
export interface SiteMovement {
  readonly summary: SummaryJson;
  readonly sites: readonly MovingSite[];
  /** Time between the two compared snapshots; 0 if there is at most one. */
  readonly comparedMs: Millis;
}

/** Rates are computed over at least this time if the recording is long enough; shorter intervals are noisy. */
const LEAST_COMPARED_MS = 30_000;
const MS_PER_MINUTE = 60_000;

/** Compares the sites of the last snapshot with those of an earlier one. @internal */
export function siteMovement(recording: Recording): SiteMovement {
  const summary = summarize(recording, "end");
  const last = recording.snapshots.at(-1);
  const earlier =
    recording.snapshots.findLast(
      ({ timeMs }) => timeMs <= (last?.timeMs ?? 0) - LEAST_COMPARED_MS,
    ) ?? recording.snapshots[0];
  const comparedMs = last && earlier ? last.timeMs - earlier.timeMs : 0;
  const past = new Map<string, SiteGroup>();
  if (earlier !== undefined && comparedMs > 0) {
    for (const group of groupSites(summarize(recording, earlier.timeMs).sites)) {
      past.set(groupKey(group), group);
    }
  }
  const per = (change: Bytes, unitMs: Millis) =>
    comparedMs > 0 ? (change / comparedMs) * unitMs : 0;
  const sites = groupSites(summary.sites).map((group) => {
    const then = past.get(groupKey(group));
    return {
      group,
      growthPerMinute: per(group.live.bytes - (then?.live.bytes ?? 0), MS_PER_MINUTE),
      growthErrorPerMinute: per(changeError(group, then), MS_PER_MINUTE),
      allocatedPerSecond: per(group.allocated.bytes - (then?.allocated.bytes ?? 0), 1000),
    };
  });
  return { summary, sites, comparedMs };
}

/**
 * Standard error of the change of a site's live bytes. Samples that are live at both snapshots cancel out, so
 * only added and freed samples are uncertain.
 */
function changeError(now: SiteGroup, then: SiteGroup | undefined): Bytes {
  const [live, before] = [now.live.bytes, then?.live.bytes ?? 0];
  const added = Math.min(live, Math.max(0, now.allocated.bytes - (then?.allocated.bytes ?? 0)));
  const freed = Math.min(before, Math.max(0, added - (live - before)));
  const variance = now.live.standardErrorBytes ** 2;
  const perByte = live > 0 ? variance / live : (then?.live.standardErrorBytes ?? 0) ** 2 / before;
  return Math.sqrt((Number.isFinite(perByte) ? perByte : 0) * (added + freed));
}
