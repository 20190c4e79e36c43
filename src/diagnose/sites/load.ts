/**
 * Sites whose live bytes rise only because the program has more work: they allocate more than before, and free it as
 * quickly.
 *
 *   bytes        allocated a second  ▁▂▃▄▅▆▇        of this site, and of the others
 *                live                ▁▂▃▄▅▆▇        in proportion: each object lives as long as before
 *
 * In a backlog and in containers that grow, bytes live longer and longer. An array that is replaced by a longer one at
 * each step allocates in proportion to its bytes, but its blocks become larger. A structure that is copied as it grows is
 * the only site that allocates more.
 */
import type { Bytes, TimeMs } from "../../model/base/units.js";
import { type SiteHistories, type SiteHistory, valueAt } from "./site_history.js";

/** Share of the window over which an allocation rate is measured. */
const RECENT_SHARE = 0.2;
/** Largest ratio of the mean lifetime and of the mean object at the end to those at the start. */
const SAME = 1.5;
/** The other sites' allocation rate must have risen by this share of the rise of the site's own. */
const LEAST_OF_OWN = 0.5;
const LEAST_RISE = 1.1;
/** Other sites must have allocated this share of the site's bytes to indicate the load. */
const LEAST_OTHER_WORK = 0.1;

/** `confirmed`: other sites allocate more, too. `possible`: they allocate too little to show it. */
export type LoadSign = "confirmed" | "possible" | "none";

/** Whether the site's bytes follow the load with certainty, after the first third of the window. */
export function servesLoad(site: SiteHistory, histories: SiteHistories, startMs: TimeMs): boolean {
  const endMs = histories.snapshotTimes.at(-1) ?? startMs;
  const fromMs = startMs + (endMs - startMs) / 3;
  return loadSign(site, histories, { startMs, fromMs, toMs: endMs }) === "confirmed";
}

/**
 * How many times the program's work, measured by what it allocates, certainly rose after the first third of the window: the
 * lower end of a 95 % interval, because a program that allocates little has few samples. `periodBytes`: a sample is taken
 * about every so many bytes; 0: all bytes are counted.
 */
export function riseOfWork(histories: SiteHistories, startMs: TimeMs, periodBytes: Bytes): number {
  const endMs = histories.snapshotTimes.at(-1) ?? startMs;
  const lengthMs = endMs - startMs;
  const allocatedBefore = (timeMs: TimeMs) =>
    valueAt(histories, histories.allocatedBytes, timeMs) -
    valueAt(histories, histories.allocatedBytes, timeMs - lengthMs * RECENT_SHARE);
  const before = allocatedBefore(startMs + lengthMs / 3);
  const after = allocatedBefore(endMs);
  if (before <= 0 || after <= 0) {
    return 1;
  }
  // Numbers of samples are about Poisson's, so the variance of the ratio's logarithm is the sum of their inverses.
  const error = Math.sqrt(periodBytes / before + periodBytes / after);
  return (after / before) * Math.exp(-1.96 * error);
}

/** Compares the rates before two times, each over a part of the window that begins at `startMs`. */
export function loadSign(
  site: SiteHistory,
  histories: SiteHistories,
  times: { readonly startMs: TimeMs; readonly fromMs: TimeMs; readonly toMs: TimeMs },
): LoadSign {
  const { startMs, fromMs, toMs } = times;
  const recentMs = ((histories.snapshotTimes.at(-1) ?? startMs) - startMs) * RECENT_SHARE;
  const at = (values: Float64Array, timeMs: TimeMs) => valueAt(histories, values, timeMs);
  const both = (values: Float64Array, timeMs: TimeMs) =>
    at(values, timeMs) + at(values, timeMs - recentMs);
  const risen = (values: Float64Array, timeMs: TimeMs) =>
    at(values, timeMs) - at(values, timeMs - recentMs);
  const { liveBytes, allocatedBytes, objects } = site;
  const ratio = (figure: (timeMs: TimeMs) => number) => figure(toMs) / figure(fromMs);
  const live = ratio((timeMs) => both(liveBytes, timeMs));
  const own = ratio((timeMs) => risen(allocatedBytes, timeMs));
  const size = live / ratio((timeMs) => both(objects, timeMs));
  if (!(live / own <= SAME && size <= SAME && own >= LEAST_RISE)) {
    return "none";
  }
  const others = histories.allocatedBytes.map(
    (bytes, snapshot) => bytes - (allocatedBytes[snapshot] as number),
  );
  if (risen(others, fromMs) < LEAST_OTHER_WORK * risen(allocatedBytes, fromMs)) {
    return "possible";
  }
  const work = ratio((timeMs) => risen(others, timeMs));
  return work >= 1 + LEAST_OF_OWN * (own - 1) ? "confirmed" : "none";
}
