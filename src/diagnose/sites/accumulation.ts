/**
 * Sites whose live bytes rise throughout the window although their survivors are not of every age. Ages miss
 * two common kinds of leaks:
 *
 *   backlog      items leave in order of arrival, more slowly than they arrive: nothing old survives
 *   reallocated  many small containers grow, and each is reallocated as it grows: everything looks young
 *
 * Both are visible in live bytes over time. A backlog is also visible in the waiting time, which follows from
 * two curves:
 *
 *   bytes   allocated ──────────────────/
 *                        waiting    ___/ │ live
 *                     <──────────>_/_____│
 *                    freed ______/
 *
 * The oldest item at a time t was allocated when `allocated` had the value that `freed` has at t.
 */
import type { Bytes, Millis, TimeMs } from "../../model/base/units.js";
import { afterFirstThird, assessGrowth } from "../series/growth.js";
import { servesLoad } from "./load.js";
import type { SiteHistories, SiteHistory } from "./site_history.js";

/** Items that wait for a consumer that is slower than their producer. */
export interface Backlog {
  /** How long the oldest item has waited. */
  readonly waitingMs: Millis;
  /** Bytes per ms. */
  readonly producedSlope: number;
  readonly consumedSlope: number;
}

export interface Accumulation {
  readonly keptBytes: Bytes;
  /** Bytes per ms. */
  readonly slope: number;
  readonly backlog: Backlog | null;
}

const SMALLEST_RISE_BYTES = 1_000_000;
const FEWEST_SAMPLES = 10;
/** Number of standard errors of the live bytes; less may be coincidence. */
const LEAST_ERRORS = 4;
/** Least ratio of the second half of the rise to the first; less is a filling cache. */
const FALLING = 0.6;
/** For a backlog: least share of produced bytes that is consumed. */
const LEAST_CONSUMED = 0.1;
/** The same of objects, which are counted less exactly. The tables of a dict that grows are freed as well: many bytes, few objects. */
const LEAST_CONSUMED_OBJECTS = 0.05;
/** Largest share of a backlog's live bytes that may be older than its oldest item. */
const MOST_OLDER = 0.1;
/** Least rise of the number of live objects, as a part of the rise of their bytes; containers that are reallocated become larger, not more. */
const LEAST_MORE_OBJECTS = 0.5;
/** Least ratio of the waiting time at the end to that at half time. */
const WAITS_LONGER = 1.25;

/** Least share of the line's rise that the live bytes rose by; otherwise the measured rise counts. */
const LINE_MATCHES = 0.9;

/** How a site's live bytes rise over the last two thirds of the snapshots; null if they do not. */
export function accumulationOf(
  site: SiteHistory,
  histories: SiteHistories,
  startMs: TimeMs,
): Accumulation | null {
  const times = histories.snapshotTimes;
  const growth = assessGrowth({ times, values: Array.from(site.liveBytes) });
  const { rise, slope } = growth;
  if (
    growth.shape !== "growing" ||
    rise < Math.max(SMALLEST_RISE_BYTES, LEAST_ERRORS * site.standardErrorBytes) ||
    site.liveSamples < FEWEST_SAMPLES ||
    growth.late.slope < FALLING * slope ||
    servesLoad(site, histories, startMs)
  ) {
    return null;
  }
  const queue = backlogOf(site, histories, startMs);
  const { times: judged, values: live } = afterFirstThird({
    times,
    values: Array.from(site.liveBytes),
  });
  const measured = (live.at(-1) ?? 0) - (live[0] ?? 0);
  const spanMs = (judged.at(-1) ?? 0) - (judged[0] ?? 0);
  // A line through a rise that began late is steeper than what was kept.
  const kept =
    measured > 0 && spanMs > 0 && measured < LINE_MATCHES * rise
      ? { keptBytes: measured, slope: measured / spanMs }
      : { keptBytes: Math.min(rise, site.liveBytes.at(-1) ?? rise), slope };
  return { ...kept, backlog: queue && growingBy(queue, kept.slope) };
}

/** The rate out is the rate in less the growth, so that the three figures of a verdict add up. */
function growingBy(backlog: Backlog, slope: number): Backlog {
  const consumedSlope = backlog.producedSlope - slope;
  return consumedSlope > 0 ? { ...backlog, consumedSlope } : backlog;
}

/** The snapshots at the middle and at the end of the window. */
function secondHalf({ snapshotTimes }: SiteHistories, startMs: TimeMs): [number, number] {
  const last = snapshotTimes.length - 1;
  const middle = snapshotTimes.findIndex(
    (time) => time >= startMs + ((snapshotTimes[last] ?? 0) - startMs) / 2,
  );
  return [middle, last];
}

/** Whether a site's blocks became larger, not more: containers that are reallocated as they grow. */
export function isReallocated(
  { liveBytes, objects }: SiteHistory,
  histories: SiteHistories,
  startMs: TimeMs,
): boolean {
  const [middle, last] = secondHalf(histories, startMs);
  const before = objects[middle] ?? 0;
  const riseOf = (values: Float64Array) => (values[last] ?? 0) / (values[middle] ?? 0) - 1;
  return before > 0 && riseOf(objects) < LEAST_MORE_OBJECTS * riseOf(liveBytes);
}

function backlogOf(site: SiteHistory, histories: SiteHistories, startMs: TimeMs): Backlog | null {
  const { liveBytes, allocatedBytes, cohortBytes } = site;
  const { snapshotTimes, cohorts } = histories;
  const [middle, last] = secondHalf(histories, startMs);
  const spanMs = (snapshotTimes[last] ?? 0) - (snapshotTimes[middle] ?? 0);
  if (middle < 1 || middle >= last || spanMs <= 0) {
    return null;
  }
  const freed = (snapshot: number) => (allocatedBytes[snapshot] ?? 0) - (liveBytes[snapshot] ?? 0);
  const produced = (allocatedBytes[last] ?? 0) - (allocatedBytes[middle] ?? 0);
  const consumed = freed(last) - freed(middle);
  const bornMs = (snapshot: number) => timeOfValue(snapshotTimes, allocatedBytes, freed(snapshot));
  const waitingMs = (snapshotTimes[last] ?? 0) - bornMs(last);
  const waitedMs = (snapshotTimes[middle] ?? 0) - bornMs(middle);
  const oldest = bornMs(last);
  const older = cohortBytes.reduce(
    (sum, bytes, n) => sum + ((cohorts[n] ?? Number.POSITIVE_INFINITY) < oldest ? bytes : 0),
    0,
  );
  const isQueue =
    !isReallocated(site, histories, startMs) &&
    consumed >= LEAST_CONSUMED * produced &&
    consumedObjects(site, middle, last) >= LEAST_CONSUMED_OBJECTS &&
    older <= MOST_OLDER * (liveBytes[last] ?? 0) &&
    waitingMs >= WAITS_LONGER * waitedMs;
  return isQueue
    ? { waitingMs, producedSlope: produced / spanMs, consumedSlope: consumed / spanMs }
    : null;
}

/** The objects freed between two snapshots, as a share of those allocated; 1 if unknown. */
function consumedObjects({ objects, freedObjects }: SiteHistory, from: number, to: number): number {
  const between = (values: Float64Array) => (values[to] ?? 0) - (values[from] ?? 0);
  const freed = freedObjects && between(freedObjects);
  return freed === undefined ? 1 : freed / Math.max(1, freed + between(objects));
}

/**
 * The time at which a rising curve had a value, interpolated between snapshots; the first snapshot's time if it
 * was never lower.
 */
function timeOfValue(times: readonly TimeMs[], values: Float64Array, value: number): TimeMs {
  const after = values.findIndex((known) => known >= value);
  if (after <= 0) {
    return times[0] ?? 0;
  }
  const [t0, t1] = [times[after - 1] ?? 0, times[after] ?? 0];
  const [v0, v1] = [values[after - 1] ?? 0, values[after] ?? 0];
  return t0 + ((t1 - t0) * (value - v0)) / Math.max(1, v1 - v0);
}
