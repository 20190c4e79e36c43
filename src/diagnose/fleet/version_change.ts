/** What changed with a version: growth (a regression), or the level at the same age (a step). */
import type { Bytes } from "../../model/base/units.js";
import type {
  FleetDiagnosisJson,
  FleetShape,
} from "../../model/documents/fleet_diagnosis_document.js";
import { median } from "../series/trend.js";
import type { AgeCurve } from "./curves/age_curve.js";
import { isSlower } from "./first_leaking.js";
import type { GroupGrowth } from "./growth/group_growth.js";
import { isLeaking, type JudgedVersion, leaksEverywhere } from "./judged_version.js";
import { rateSeen } from "./lines/seen_lines.js";

const HOUR_MS = 3_600_000;
/** A smaller change of the level is no step. */
const LEAST = { bytes: 5e6, share: 0.03 };

/**
 * `first`: the first version that leaks, and `leak`: its growth; null: none. `isLoadKnown`: whether what follows the load was
 * removed. null without two versions, or without a change.
 */
export function changeBetween(
  versions: readonly JudgedVersion[],
  first: JudgedVersion | null,
  z: number,
  leak: GroupGrowth | null,
  isLoadKnown: boolean,
): NonNullable<FleetDiagnosisJson["change"]> | null {
  const version = first ?? versions.at(-1);
  const earlier = version === undefined ? [] : versions.slice(0, versions.indexOf(version));
  // Growth of a version that ran too short is unknown.
  const judged = earlier.filter(({ growth }) => growth !== null && growth.shape !== "short");
  const calm = leak === null ? undefined : calmBefore(judged, leak);
  const against = calm ?? judged.at(-1);
  if (version === undefined || against === undefined) {
    return null;
  }
  const now = growthOf(version);
  const before = against.growth === null ? null : ofLine(against, leak);
  if (now === null || before === null) {
    return null;
  }
  if (first === null && now.shape === "short") {
    return null;
  }
  const width = Math.hypot((now.high - now.low) / 2, (before.high - before.low) / 2);
  const rate = now.rate - before.rate;
  const growth = {
    growthBytesPerHour: rate * HOUR_MS,
    low: (rate - width) * HOUR_MS,
    high: (rate + width) * HOUR_MS,
  };
  const known = levelAtSameAge(now, before);
  const level = known ?? 0;
  const spread =
    known === null
      ? Math.max(now.level, before.level)
      : z * Math.hypot(spreadOf(version), spreadOf(against));
  const about = {
    version: version.version,
    against: against.version,
    growth,
    levelBytes: level,
    low: level - spread,
    high: level + spread,
  };
  // Of growth that reaches the limit soon, the interval may include zero.
  const isFaster = leaksEverywhere(version)
    ? calm !== undefined ||
      (now.rate > before.rate &&
        (!isLeaking(against) || (now.low > 0 ? now.low > before.rate : now.rate > before.high)))
    : against.odd.length === 0;
  if (first !== null && isFaster) {
    return { ...about, kind: "growth" };
  }
  const least = Math.max(
    LEAST.bytes,
    LEAST.share * before.level,
    isLoadKnown ? 0 : rangeOf(before),
  );
  // If the difference exceeds the level itself, too much was removed as load.
  const most = level > 0 ? now.level : before.level;
  const isPossible = Math.abs(level) < most;
  return isPossible && Math.abs(level) > Math.max(least, spread)
    ? { ...about, kind: "level" }
    : null;
}

/** The growth of an earlier version: by the line that shows the leak, where the agent saw it. */
function ofLine({ growth, seen }: JudgedVersion, leak: GroupGrowth | null): GroupGrowth | null {
  const isNew = leak?.newLine !== undefined;
  const line = leak?.newLine?.line ?? leak?.shownBy;
  const rate = line === undefined ? null : (rateSeen(line, seen) ?? (isNew ? 0 : null));
  return growth === null || rate === null ? growth : { ...growth, rate, low: rate, high: rate };
}

/** The latest that certainly grew more slowly than the leak, if none leaked since. Any version without a line that is new did. */
function calmBefore(known: readonly JudgedVersion[], leak: GroupGrowth): JudgedVersion | undefined {
  if (leak.newLine !== undefined) {
    return known.at(-1);
  }
  const found = known.findLast((each) => isLeaking(each) || isSlower(each, leak));
  return found === undefined || isLeaking(found) ? undefined : found;
}

function growthOf(version: JudgedVersion): GroupGrowth | null {
  return leaksEverywhere(version) ? version.growth : (version.odd[0]?.growth ?? version.growth);
}

/** How far it rose and fell, which may be the load of a day. */
function rangeOf({ curve: { values } }: GroupGrowth): Bytes {
  return Math.max(...values) - Math.min(...values);
}

const LEVEL_SHAPES: ReadonlySet<FleetShape> = new Set(["flat", "filling", "stepped"]);

/**
 * In the last third of the shorter curve, where both have it. Otherwise at the ends of both, of versions that have a level: an
 * earlier version may have been watched only when its processes were old. null: not known.
 */
function levelAtSameAge(now: GroupGrowth, before: GroupGrowth): number | null {
  if (now.curve.axis === "age" && before.curve.axis === "age") {
    const until = Math.min(...[now, before].map(({ curve }) => curve.times.at(-1) ?? 0));
    const [own, other] = [now, before].map(({ curve }) => between(curve, (until * 2) / 3, until));
    if (own !== undefined && other !== undefined && own.length > 0 && other.length > 0) {
      return median(own) - median(other);
    }
  }
  return [now, before].every(({ shape }) => LEVEL_SHAPES.has(shape))
    ? median(lastThird(now.curve)) - median(lastThird(before.curve))
    : null;
}

/** Of bins that are at least partly between two ages. */
function between({ times, values, binMs }: AgeCurve, from: number, until: number): number[] {
  return values.filter((_, at) => {
    const time = times[at] as number;
    return time - binMs / 2 < until && time + binMs / 2 > from;
  });
}

function lastThird({ values }: AgeCurve): readonly number[] {
  return values.slice(Math.floor((values.length * 2) / 3));
}

/** Standard error of the level over processes. */
function spreadOf({ processes }: JudgedVersion): number {
  const levels = processes.map(({ rss }) => median(rss.values.slice(-5)));
  const middle = median(levels);
  const spread = 1.4826 * median(levels.map((level) => Math.abs(level - middle)));
  return spread / Math.sqrt(Math.max(1, levels.length));
}
