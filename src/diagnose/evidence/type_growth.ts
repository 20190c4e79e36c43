/**
 * Types that keep growing according to censuses, which replace allocation sites if no agent runs. A census
 * counts every object, so a rise is not a sampling error, but it has no ages. So the rise must occur in every
 * part of the window, never be reversed, and continue at the end: a filling cache slows down, loading data is
 * one step, a batch is freed.
 */

import type { Bytes, Millis, Pid, TimeMs } from "../../model/base/units.js";
import { typeKey } from "../../model/profile/lookup_sites.js";
import { theilSen } from "../series/trend.js";
import type { SiteHistory } from "../sites/site_history.js";
import type { SiteJudgement } from "../sites/suspects.js";
import type { CensusEvidence, TypeCourse } from "./evidence.js";

/** The same threshold as for a site. */
const SMALLEST_RISE_BYTES = 1_000_000;
/**
 * Least censuses after the first third. Fewer can only show which types grow if RSS grows; then two suffice,
 * even if one is older.
 */
const FEWEST_CENSUSES = 5;
const FEWEST_WITH_GROWTH = 2;
/** Share of the rise that one step may have. */
const LARGEST_STEP = 0.6;
/** Least ratio of the rise in the second half of the censuses to that in the first; less is a filling cache. */
const FALLING = 0.6;

/** Fastest growing first. `rssGrows`: whether RSS grows by its own criteria. */
export function growingTypes(
  { pid, timesMs, types }: CensusEvidence,
  startMs: TimeMs,
  endMs: TimeMs,
  rssGrows: boolean,
): SiteJudgement[] {
  const settledMs = startMs + (endMs - startMs) / 3;
  const settled = timesMs.filter((time) => time >= settledMs).length;
  const from = timesMs.length - (rssGrows ? Math.max(settled, FEWEST_WITH_GROWTH) : settled);
  const times = timesMs.slice(Math.max(0, from));
  if (times.length < (rssGrows ? FEWEST_WITH_GROWTH : FEWEST_CENSUSES)) {
    return [];
  }
  return types
    .flatMap((course) => {
      const bytes = levelsOf(course.bytes.slice(from));
      const rise = (bytes.at(-1) as number) - (bytes[0] as number);
      return rise >= SMALLEST_RISE_BYTES && (bytes.length < FEWEST_CENSUSES || keepsRising(bytes))
        ? [judgementOf(course, pid, rise, slopeOf(times.slice(0, bytes.length), bytes))]
        : [];
    })
    .sort((a, b) => b.slope - a.slope);
}

/**
 * The minimum of this and all later censuses, which ignores batches and temporary copies. The last census has
 * no later one and is left out if there are enough.
 */
function levelsOf(bytes: readonly Bytes[]): Bytes[] {
  const levels = bytes.map((_, i) => Math.min(...bytes.slice(i)));
  return levels.length > FEWEST_CENSUSES ? levels.slice(0, -1) : levels;
}

function keepsRising(bytes: readonly Bytes[]): boolean {
  const rise = (bytes.at(-1) as number) - (bytes[0] as number);
  const steps = bytes.slice(1).map((value, i) => value - (bytes[i] as number));
  const middle = bytes[bytes.length >> 1] as number;
  const early = (middle - (bytes[0] as number)) / (bytes.length >> 1);
  const late = ((bytes.at(-1) as number) - middle) / (bytes.length - 1 - (bytes.length >> 1));
  return Math.max(...steps) <= LARGEST_STEP * rise && late >= FALLING * early;
}

/** Per ms. */
function slopeOf(times: readonly TimeMs[], bytes: readonly Bytes[]): number {
  const span: Millis = (times.at(-1) as number) - (times[0] as number);
  return times.length < 3
    ? ((bytes.at(-1) as number) - (bytes[0] as number)) / Math.max(1, span)
    : theilSen(times, bytes).slope;
}

/** All objects of a type, in the form of a site. */
function judgementOf(course: TypeCourse, pid: Pid, rise: Bytes, slope: number): SiteJudgement {
  const site: SiteHistory = {
    key: typeKey(pid, course.type),
    type: course.type,
    place: course.type,
    own: true,
    imports: false,
    pid,
    domain: "python",
    liveBytes: Float64Array.from(course.bytes),
    allocatedBytes: new Float64Array(course.bytes.length),
    objects: Float64Array.from(course.objects),
    liveObjects: course.objects.at(-1) ?? 0,
    liveSamples: course.objects.at(-1) ?? 0,
    standardErrorBytes: 0,
    cohortBytes: new Float64Array(0),
    keptStacks: [],
  };
  return { site, course: "keeps", keptBytes: rise, slope };
}
