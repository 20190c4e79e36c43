/** Which version of a service is accused. */
import type { Readings } from "../series/readings.js";
import { withAlike } from "./alike_versions.js";
import type { Unloaded } from "./curves/load_removal.js";
import { isSlower } from "./first_leaking.js";
import { type GroupGrowth, type Judging, LEAST_DECIDED_MS } from "./growth/group_growth.js";
import { slopesAtSameAges } from "./growth/precedent.js";
import {
  accusedLives,
  endOf,
  isLeaking,
  type JudgedVersion,
  judged,
  leaksEverywhere,
  rateOf,
  versionsOf,
} from "./judged_version.js";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Each is judged against those that first started before it. The one that was deployed last comes last. */
export function judgedVersions(
  processes: readonly Unloaded[],
  judging: Omit<Judging, "before">,
): readonly JudgedVersion[] {
  const each: JudgedVersion[] = [];
  for (const version of versionsOf(processes)) {
    each.push(judged(version, judging, each));
  }
  const versions = withAlike(each, judging);
  const lasts = new Map(
    versions.map((version) => {
      const replaced = versions.filter((each) => isRolledBack(each, version, judging.endMs));
      return [version, Math.max(version.startedMs, ...replaced.map(({ startedMs }) => startedMs))];
    }),
  );
  const placeOf = (version: JudgedVersion) => lasts.get(version) ?? version.startedMs;
  // After a rollback, both versions have the place of the one that was rolled back, which comes first.
  return versions.toSorted((a, b) => placeOf(a) - placeOf(b) || b.startedMs - a.startedMs);
}

/** Whether no process of a version runs, and an earlier one took its place again. */
function isRolledBack(version: JudgedVersion, earlier: JudgedVersion, endMs: number): boolean {
  const last = Math.max(...version.processes.map(({ process }) => process.startedMs));
  return (
    earlier.startedMs < version.startedMs &&
    endOf(earlier, endMs) > endOf(version, endMs) &&
    earlier.processes.some(({ process }) => process.startedMs > last)
  );
}

/** A slow leak that no agent's figures show has to be seen for this long. */
export const LASTING_MS = 6 * HOUR_MS;
/** Share of the limit, or of the level where there is none, that a slow leak adds in a day at most. */
const SLOW = 0.06;

/**
 * The version that leaks. Of many services at many moments, some look like a leak for an hour or two. So a slow leak that only RSS
 * shows counts if a version was accused six hours ago as well.
 */
export function lastingAccused(
  versions: readonly JudgedVersion[],
  processes: readonly Unloaded[],
  judging: Omit<Judging, "before">,
): JudgedVersion | null {
  const accused = accusedOf(versions, judging.endMs);
  if (accused === null || !isSlowAndUnseen(accused)) {
    return accused;
  }
  const endMs = judging.endMs - LASTING_MS;
  const before = accusedOf(judgedVersions(until(processes, endMs), { ...judging, endMs }), endMs);
  return before !== null ? accused : null;
}

function isSlowAndUnseen(accused: JudgedVersion): boolean {
  const { rate, level, isFatal } = rateOf(accused);
  const lives = accusedLives(accused);
  const limits = lives.map(({ process }) => process.limitBytes).filter((limit) => limit > 0);
  const whole = limits.length > 0 ? Math.min(...limits) : level;
  const isSlow = !isFatal && rate * DAY_MS < SLOW * whole;
  return isSlow && lives.every(({ process }) => process.sites.length === 0);
}

/** What was known at a time. */
function until(processes: readonly Unloaded[], endMs: number): Unloaded[] {
  return processes.flatMap(({ process, rss, work }) => {
    const count = rss.times.findLastIndex((time) => time <= endMs) + 1;
    if (count === 0) {
      return [];
    }
    const known = ({ times, values }: Readings) => ({
      times: times.slice(0, count),
      values: values.slice(0, count),
    });
    const endedMs = process.endedMs !== null && process.endedMs <= endMs ? process.endedMs : null;
    const then = { ...process, endedMs, rss: known(process.rss) };
    return [{ process: then, rss: known(rss), work: work?.slice(0, count) ?? null }];
  });
}

/** The newest version decides. What an older one did is over, unless it still runs, or the newest has not run long enough. */
function accusedOf(versions: readonly JudgedVersion[], endMs: number): JudgedVersion | null {
  const last = versions.findLast(
    (version, at) => isDecided(version) && endsLeakOf(version, versions.slice(0, at)),
  );
  const running = new Set(
    versions.flatMap(({ processes }) =>
      processes.flatMap(({ process }) =>
        (process.endedMs ?? endMs) >= endMs ? process.instance : [],
      ),
    ),
  );
  // Instances that leaked alone and have no successor of their name are over. A successor shows within a day whether it does so.
  const hasSuccessor = ({ processes, odd }: JudgedVersion) =>
    odd.some(({ instance }) => running.has(instance)) &&
    processes.some(({ process }) => (process.endedMs ?? endMs) > endMs - DAY_MS);
  const goesOn = (version: JudgedVersion) => leaksEverywhere(version) || hasSuccessor(version);
  const isOver = (version: JudgedVersion) =>
    versions.some((earlier) => !isLeaking(earlier) && isRolledBack(version, earlier, endMs));
  const isOpen = (version: JudgedVersion) =>
    stillRuns(version, endMs) || (version === last && goesOn(version) && !isOver(version));
  return versions.findLast((version) => isLeaking(version) && isOpen(version)) ?? null;
}

function isDecided({ growth, odd }: JudgedVersion): boolean {
  return (
    odd.length > 0 || (growth !== null && growth.shape !== "short" && growth.shape !== "undecided")
  );
}

/** Before, the load of a quiet part of the day can hide a leak that follows requests. */
const LEAST_CALM_MS = 12 * HOUR_MS;

/**
 * A version that does not grow ends the leak of those before it once it has run for long enough to show one, or certainly grows more
 * slowly: not in its first hours, in which its caches hide a leak, and a few instances that leak are hidden by the others.
 */
function endsLeakOf(version: JudgedVersion, earlier: readonly JudgedVersion[]): boolean {
  const leaking = earlier.findLast(isLeaking);
  if (leaking === undefined || isLeaking(version)) {
    return true;
  }
  const leak = rateOf(leaking);
  const ageMs = version.growth?.windowMs ?? 0;
  return ageMs >= LEAST_DECIDED_MS
    ? !(isHarmful(leak) && mayRiseAlike(version, leak.rate))
    : leaksEverywhere(leaking) &&
        ageMs >= LEAST_CALM_MS &&
        isSlower(version, leak) &&
        risesLess(version, leaking);
}

/** Whether it would pass the limit, or a line shows it: not what a cache or load may explain. */
function isHarmful({ isFatal, shownBy, newLine }: GroupGrowth): boolean {
  return isFatal || shownBy !== undefined || newLine !== undefined;
}

/** Whether the leak may be in what it rose by: nothing excludes its rate. */
function mayRiseAlike({ growth }: JudgedVersion, rate: number): boolean {
  return growth !== null && growth.high > rate && growth.straight.rate > LEAST_LESS * rate;
}

/** Share of the leak's rate by which a version without it rises more slowly at the same ages. */
const LEAST_LESS = 0.5;

/** Whether it rises less than the leaking version did at the same ages, by a good part of the leak; true if that is unknown. */
function risesLess({ growth }: JudgedVersion, leaking: JudgedVersion): boolean {
  const slopes = growth && slopesAtSameAges(growth.curve, leaking.processes);
  return !slopes || slopes.other - slopes.own >= LEAST_LESS * rateOf(leaking).rate;
}

/** Whether a process of it runs. */
export function stillRuns({ processes }: JudgedVersion, endMs: number): boolean {
  return processes.some(({ process }) => (process.endedMs ?? endMs) >= endMs);
}
