/** Which version of a service is accused. */
import type { Readings } from "../series/readings.js";
import type { Unloaded } from "./curves/load_removal.js";
import { isSlower } from "./first_leaking.js";
import { type Judging, LEAST_DECIDED_MS } from "./growth/group_growth.js";
import {
  accusedLives,
  isLeaking,
  type JudgedVersion,
  judged,
  leaksEverywhere,
  rateOf,
  versionsOf,
} from "./judged_version.js";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** In the order in which they first started, each against those before it. */
export function judgedVersions(
  processes: readonly Unloaded[],
  judging: Omit<Judging, "before">,
): readonly JudgedVersion[] {
  const versions: JudgedVersion[] = [];
  for (const version of versionsOf(processes)) {
    versions.push(judged(version, judging, versions));
  }
  return versions;
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
  const isOpen = (version: JudgedVersion) =>
    stillRuns(version, endMs) || (version === last && goesOn(version));
  return versions.findLast((version) => isLeaking(version) && isOpen(version)) ?? null;
}

function isDecided({ growth }: JudgedVersion): boolean {
  return growth !== null && growth.shape !== "short" && growth.shape !== "undecided";
}

/**
 * A version that does not grow ends the leak of those before it once it certainly grows more slowly, or has run for long enough to
 * show a leak: not in its first hours.
 */
function endsLeakOf(version: JudgedVersion, earlier: readonly JudgedVersion[]): boolean {
  const leaking = earlier.findLast(leaksEverywhere);
  return (
    leaking === undefined ||
    isLeaking(version) ||
    (version.growth?.windowMs ?? 0) >= LEAST_DECIDED_MS ||
    isSlower(version, rateOf(leaking))
  );
}

/** Whether a process of it runs. */
export function stillRuns({ processes }: JudgedVersion, endMs: number): boolean {
  return processes.some(({ process }) => (process.endedMs ?? endMs) >= endMs);
}
