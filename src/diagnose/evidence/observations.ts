/** Derived observations, before any rule judges them: the growth of each metric, and the course of each site. */

import type { Bytes, Millis, Pid, TimeMs } from "../../model/base/units.js";
import type { Metric } from "../../model/profile/series.js";
import { assessGrowth, type Growth, isFirm } from "../series/growth.js";
import { type Readings, readingsOf } from "../series/readings.js";
import { type TotalGrowth, totalGrowth } from "../series/total_growth.js";
import { valueAt } from "../sites/site_history.js";
import { judgeSites, keeps, type SiteJudgement } from "../sites/suspects.js";
import { type BoundedSuspect, boundedBy } from "./bounded_holders.js";
import type { Evidence, HolderEvidence, ProcessEvidence, TreeEvidence } from "./evidence.js";
import { treeOf } from "./launcher.js";
import { growingTypes } from "./type_growth.js";

const COUNTS: ReadonlySet<Metric> = new Set([
  "openFiles",
  "openSockets",
  "threads",
  "children",
  "endedChildren",
]);
/** A program that started this long before the window had memory that the profile does not contain. */
const ATTACHED_MS: Millis = 1000;
/** Least growth of RSS that counts: bytes, and share of the level. */
export const SMALLEST_RISE_BYTES = 5_000_000;
const SMALLEST_RISE_SHARE = 0.02;
/** Share of private-memory growth that a site with few large blocks must explain to be accused. */
const LEAST_SWELL = 0.3;
/** For a block that doubles: share of its growth by which private memory must have risen. */
const LEAST_FILLED = 0.5;
/** The same for all growing types together; below it something else grows. */
const LEAST_OF_TYPES = 0.3;

export interface ProcessObservation {
  readonly process: ProcessEvidence;
  readonly isTarget: boolean;
  growth(metric: Metric): Growth;
  readings(metric: Metric): Readings;
  /** Whether the metric grows significantly. */
  grows(metric: Metric): boolean;
}

export interface Observations {
  readonly evidence: Evidence;
  readonly windowMs: Millis;
  readonly target: ProcessObservation;
  /** Growth of the whole process tree, as shown in the header; no verdict may contradict it. */
  readonly total: TotalGrowth;
  /** The target, and its descendants that ran for at least a third of the window. */
  readonly processes: readonly ProcessObservation[];
  /** Every site, ordered by kept bytes. */
  readonly sites: readonly SiteJudgement[];
  /** The same for mapped files, shared memory and devices. */
  readonly mappings: readonly SiteJudgement[];
  /** Sites that keep growing and have no bounded holder; without an agent, such types. */
  readonly suspects: readonly SiteJudgement[];
  /** Sites that grow within a bound. */
  readonly bounded: readonly BoundedSuspect[];
  /** Private RSS minus the sampled live bytes of the target, if both are known. */
  readonly unused: UnusedMemory | null;
  holderOf(suspect: SiteJudgement): HolderEvidence | null;
}

interface UnusedMemory {
  readonly growth: Growth;
  /** Minimum of the last third of the window minus the minimum of the first: growth that was never returned. */
  readonly keptBytes: Bytes;
  /** The part of it after the first third; the rest is start-up. */
  readonly lateBytes: Bytes;
  /** Standard error of the live bytes used in the calculation. */
  readonly standardErrorBytes: Bytes;
}

export function observe(evidence: Evidence): Observations {
  const { startMs, endMs } = evidence.window;
  const windowMs = endMs - startMs;
  const lived = (process: ProcessEvidence) => (process.endedMs ?? endMs) - process.startedMs;
  const processes = evidence.processes
    .filter((process, i) => i === 0 || lived(process) >= windowMs / 3)
    .map((process, i) => observeProcess(process, i === 0));
  const mappings = evidence.mappings ? judgeSites(evidence.mappings, startMs) : [];
  const target = processes[0] as ProcessObservation;
  const { root, members } = treeOf(evidence) as TreeEvidence;
  const total = totalGrowth({ ...root, liveBytes: evidence.liveAtEndBytes ?? 0 }, members);
  const judged = evidence.sites ? judgeSites(evidence.sites, startMs) : [];
  const holderOf = ({ site }: SiteJudgement) =>
    evidence.holders?.find((holder) => holder.site === site.key) ?? null;
  const sites = judged.map((each) => {
    const found = holderOf(each);
    // Garbage does not wait in a queue.
    const site = found !== null && isMostlyGarbage(found) ? withoutBacklog(each) : each;
    return takesOlderMemory(site, evidence, total) ? { ...site, course: "fills" as const } : site;
  });
  const growing = evidence.sites ? chooseSuspects(sites, processes) : chooseTypes(evidence, target);
  const bounded = growing.flatMap(
    (suspect) => boundedBy(evidence, suspect, holderOf(suspect)) ?? [],
  );
  const within = new Set(bounded.map(({ suspect }) => suspect));
  return {
    evidence,
    windowMs,
    target,
    total,
    processes,
    sites,
    mappings,
    suspects: growing.filter((suspect) => !within.has(suspect)),
    bounded,
    unused: unusedGrowth(evidence, target),
    holderOf,
  };
}

/** Share of the memory that was looked up. */
const MOST_GARBAGE = 0.5;

/** Whether most of it is unreachable, and waits for the garbage collector. */
export function isMostlyGarbage({ garbage, looked }: HolderEvidence): boolean {
  return garbage > MOST_GARBAGE * looked;
}

function withoutBacklog({ backlog: _, ...site }: SiteJudgement): SiteJudgement {
  return site;
}

/** Whether the program had run before the profile began. */
export function isAttached({ window, target }: Evidence): boolean {
  return window.startMs - target.startedMs > ATTACHED_MS;
}

/** What a site keeps of what it allocates in the last third of the window, as a share of the same in the middle third. */
const KEEPS_LESS = 0.6;
/** Of the rate at which the site keeps memory: RSS rises more slowly at the end. */
const LEAST_IN_MEMORY = 0.25;

/**
 * Whether a site that keeps what it allocates replaces memory from before an attach: entries of a cache that is full now, whose older
 * ones are freed unseen. It keeps a smaller part of what it allocates, and memory as a whole hardly rises any more.
 */
function takesOlderMemory(
  { course, site, slope }: SiteJudgement,
  evidence: Evidence,
  total: TotalGrowth,
): boolean {
  const { sites, window, selection } = evidence;
  const mayReplace = isAttached(evidence) && selection === undefined && !isFirm(total);
  if (course !== "keeps" || !sites || !mayReplace) {
    return false;
  }
  const third = (window.endMs - window.startMs) / 3;
  const risen = (values: Float64Array, fromMs: TimeMs) =>
    valueAt(sites, values, fromMs + third) - valueAt(sites, values, fromMs);
  const kept = ([1, 2] as const).map((n) => {
    const fromMs = window.startMs + n * third;
    return risen(site.liveBytes, fromMs) / Math.max(1, risen(site.allocatedBytes, fromMs));
  });
  const [middle, last] = kept as [number, number];
  const isLevel = total.shape !== "short" && total.late.slope < LEAST_IN_MEMORY * slope;
  return isLevel && last < KEEPS_LESS * middle;
}

/**
 * The sites that keep what they allocate. If they explain little of the RSS growth, sites with few samples are
 * included, so that a coarse sampling period does not hide an obvious leak.
 */
function chooseSuspects(
  sites: readonly SiteJudgement[],
  processes: readonly ProcessObservation[],
): SiteJudgement[] {
  const sure = sites.filter((site) => keeps(site.course) || isFilled(site, processes));
  const weak = processes.flatMap((process) => {
    const own = sites.filter(({ site }) => site.pid === process.process.pid);
    const explained = own.reduce((sum, s) => sum + (keeps(s.course) ? s.keptBytes : 0), 0);
    const anon = process.growth("anonRssBytes");
    // While a block is copied to a larger one, both are resident: such a rise looks like a few steps.
    if (!(process.grows("anonRssBytes") || isFirm(anon)) || explained >= anon.rise / 2) {
      return [];
    }
    return own.filter(
      ({ course, keptBytes }) =>
        course === "hints" || (course === "swells" && keptBytes >= LEAST_SWELL * anon.rise),
    );
  });
  return [...sure, ...weak].sort((a, b) => b.slope - a.slope);
}

/** A block that doubles and is filled, so that RSS rose with it, even if long ago. */
function isFilled(
  { course, keptBytes, site }: SiteJudgement,
  processes: readonly ProcessObservation[],
): boolean {
  const own = processes.find(({ process }) => process.pid === site.pid);
  return (
    course === "doubles" &&
    own !== undefined &&
    own.growth("anonRssBytes").wholeRise >= LEAST_FILLED * keptBytes
  );
}

/** Without sites: the types that keep growing, if they explain the growth of private memory. */
function chooseTypes({ census, window }: Evidence, target: ProcessObservation): SiteJudgement[] {
  if (!census) {
    return [];
  }
  const types = growingTypes(census, window.startMs, window.endMs, target.grows("rssBytes"));
  const slope = types.reduce((sum, type) => sum + type.slope, 0);
  return target.grows("anonRssBytes") &&
    slope < LEAST_OF_TYPES * target.growth("anonRssBytes").slope
    ? []
    : types;
}

function observeProcess(process: ProcessEvidence, isTarget: boolean): ProcessObservation {
  const known = new Map<Metric, Growth>();
  const readings = (metric: Metric) => readingsOf(process.series, metric, process.endedMs);
  const growth = (metric: Metric) => {
    let found = known.get(metric);
    if (!found) {
      found = assessGrowth(readings(metric), COUNTS.has(metric));
      known.set(metric, found);
    }
    return found;
  };
  return {
    process,
    isTarget,
    readings,
    growth,
    grows: (metric) => isLarge(growth(metric)) && growth(metric).shape === "growing",
  };
}

/** Uses the thresholds for RSS growth. */
export function isLarge({ rise, level }: Growth): boolean {
  return rise >= SMALLEST_RISE_BYTES && rise >= SMALLEST_RISE_SHARE * level;
}

/** Private memory not explained by live allocations, at the snapshots. */
function unusedGrowth(evidence: Evidence, target: ProcessObservation): UnusedMemory | null {
  const { sites } = evidence;
  if (!sites || sites.snapshotTimes.length < 4) {
    return null;
  }
  const live = liveOf(evidence, target.process.pid);
  const anon = target.readings("anonRssBytes");
  const times: TimeMs[] = [];
  const values: Bytes[] = [];
  sites.snapshotTimes.forEach((time, snapshot) => {
    const at = anon.times.findLastIndex((reading) => reading <= time);
    if (at >= 0 && time - (anon.times[at] as number) < 5_000) {
      times.push(time);
      values.push((anon.values[at] as number) - (live[snapshot] as number));
    }
  });
  const own = sites.sites.filter(({ pid }) => pid === target.process.pid);
  return {
    growth: assessGrowth({ times, values }),
    ...keptOf(values),
    standardErrorBytes: Math.hypot(...own.map((site) => site.standardErrorBytes)),
  };
}

function keptOf(values: readonly Bytes[]): Pick<UnusedMemory, "keptBytes" | "lateBytes"> {
  const third = Math.ceil(values.length / 3);
  const least = (part: readonly Bytes[]) =>
    Math.max(
      0,
      part.reduce((a, b) => Math.min(a, b), part[0] ?? 0),
    );
  const last = least(values.slice(-third));
  return {
    keptBytes: Math.max(0, last - least(values.slice(0, third))),
    lateBytes: Math.max(0, last - least(values.slice(third, -third))),
  };
}

/** Sampled live bytes of a process at each snapshot. */
function liveOf({ sites }: Evidence, pid: Pid): Float64Array {
  const sum = new Float64Array(sites?.snapshotTimes.length ?? 0);
  for (const site of sites?.sites ?? []) {
    if (site.pid === pid) {
      site.liveBytes.forEach((bytes, snapshot) => {
        sum[snapshot] = (sum[snapshot] as number) + bytes;
      });
    }
  }
  return sum;
}
