/** Since which version a service leaks. */
import type { FrameJson } from "../../model/documents/documents.js";
import type { GroupGrowth } from "./growth/group_growth.js";
import { isLeaking, type JudgedVersion, leaksEverywhere, rateOf } from "./judged_version.js";
import { rateSeen } from "./lines/seen_lines.js";

/** Share of the rate of the version that leaks. */
const ALIKE = 0.5;
const NEARLY = 0.3;

/** A line that certainly leaks, and its rate, bytes per ms. */
export interface LeakingLine {
  readonly line: FrameJson;
  readonly rate: number;
}

/**
 * The first of the versions that leak, up to the accused one. Versions between them that may have leaked are no gap. `shown`: the line
 * that leaks, by which a version that ran too short for RSS is judged, too; null: none is certain.
 */
export function firstLeaking(
  versions: readonly JudgedVersion[],
  accused: JudgedVersion,
  shown: LeakingLine | null = null,
): JudgedVersion {
  const leak = rateOf(accused);
  const isEverywhere = leaksEverywhere(accused);
  let first = accused;
  for (const version of versions.slice(0, versions.indexOf(accused)).reverse()) {
    const ofLine = shown === null ? null : rateSeen(shown.line, version.seen);
    const isByLine = shown !== null && ofLine !== null && ofLine >= ALIKE * shown.rate;
    if (leak.newLine !== undefined) {
      // No earlier version kept as much; one that ran for hours may have leaked all the same.
      if (!isByLine) {
        break;
      }
      first = version;
      continue;
    }
    const leaksAlike = isLeaking(version) && leaksEverywhere(version) === isEverywhere;
    const rates = [leak.rate, first.growth?.rate ?? leak.rate];
    const isAlike = rates.some((rate) => growsAlike(version, rate)) && !isSlower(version, leak);
    if (leaksAlike || isAlike || (isByLine && isEverywhere)) {
      first = version;
    } else if (!mayLeak(version, leak)) {
      break;
    }
  }
  return first;
}

/** Whether it ran too short for a decision, and grew as fast. */
function growsAlike({ growth }: JudgedVersion, rate: number): boolean {
  return (
    growth?.shape === "undecided" &&
    growth.rate > rate * (1 - NEARLY) &&
    growth.rate < rate * (1 + NEARLY)
  );
}

/** Whether it may grow like the accused version. */
function mayLeak(version: JudgedVersion, leak: Leak): boolean {
  const { growth } = version;
  return (
    !isSlower(version, leak) &&
    (growth === null || growth.shape === "short" || growth.low <= leak.rate)
  );
}

type Leak = Pick<GroupGrowth, "rate" | "shownBy">;

/** Whether it certainly grew more slowly: by the line that shows the leak, where the agent saw it, otherwise by its interval. */
export function isSlower({ growth, seen }: JudgedVersion, { rate, shownBy }: Leak): boolean {
  const before = shownBy === undefined ? null : rateSeen(shownBy, seen);
  return before === null
    ? growth !== null && growth.shape !== "short" && growth.high < rate * ALIKE
    : before < rate * ALIKE;
}
