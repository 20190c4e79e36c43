/**
 * How many instances of a young version it takes to decide, and for how long they must run. A slope is known to
 *
 *   half width  =  noise / (time^1.5 x root of instances)        of readings whose noise stays alike
 *
 * The noise is that of the version's own curve, or of the one before it. A leak of {@link WANTED} of the limit a day has to stand
 * out by its whole interval at the earliest age at which a version is decided.
 */
import type { Millis } from "../../model/base/units.js";
import type { FleetNeededJson } from "../../model/documents/fleet_diagnosis_document.js";
import type { GroupGrowth } from "./group_growth.js";
import { LEAST_LASTING_MS } from "./group_growth.js";
import type { JudgedVersion } from "./judged_version.js";
import { hasPrecedent, LEAST_EARLY_MS } from "./precedent.js";

const DAY_MS: Millis = 24 * 3_600_000;
const WANTED = 0.05;

/** null: the newest version is decided, or nothing is known about its noise. The newest version is last. */
export function needed(versions: readonly JudgedVersion[]): FleetNeededJson | null {
  const newest = versions.at(-1);
  const growth = newest?.growth;
  if (newest === undefined || growth === null || growth === undefined) {
    return null;
  }
  const lengthMs = growth.windowMs;
  const earlier = versions.slice(0, -1);
  const ms = hasPrecedent(earlier, LEAST_EARLY_MS) ? LEAST_EARLY_MS : LEAST_LASTING_MS;
  const isOpen = growth.shape === "short" || growth.shape === "undecided";
  const noise = [growth, ...earlier.reverse().map((each) => each.growth)]
    .flatMap((each) => (each === null ? [] : noiseOf(each)))
    .at(0);
  const full = growth.limit || growth.level;
  if (!isOpen || lengthMs >= ms || noise === undefined || full <= 0) {
    return null;
  }
  const halfWidth = (WANTED * full) / DAY_MS;
  const instances = Math.max(1, Math.ceil((noise / (halfWidth * ms ** 1.5)) ** 2));
  return {
    version: newest.version,
    share: WANTED,
    ...{ instances, ms },
    ...{ running: growth.curve.processes, ranMs: lengthMs },
  };
}

function noiseOf({ straight, curve, windowMs }: GroupGrowth): number[] {
  const halfWidth = (straight.high - straight.low) / 2;
  return halfWidth > 0 ? [halfWidth * windowMs ** 1.5 * Math.sqrt(curve.processes)] : [];
}
