/**
 * Sites whose memory is a few large blocks that are made anew, larger each time: a bytearray that is never
 * emptied, numpy.append, pandas.concat, a text that is added to. All of it is young at every look, so ages
 * say nothing; that it never goes back, and rises to the end, does.
 */
import type { Bytes, TimeMs } from "../../model/base/units.js";
import { theilSen } from "../series/trend.js";
import type { SiteHistories, SiteHistory } from "./site_history.js";

const SMALLEST_RISE_BYTES = 2_000_000;
/** What comes must stand against what was there. */
const LEAST_RISE_SHARE = 0.2;
const FEWEST_LOOKS = 6;
/** Of the rise: what one step may carry, what the second half must carry. */
const LARGEST_STEP = 0.5;
const LEAST_SECOND_HALF = 0.25;
/** Of the look before: no block has become so much larger meanwhile. */
const TWO_BLOCKS = 1.5;

interface Swelling {
  readonly keptBytes: Bytes;
  readonly slope: number;
}

/** How a site swells over the last two thirds of the looks; null where it does not. */
export function swellingOf(
  { largeBytes }: Pick<SiteHistory, "largeBytes">,
  { lookTimes }: Pick<SiteHistories, "lookTimes">,
  startMs: TimeMs,
): Swelling | null {
  const endMs = lookTimes.at(-1) ?? startMs;
  const from = lookTimes.findIndex((time) => time >= startMs + (endMs - startMs) / 3);
  if (largeBytes === undefined || from < 0) {
    return null;
  }
  const times = lookTimes.slice(from, -1);
  const live = largeBytes.subarray(from);
  return swells(live, times) ?? swells(withoutSuccessors(live), times);
}

/** As if no look had fallen into the making of a new block, while the old one lives: the last ones may all have. */
function withoutSuccessors(live: Float64Array): Float64Array {
  let level = Math.min(...live);
  return live.map((bytes) => {
    level = bytes > TWO_BLOCKS * level ? bytes / 2 : bytes;
    return level;
  });
}

/** `live`: at these times, and at the last look. */
function swells(live: Float64Array, times: readonly TimeMs[]): Swelling | null {
  if (times.length < FEWEST_LOOKS) {
    return null;
  }
  // While the new block is filled from the old one both live: what no later look goes below is the level.
  const levels = times.map((_, i) => Math.min(...live.subarray(i)));
  const first = levels[0] as number;
  const last = levels.at(-1) as number;
  const rise = last - first;
  if (rise < Math.max(SMALLEST_RISE_BYTES, LEAST_RISE_SHARE * first)) {
    return null;
  }
  const steps = levels.slice(1).map((level, i) => level - (levels[i] as number));
  const middle = levels[levels.length >> 1] as number;
  const evenly =
    Math.max(...steps) <= LARGEST_STEP * rise && last - middle >= LEAST_SECOND_HALF * rise;
  // What is filled and emptied may be about to fill when the looks end: its level rose over the last few alone.
  const { slope } = theilSen(times, levels);
  return evenly && slope > 0 ? { keptBytes: rise, slope } : null;
}
