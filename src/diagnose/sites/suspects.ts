/**
 * Decides which sites keep growing. One snapshot has ages: how much of the memory allocated in each part of the
 * window is still live. Earlier snapshots show whether live bytes grew. A filling cache also has survivors of
 * every age, so ages alone never prove a leak: live bytes must still rise at the end. Nor do they exclude one:
 * backlogs and reallocated containers have no old survivors (accumulation.ts).
 */
import type { Bytes, Millis, Pid, TimeMs } from "../../model/base/units.js";
import { assessGrowth } from "../series/growth.js";
import { median, theilSen } from "../series/trend.js";
import { accumulationOf, type Backlog } from "./accumulation.js";
import { doublingOf } from "./doubling.js";
import { servesLoad } from "./load.js";
import { type SiteHistories, type SiteHistory, valueAt } from "./site_history.js";
import { swellingOf } from "./swelling.js";

/** `keeps`: survivors of every age, still rising. `accumulates`: live bytes rise throughout, survivors are young.
 * `fills`: rose, and has stopped or slows down. `churns`: allocated memory is freed. `hints`: it may keep
 * memory, but in too few samples to be certain. `swells`: a few large blocks, reallocated and larger each time.
 * `doubles`: each so much larger that it happens rarely. `small`: too little to decide. */
export type SiteCourse =
  | "keeps"
  | "accumulates"
  | "fills"
  | "churns"
  | "hints"
  | "swells"
  | "doubles"
  | "small";

/** Whether the site certainly keeps what it allocates. */
export function keeps(course: SiteCourse): boolean {
  return course === "keeps" || course === "accumulates";
}

export interface SiteJudgement {
  readonly site: SiteHistory;
  readonly course: SiteCourse;
  /** Live bytes allocated after the first third of the window; for a site that swells or doubles, their rise. */
  readonly keptBytes: Bytes;
  /** Bytes per ms. */
  readonly slope: number;
  /** For a site that accumulates: its items wait for a slower consumer. */
  readonly backlog?: Backlog;
  /** Of memory that a process made and its children turn private: the rate in each child, in bytes per ms. */
  readonly turnsPrivateIn?: readonly { readonly pid: Pid; readonly slope: number }[];
}

/** Fewest kept bytes of a site that count. */
export const SMALLEST_KEPT_BYTES = 1_000_000;
export const FEWEST_SAMPLES = 10;
/** Fewest samples that show a course on their own. */
const SURE_SAMPLES = 30;
/** Fewest samples that are a hint while RSS grows. */
const FEWEST_HINTS = 3;
const QUARTERS = 4;
/** Least survivors of each quarter, as a share of the mean quarter. */
const LEAST_QUARTER = 0.2;
/** Live bytes must have grown by this share of the kept bytes. */
const LEAST_GROWTH_OF_KEPT = 0.4;
const LEAST_LAST_SLOPE = 0.25;
/** Multiple of the median quarter above which a quarter is more than new allocations. */
const STANDS_OUT = 3;
/** If the rate falls below this share from one third of the window to the next, twice, the site is a filling cache. */
const FALLING = 0.6;
/** With fewer snapshots after the first third, on a busy machine, the first and the last decide. */
const FEWEST_SNAPSHOTS = 4;

/** The part of a window whose live allocations are `keptBytes`: what is left after its first third. */
export function keptSpanMs(windowMs: Millis): Millis {
  return (windowMs * 2) / 3;
}

export function judgeSites(histories: SiteHistories, startMs: TimeMs): SiteJudgement[] {
  return histories.sites
    .map((site) => judgeSite(site, histories, startMs))
    .sort((a, b) => b.keptBytes - a.keptBytes);
}

function judgeSite(site: SiteHistory, histories: SiteHistories, startMs: TimeMs): SiteJudgement {
  const judgement = judgeByAge(site, histories, startMs);
  const accumulation = accumulationOf(site, histories, startMs);
  // Items that wait for nearly as long as the window was watched survive as what is kept does, but only the oldest leave.
  if (judgement.course === "keeps" && !accumulation?.backlog) {
    // A container that is reallocated as it grows has fewer old survivors than kept bytes.
    return accumulation !== null && accumulation.slope > judgement.slope
      ? { ...judgement, slope: accumulation.slope, keptBytes: accumulation.keptBytes }
      : judgement;
  }
  if (accumulation !== null) {
    const { backlog, ...figures } = accumulation;
    return { ...judgement, course: "accumulates", ...figures, ...(backlog ? { backlog } : {}) };
  }
  const swelling = swellingOf(site, histories, startMs);
  if (swelling) {
    return { ...judgement, course: "swells", ...swelling };
  }
  const doubling = doublingOf(site, histories);
  return doubling ? { ...judgement, course: "doubles", ...doubling } : judgement;
}

function judgeByAge(site: SiteHistory, histories: SiteHistories, startMs: TimeMs): SiteJudgement {
  const endMs = histories.snapshotTimes.at(-1) ?? startMs;
  const settledMs = startMs + (endMs - startMs) / 3;
  const kept = Array.from({ length: QUARTERS }, (_, quarter) => {
    const width = (endMs - settledMs) / QUARTERS;
    const from = settledMs + quarter * width;
    return bornBetween(site, histories, startMs, from, from + width);
  });
  const keptBytes = kept.reduce((sum, bytes) => sum + bytes, 0);
  const live = site.liveBytes.at(-1) ?? 0;
  const keptSamples = live > 0 ? (site.liveSamples * keptBytes) / live : 0;
  const span = endMs - settledMs;
  const judgement = { site, keptBytes, slope: span > 0 ? keptBytes / span : 0 };
  if (keptBytes < SMALLEST_KEPT_BYTES || keptSamples < FEWEST_HINTS) {
    return { ...judgement, course: "small" };
  }
  const hints = keptSamples < SURE_SAMPLES && isHint(site, histories, settledMs, keptBytes);
  const course =
    keptSamples < FEWEST_SAMPLES ? "small" : courseOf(site, histories, startMs, settledMs, kept);
  // With so few samples, parts of the window may be empty or decreasing by chance.
  return { ...judgement, course: hints && course !== "keeps" ? "hints" : course };
}

/** Uses the survivors of each quarter since the first third. */
function courseOf(
  site: SiteHistory,
  histories: SiteHistories,
  startMs: TimeMs,
  settledMs: TimeMs,
  kept: readonly Bytes[],
): SiteCourse {
  if (ratesFall(site, histories, startMs)) {
    return "fills";
  }
  // A rising load holds more objects, too.
  const countRises =
    assessGrowth({ times: histories.snapshotTimes, values: Array.from(site.objects) }).shape ===
      "growing" && !servesLoad(site, histories, startMs);
  const births = countRises ? withoutTables(kept) : kept;
  const born = births.reduce((sum, bytes) => sum + bytes, 0);
  const mean = born / QUARTERS;
  // The youngest quarter also contains temporary objects, so the others must suffice without it.
  const older = births.slice(0, -1).reduce((sum, bytes) => sum + bytes, 0) / (QUARTERS - 1);
  const rises = risesStill(site, histories, settledMs, born, countRises);
  if (
    older >= LEAST_QUARTER * mean &&
    births.slice(0, -1).every((b) => b >= LEAST_QUARTER * older)
  ) {
    return rises && (births.at(-1) ?? 0) >= LEAST_QUARTER * older ? "keeps" : "fills";
  }
  return older >= LEAST_QUARTER * mean ? "fills" : "churns";
}

/**
 * The table of a growing dict or list is replaced by a larger one from time to time, so it is young whatever
 * the age of its contents. If the number of live objects rises, a quarter that stands out this much is such a
 * table and counts like the others.
 */
function withoutTables(quarters: readonly Bytes[]): Bytes[] {
  const usual = median(quarters);
  return quarters.map((bytes) => (bytes > STANDS_OUT * usual ? usual : bytes));
}

/** Whether a site with few samples seems to keep what it allocates. */
export function mayKeep(
  { site, keptBytes }: SiteJudgement,
  histories: SiteHistories,
  startMs: TimeMs,
): boolean {
  const endMs = histories.snapshotTimes.at(-1) ?? startMs;
  return isHint(site, histories, startMs + (endMs - startMs) / 3, keptBytes);
}

/** Share of the kept bytes allocated in the window's last third; with more it is not a plateau yet. */
const MOST_AT_END = 0.5;
/** Share of the earlier live bytes that is left; less is left if a table was replaced by a larger one. */
const LEAST_LEFT = 0.5;

/** Whether a site that does not grow evenly has grown at the end, in addition to its earlier memory. */
export function roseAtEnd(
  { site, keptBytes }: SiteJudgement,
  histories: SiteHistories,
  startMs: TimeMs,
): boolean {
  const endMs = histories.snapshotTimes.at(-1) ?? startMs;
  const lateMs = startMs + ((endMs - startMs) * 2) / 3;
  const late = valueAt(histories, site.liveBytes, lateMs);
  const left = bornBetween(site, histories, startMs, startMs - 1, lateMs);
  return (site.liveBytes.at(-1) ?? 0) - late > MOST_AT_END * keptBytes && left >= LEAST_LEFT * late;
}

/** Largest share of the rise after the first third of the window that is in the last third; half of even growth is. */
const MOST_LATE = 0.25;

/** What is replaced in a full cache moves the estimate by so many standard errors. */
const REPLACED_ERRORS = 2;

/** Whether a site that fills is full: its live bytes hardly rise in the last third of the window. */
export function isFull(
  { site, course }: SiteJudgement,
  histories: SiteHistories,
  startMs: TimeMs,
): boolean {
  const endMs = histories.snapshotTimes.at(-1) ?? startMs;
  const [settled, late, last] = [1 / 3, 2 / 3, 1].map((share) =>
    valueAt(histories, site.liveBytes, startMs + (endMs - startMs) * share),
  ) as [number, number, number];
  const noise = REPLACED_ERRORS * site.standardErrorBytes;
  return course === "fills" && last - late <= Math.max(MOST_LATE * (last - settled), noise);
}

/**
 * For few samples: allocated in different parts of the window, not only in the last (which may be temporary),
 * and none was ever freed.
 */
function isHint(
  site: SiteHistory,
  { cohorts, snapshotTimes }: SiteHistories,
  settledMs: TimeMs,
  keptBytes: Bytes,
): boolean {
  const born = cohorts.filter(
    (bound, cohort) => bound > settledMs && (site.cohortBytes[cohort] as number) > 0,
  );
  const middleMs = (settledMs + (snapshotTimes.at(-1) ?? settledMs)) / 2;
  const from = snapshotTimes.findIndex((time) => time >= settledMs);
  const rise = (site.liveBytes.at(-1) ?? 0) - (site.liveBytes[from] ?? 0);
  let fall = 0;
  for (let snapshot = from + 1; snapshot < snapshotTimes.length; snapshot++) {
    fall = Math.max(
      fall,
      (site.liveBytes[snapshot - 1] as number) - (site.liveBytes[snapshot] as number),
    );
  }
  const isSpread = born.length >= 3 && (born[0] as number) <= middleMs;
  return isSpread && rise >= keptBytes / 2 && fall <= rise / 4;
}

/** From one third of the window to the next; if other sites allocate less as well, the load explains the fall. */
const LOAD_FALLS = 0.75;
/** Other sites must have allocated this share of the site's bytes to indicate the load. */
const LEAST_OTHER_WORK = 0.1;

/** Survivors by allocation time: fewer and fewer are kept while the program keeps working, as in a filling cache. */
function ratesFall(site: SiteHistory, histories: SiteHistories, startMs: TimeMs): boolean {
  const endMs = histories.snapshotTimes.at(-1) ?? startMs;
  const bounds = [0, 1, 2, 3].map((third) => startMs + ((endMs - startMs) * third) / 3);
  const thirds = [0, 1, 2].map((third) => [bounds[third], bounds[third + 1]] as [number, number]);
  const [r0, r1, r2] = thirds.map(([from, to]) =>
    bornBetween(site, histories, startMs, from, to),
  ) as [number, number, number];
  if (r1 >= FALLING * r0 || r2 >= FALLING * r1) {
    return false;
  }
  const others = histories.allocatedBytes.map(
    (bytes, snapshot) => bytes - (site.allocatedBytes[snapshot] as number),
  );
  const [, w1, w2] = thirds.map(
    ([from, to]) => valueAt(histories, others, to) - valueAt(histories, others, from),
  ) as [number, number, number];
  const tells = w1 + w2 > LEAST_OTHER_WORK * (site.allocatedBytes.at(-1) ?? 0);
  return !(tells && w2 < LOAD_FALLS * w1);
}

/** Live bytes allocated between two times; a slice across a bound counts in part. */
function bornBetween(
  site: SiteHistory,
  { cohorts }: SiteHistories,
  startMs: TimeMs,
  fromMs: TimeMs,
  toMs: TimeMs,
): Bytes {
  let sum = 0;
  let lower = Math.min(startMs, (cohorts[0] ?? startMs) - 1);
  cohorts.forEach((upper, cohort) => {
    // Everything in the last slice was allocated before the last snapshot, however wide the slice.
    const end =
      cohort === cohorts.length - 1 ? Math.max(lower + 1, Math.min(upper, toMs + 1)) : upper;
    const share = (Math.min(end, toMs) - Math.max(lower, fromMs)) / (end - lower);
    sum += Math.max(0, Math.min(1, share)) * (site.cohortBytes[cohort] as number);
    lower = upper;
  });
  return sum;
}

/** Live bytes at the snapshots grew by about the kept bytes, until the end. */
function risesStill(
  site: SiteHistory,
  { snapshotTimes }: SiteHistories,
  settledMs: TimeMs,
  keptBytes: Bytes,
  countRises: boolean,
): boolean {
  const from = snapshotTimes.findIndex((time) => time >= settledMs);
  const times = snapshotTimes.slice(from);
  const live = Array.from(site.liveBytes.slice(from));
  if (from < 0 || times.length < 2) {
    return true;
  }
  const span = (times.at(-1) as number) - (times[0] as number);
  const share = span / Math.max(1, (times.at(-1) as number) - settledMs);
  const expected = LEAST_GROWTH_OF_KEPT * keptBytes * share;
  if (times.length < FEWEST_SNAPSHOTS) {
    return (live.at(-1) as number) - (live[0] as number) >= expected;
  }
  const { slope } = theilSen(times, live);
  const late = times.findIndex((time) => time >= (times[0] as number) + (span * 2) / 3);
  const lateFrom = Math.min(late, times.length - 3);
  const lastSlope = theilSen(times.slice(lateFrom), live.slice(lateFrom)).slope;
  return (
    slope * span >= expected &&
    lastSlope >= LEAST_LAST_SLOPE * slope &&
    (countRises || assessGrowth({ times, values: live }).shape !== "stepped")
  );
}

/** Live bytes older than several ages, in equal steps over the window; youngest age first. */
export function agesOf(
  site: SiteHistory,
  histories: SiteHistories,
  startMs: TimeMs,
): { olderThanMs: Millis; bytes: Bytes }[] {
  const endMs = histories.snapshotTimes.at(-1) ?? startMs;
  const steps = 8;
  return Array.from({ length: steps }, (_, step) => {
    const olderThanMs = Math.round(((endMs - startMs) * step) / steps);
    return {
      olderThanMs,
      bytes: Math.round(bornBetween(site, histories, startMs, startMs - 1, endMs - olderThanMs)),
    };
  });
}
