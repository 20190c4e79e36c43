/**
 * Sites whose memory is a few large blocks that are replaced by larger ones: a bytearray that is never emptied,
 * numpy.append, pandas.concat, a string that is extended. Everything is young at every snapshot, so ages show
 * nothing; the evidence is that live bytes never fall and rise to the end.
 */
import type { Bytes, TimeMs } from "../../model/base/units.js";
import { theilSen } from "../series/trend.js";
import type { SiteHistories, SiteHistory } from "./site_history.js";

const SMALLEST_RISE_BYTES = 2_000_000;
/** The growth must be significant compared with the initial level. */
const LEAST_RISE_SHARE = 0.2;
const FEWEST_SNAPSHOTS = 6;
/** Share of the rise that one step may have, and that the second half must have. */
const LARGEST_STEP = 0.5;
const LEAST_SECOND_HALF = 0.25;
/** Largest factor between two snapshots; blocks do not grow faster. */
const TWO_BLOCKS = 1.5;

interface Swelling {
  readonly keptBytes: Bytes;
  readonly slope: number;
}

/** How a site swells over the last two thirds of the snapshots; null if it does not. */
export function swellingOf(
  { largeBytes }: Pick<SiteHistory, "largeBytes">,
  { snapshotTimes }: Pick<SiteHistories, "snapshotTimes">,
  startMs: TimeMs,
): Swelling | null {
  const endMs = snapshotTimes.at(-1) ?? startMs;
  const from = snapshotTimes.findIndex((time) => time >= startMs + (endMs - startMs) / 3);
  if (largeBytes === undefined || from < 0) {
    return null;
  }
  const times = snapshotTimes.slice(from, -1);
  const live = largeBytes.subarray(from);
  return swells(live, times) ?? swells(withoutSuccessors(live), times);
}

/**
 * Corrects for snapshots taken while a new block was filled and the old one was still live, which may apply to
 * all of the last ones.
 */
function withoutSuccessors(live: Float64Array): Float64Array {
  let level = Math.min(...live);
  return live.map((bytes) => {
    level = bytes > TWO_BLOCKS * level ? bytes / 2 : bytes;
    return level;
  });
}

/** `live`: values at these times and at the last snapshot. */
function swells(live: Float64Array, times: readonly TimeMs[]): Swelling | null {
  if (times.length < FEWEST_SNAPSHOTS) {
    return null;
  }
  // While the new block is filled from the old one, both are live, so the level is the minimum of this and all
  // later snapshots.
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
  // A buffer that is filled and emptied may be filling when the recording ends; then its level rose only over
  // the last few snapshots.
  const { slope } = theilSen(times, levels);
  return evenly && slope > 0 ? { keptBytes: rise, slope } : null;
}
