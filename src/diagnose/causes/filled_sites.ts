/** Sites that grew during the window and no longer do, or more and more slowly: caches, and data that is loaded at the start. */
import type { Observations } from "../evidence/observations.js";
import { type SiteHistory, valueAt } from "../sites/site_history.js";
import { isFull, roseAtEnd, type SiteJudgement } from "../sites/suspects.js";

export interface FilledSite {
  readonly judgement: SiteJudgement;
  /** Whether it no longer grows; otherwise it grows more and more slowly. */
  readonly full: boolean;
  /** Whether it has freed and allocated again since it filled, as a cache that evicts does; data that is loaded once does not. */
  readonly replaces: boolean;
  /** Growth of its live bytes since the first third of the window, in bytes per ms. */
  readonly slope: number;
}

/** Those that kept most since the first third of the window come first; imports are left out. */
export function filledSites({
  sites,
  evidence,
}: Pick<Observations, "sites" | "evidence">): FilledSite[] {
  const { sites: histories, window } = evidence;
  if (!histories) {
    return [];
  }
  const { startMs } = window;
  const endMs = histories.snapshotTimes.at(-1) ?? startMs;
  const settledMs = startMs + (endMs - startMs) / 3;
  const lateMs = endMs - (endMs - startMs) / 3;
  return sites
    .filter(
      (site) =>
        site.course === "fills" &&
        !site.site.imports && // modules are loaded once, so this is not a cache
        !fellBack(site.site) && // a cache keeps what it holds
        !roseAtEnd(site, histories, startMs),
    )
    .map((judgement) => {
      const { liveBytes } = judgement.site;
      const rise = (liveBytes.at(-1) ?? 0) - valueAt(histories, liveBytes, settledMs);
      return {
        judgement,
        full: isFull(judgement, histories, startMs),
        replaces: replaces(
          judgement.site,
          valueAt(histories, judgement.site.allocatedBytes, lateMs),
        ),
        slope: endMs > settledMs ? Math.max(0, rise / (endMs - settledMs)) : 0,
      };
    });
}

/** Share of a site's highest live bytes, beyond the sampling error, that it freed again. */
const FREED_SHARE = 0.25;
const STANDARD_ERRORS = 4;

/** What a site must allocate in the last third of the window, as a share of what it keeps, to replace that. */
const REPLACED_SHARE = 0.02;

function replaces(
  { liveBytes, allocatedBytes, standardErrorBytes }: SiteHistory,
  allocatedBefore: number,
): boolean {
  const allocated = (allocatedBytes.at(-1) ?? 0) - allocatedBefore;
  return allocated > Math.max(REPLACED_SHARE * (liveBytes.at(-1) ?? 0), standardErrorBytes);
}

/** Whether the site freed a large part of what it kept, at any time: a queue, a batch or a buffer, but not a cache. */
function fellBack({ liveBytes, standardErrorBytes }: SiteHistory): boolean {
  let high = 0;
  return liveBytes.some((bytes) => {
    high = Math.max(high, bytes);
    return high - bytes > Math.max(FREED_SHARE * high, STANDARD_ERRORS * standardErrorBytes);
  });
}
