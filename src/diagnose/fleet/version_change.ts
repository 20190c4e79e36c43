/** What changed with a version: growth (a regression), or the level at the same age (a step). */
import type { FleetDiagnosisJson } from "../../model/documents/fleet_diagnosis_document.js";
import { median } from "../series/trend.js";
import type { AgeCurve } from "./curves/age_curve.js";
import { isSlower } from "./first_leaking.js";
import type { GroupGrowth } from "./growth/group_growth.js";
import { isLeaking, type JudgedVersion, leaksEverywhere } from "./judged_version.js";
import { rateSeen } from "./lines/seen_lines.js";

const HOUR_MS = 3_600_000;
/** A smaller change of the level is no step. */
const LEAST = { bytes: 5e6, share: 0.03 };

/** `first`: the first version that leaks, and `leak`: its growth; null: none. null without two versions, or without a change. */
export function changeBetween(
  versions: readonly JudgedVersion[],
  first: JudgedVersion | null,
  z: number,
  leak: GroupGrowth | null,
): NonNullable<FleetDiagnosisJson["change"]> | null {
  const version = first ?? versions.at(-1);
  const earlier = version === undefined ? [] : versions.slice(0, versions.indexOf(version));
  // Growth of a version that ran too short is unknown.
  const known = earlier.filter(({ growth }) => growth !== null && growth.shape !== "short");
  const calm = leak === null ? undefined : calmBefore(known, leak);
  const against = calm ?? known.at(-1);
  if (version === undefined || against === undefined) {
    return null;
  }
  const now = growthOf(version);
  const before = against.growth === null ? null : ofLine(against, leak);
  if (now === null || before === null) {
    return null;
  }
  const width = Math.hypot((now.high - now.low) / 2, (before.high - before.low) / 2);
  const rate = now.rate - before.rate;
  const growth = {
    growthBytesPerHour: rate * HOUR_MS,
    low: (rate - width) * HOUR_MS,
    high: (rate + width) * HOUR_MS,
  };
  const level = levelAtSameAge(now.curve, before.curve);
  const spread = z * Math.hypot(spreadOf(version), spreadOf(against));
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
  const least = Math.max(LEAST.bytes, LEAST.share * before.level);
  return Math.abs(level) > Math.max(least, spread) ? { ...about, kind: "level" } : null;
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

/** The last third of the shorter curve, where both have it. */
function levelAtSameAge(now: AgeCurve, before: AgeCurve): number {
  if (now.axis !== before.axis) {
    return median(lastThird(now)) - median(lastThird(before));
  }
  const until = Math.min(now.times.at(-1) ?? 0, before.times.at(-1) ?? 0);
  const part = ({ times, values }: AgeCurve) =>
    values.filter((_, at) => {
      const time = times[at] as number;
      return time <= until && time >= (until * 2) / 3;
    });
  return median(part(now)) - median(part(before));
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
