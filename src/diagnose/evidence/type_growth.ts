/**
 * Which types keep growing, by censuses: what stands in for allocation sites where no agent runs. A census
 * counts every object, so a rise is no matter of chance; but it does not tell ages. So it must come in every
 * part of the window, never go back, and go on at the end: a cache that fills gets slower, a load is one step,
 * a batch is freed.
 */

import type { Bytes, Millis, Pid, TimeMs } from "../../model/base/units.js";
import { typeKey } from "../../model/profile/lookup_sites.js";
import { theilSen } from "../series/trend.js";
import type { SiteHistory } from "../sites/site_history.js";
import type { SiteJudgement } from "../sites/suspects.js";
import type { CensusEvidence, TypeCourse } from "./evidence.js";

/** As of a site's survivors. */
const SMALLEST_RISE_BYTES = 1_000_000;
/** After the first third. Fewer only say which types, where RSS shows that there is growth; two do even where one
 * is from before. */
const FEWEST_CENSUSES = 5;
const FEWEST_WITH_GROWTH = 2;
/** Of the rise: what one step may carry. */
const LARGEST_STEP = 0.6;
/** What comes in the second half of the censuses to what came in the first: less is a cache that fills. */
const FALLING = 0.6;

/** The fastest growing first. `rssGrows`: whether RSS shows growth by its own gates. */
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

/** What no later census goes below: batches and copies come and go above it. The last has no later one, and
 * is left out where there are enough. */
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

/** By ms. */
function slopeOf(times: readonly TimeMs[], bytes: readonly Bytes[]): number {
  const span: Millis = (times.at(-1) as number) - (times[0] as number);
  return times.length < 3
    ? ((bytes.at(-1) as number) - (bytes[0] as number)) / Math.max(1, span)
    : theilSen(times, bytes).slope;
}

/** All objects of a type, as a site that nobody saw. */
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
