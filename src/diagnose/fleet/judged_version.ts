/** One version of a service, judged: all its processes, and the instances that differ from their siblings. */
import { mannKendall } from "../series/mann_kendall.js";
import { firstFrom } from "../series/medians.js";
import { theilSen } from "../series/trend.js";
import { loadRange, type Unloaded } from "./curves/load_removal.js";
import { linesOf } from "./growth/fleet_suspects.js";
import {
  type GroupGrowth,
  groupGrowth,
  type Judging,
  LEAST_DECIDED_MS,
  LEAST_LASTING_MS,
  LOAD_SEEN_MS,
} from "./growth/group_growth.js";
import {
  beyondPrecedent,
  clearedByPrecedent,
  isLikeUndecided,
  isWithinUsual,
  risen,
  wasLevelBefore,
} from "./growth/precedent.js";
import { LEAST_IN_RSS, withSites } from "./growth/site_growth.js";
import { oddAsBefore } from "./instances/odd_as_before.js";
import { type OddInstance, oddInstances } from "./instances/odd_instances.js";
import { instancesOf, type NewLine, newLines } from "./lines/new_lines.js";
import { type SeenLife, seenLives } from "./lines/seen_lines.js";

/** An odd instance that grows by this factor faster explains the leak. */
const MUCH_FASTER = 4;
/** A line on a smaller share of the instances that the agent watched is theirs alone, if it watched a few. */
const MOST_ALONE = 0.4;
const FEWEST_WATCHED = 3;
/** A straight line through the curve rises by this share of the level, if what earlier versions did may hide a leak. */
const LEAST_HIDDEN = 0.03;

/** What is left without earlier versions ends above its start by this share of its growth. */
const LEAST_ABOVE = 0.7;

export interface JudgedVersion {
  readonly version: string;
  readonly startedMs: number;
  readonly processes: readonly Unloaded[];
  /** Of these, what the agent saw. */
  readonly seen: readonly SeenLife[];
  /** Of the processes without the odd ones; null: no readings in the window. */
  readonly growth: GroupGrowth | null;
  readonly odd: readonly OddInstance[];
}

/** When its last process ended; the end of the window if one runs. */
export function endOf({ processes }: Pick<JudgedVersion, "processes">, endMs: number): number {
  return Math.min(endMs, Math.max(...processes.map(({ process }) => process.endedMs ?? endMs)));
}

export function isLeaking({ growth, odd }: JudgedVersion): boolean {
  return growth?.shape === "leaking" || odd.length > 0;
}

/** Whether all instances leak, and not a few of them much faster than the others. */
export function leaksEverywhere({ growth, odd }: Pick<JudgedVersion, "growth" | "odd">): boolean {
  const fastest = Math.max(0, ...odd.map((each) => each.growth.rate));
  return growth?.shape === "leaking" && fastest < MUCH_FASTER * growth.rate;
}

/** By version, in the order in which they first started; versions that started at the same moment by name. */
export function versionsOf(processes: readonly Unloaded[]) {
  const groups = new Map<string, Unloaded[]>();
  for (const each of processes) {
    const own = groups.get(each.process.version) ?? [];
    own.push(each);
    groups.set(each.process.version, own);
  }
  return [...groups]
    .map(([version, own]) => ({
      version,
      processes: own,
      startedMs: Math.min(...own.map(({ process }) => process.startedMs)),
    }))
    .sort(
      (a, b) =>
        a.startedMs - b.startedMs || a.version.localeCompare(b.version, "en", { numeric: true }),
    );
}

/** A version is judged up to the end of its last process, and against earlier versions, the latest last. */
export function judged(
  version: Omit<JudgedVersion, "growth" | "odd" | "seen">,
  judging: Omit<Judging, "before">,
  earlier: readonly JudgedVersion[],
): JudgedVersion {
  const before = earlier.flatMap(({ seen }) => seen);
  const own = { ...judging, before, endMs: endOf(version, judging.endMs) };
  const seen = seenLives(version.processes);
  const found = oddInstances(version.processes, own);
  const odd =
    found.length > 0 ? found : oddAsBefore(version.processes, earlier.at(-1)?.odd ?? [], own);
  const names = new Set(odd.map(({ instance }) => instance));
  const others = version.processes.filter(({ process }) => !names.has(process.instance));
  const whole = wholeGrowth(others, own, earlier);
  if (whole === null) {
    return { ...version, seen, odd, growth: whole };
  }
  const beside = besideEarlier(whole, others, own, earlier);
  const growth = withinUsual(beside, others, own.endMs, earlier);
  const settled = withSites(growth, others, own);
  const alone = odd.length === 0 && growth.shape !== "leaking" ? ofFew(settled, others) : [];
  if (alone.length > 0) {
    return { ...version, seen, odd: alone, growth };
  }
  const [newLine] = newLines(seen, before, {
    ...settled,
    z: own.z,
    processes: version.processes.map(({ process }) => process),
    isFirst: earlier.length === 0,
    ranMs: own.endMs - version.startedMs,
  });
  return {
    ...version,
    seen,
    ...(newLine === undefined
      ? { odd, growth: settled }
      : withNewLine({ odd, growth: settled }, newLine, version.processes)),
  };
}

/** The growth of a version by itself. One of a day is judged a second time if the version before was level at the same ages. */
function wholeGrowth(
  processes: readonly Unloaded[],
  judging: Judging,
  earlier: readonly JudgedVersion[],
): GroupGrowth | null {
  const growth = groupGrowth(processes, judging);
  const mayBeUrgent =
    growth?.shape === "undecided" &&
    growth.windowMs >= LEAST_LASTING_MS &&
    growth.windowMs < LEAST_DECIDED_MS;
  return mayBeUrgent && wasLevelBefore(growth.curve, earlier)
    ? groupGrowth(processes, { ...judging, isAfterLevel: true })
    : growth;
}

/**
 * What an earlier version has risen to, or rose by, shows no leak of this one. The usual level is no evidence about processes that live for a day, because each rises little before it starts again, nor once a
 * version has itself had the load of working days and of a weekend.
 */
function withinUsual(
  growth: GroupGrowth,
  processes: readonly Unloaded[],
  endMs: number,
  earlier: readonly JudgedVersion[],
): GroupGrowth {
  const { shape, isFatal, windowMs } = growth;
  if (shape !== "leaking" || isFatal) {
    return growth;
  }
  const mayBe = windowMs >= LEAST_DECIDED_MS && windowMs < LOAD_SEEN_MS;
  return isLikeUndecided(growth, processes, earlier) ||
    (mayBe && isWithinUsual(processes, earlier, endMs))
    ? { ...growth, shape: "undecided" }
    : growth;
}

/** The growth of a version, compared with what earlier versions did at the same ages: these may explain it, or hide a leak. */
function besideEarlier(
  growth: GroupGrowth,
  processes: readonly Unloaded[],
  judging: Judging,
  earlier: readonly JudgedVersion[],
): GroupGrowth {
  const cleared = clearedByPrecedent(growth, earlier);
  const { straight, windowMs, level } = growth;
  const mayLeak = windowMs >= LEAST_LASTING_MS && straight.rate * windowMs > LEAST_HIDDEN * level;
  // Most versions need no second look, which costs as much as the first.
  const beyond =
    cleared.shape === "leaking" || !mayLeak
      ? null
      : beyondEarlier(growth, processes, judging, earlier);
  if (beyond === null) {
    return cleared;
  }
  return growth.shape === "leaking"
    ? clearedByPrecedent(growth, earlier, beyond)
    : clearedByPrecedent({ ...beyond, curve: growth.curve }, earlier, beyond);
}

/** What is left of the growth of a version without what earlier versions did at the same ages; null unless it leaks. */
function beyondEarlier(
  { curve }: GroupGrowth,
  processes: readonly Unloaded[],
  judging: Judging,
  earlier: readonly JudgedVersion[],
): GroupGrowth | null {
  const beyond = beyondPrecedent(processes, curve, earlier);
  const left =
    beyond &&
    groupGrowth(beyond.processes, {
      ...judging,
      isLoadKnown: judging.isLoadKnown || beyond.isAtSameHours,
      loadBytes: loadRange(processes),
      earlierBytes: beyond.earlierBytes,
    });
  return left?.shape === "leaking" && left.curve.axis === "age" && endsAbove(left) ? left : null;
}

/** Whether it rose above its start. One that fell behind earlier versions first, as on a weekend, only catches up with them. */
function endsAbove({ curve, rate, windowMs }: GroupGrowth): boolean {
  return risen(curve) > LEAST_ABOVE * rate * windowMs;
}

/** The instances that have the line that shows the leak, if they are a few of those that the agent watched. */
function ofFew(growth: GroupGrowth, processes: readonly Unloaded[]): OddInstance[] {
  const { shownBy } = growth;
  if (shownBy === undefined) {
    return [];
  }
  const lines = linesOf(processes.map(({ process }) => process));
  const rows = lines.find(({ line }) => line === shownBy)?.rows ?? [];
  const instances = instancesOf(rows.map(([process]) => ({ process })));
  return areFew(instances, processes) ? onEach(instances, growth, processes) : [];
}

function areFew(instances: ReadonlySet<string>, processes: readonly Unloaded[]): boolean {
  const watched = instancesOf(processes.filter(({ process }) => process.sites.length > 0));
  return watched.size >= FEWEST_WATCHED && instances.size <= MOST_ALONE * watched.size;
}

function onEach(
  instances: ReadonlySet<string>,
  growth: GroupGrowth,
  processes: readonly Unloaded[],
): OddInstance[] {
  return [...instances].map((instance) => ({
    instance,
    growth,
    processes: processes.filter(({ process }) => process.instance === instance),
  }));
}

/** What a line that no earlier version had shows about a version: it leaks, or a few of its instances do. */
function withNewLine(
  { odd, growth }: { readonly odd: readonly OddInstance[]; readonly growth: GroupGrowth },
  newLine: NewLine,
  processes: readonly Unloaded[],
): Pick<JudgedVersion, "odd" | "growth"> {
  const { rate, low, high, instances } = newLine;
  if (odd.length > 0) {
    return { odd, growth };
  }
  if (growth.shape === "leaking") {
    return { odd, growth: { ...growth, newLine } };
  }
  const leaking = { ...growth, rate, low, high, newLine, shape: "leaking" as const };
  const all = instancesOf(processes);
  // The memory of all instances does not grow like that.
  const highest = Math.max(growth.high, growth.straight.high);
  const isContradicted = growth.shape !== "short" && highest <= LEAST_IN_RSS * rate;
  if (areFew(instances, processes) || (isContradicted && instances.size <= MOST_ALONE * all.size)) {
    return { odd: onEach(instances, leaking, processes), growth };
  }
  return { odd, growth: isContradicted ? growth : leaking };
}

export function accusedLives(version: JudgedVersion): readonly Unloaded[] {
  return leaksEverywhere(version)
    ? version.processes
    : version.odd.flatMap((each) => each.processes);
}

/** By this part of a curve, most caches have filled. */
const AFTER_FILLING = 0.5;

/**
 * The growth of memory as a whole. A line that shows a leak may be one of several that allocate what leaks, so where RSS certainly grows
 * faster in the later half of its curve, that counts.
 */
export function memoryRate(version: JudgedVersion): GroupGrowth {
  const growth = rateOf(version);
  const { times, values } = growth.curve;
  const [first, last] = [times[0] ?? 0, times.at(-1) ?? 0];
  if (
    (growth.shownBy === undefined && growth.newLine === undefined) ||
    last - first < LEAST_LASTING_MS
  ) {
    return growth;
  }
  const from = firstFrom(times, first + AFTER_FILLING * (last - first));
  const [after, levels] = [times.slice(from), values.slice(from)];
  const late = theilSen(after, levels, mannKendall(levels).dependence);
  return late.low > growth.high
    ? { ...growth, rate: late.slope, low: late.low, high: late.high }
    : growth;
}

/** Of the version, or of its fastest odd instance. */
export function rateOf(version: JudgedVersion): GroupGrowth {
  return leaksEverywhere(version)
    ? (version.growth as GroupGrowth)
    : version.odd.map((each) => each.growth).reduce((a, b) => (b.rate > a.rate ? b : a));
}
