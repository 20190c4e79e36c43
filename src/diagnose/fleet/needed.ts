/**
 * How many instances of a young version it takes to decide, and for how long they must run. A slope is known to
 *
 *   half width  =  noise / (time^1.5 x root of instances)        of readings whose noise stays alike
 *
 * The noise is that of the version's own curve, or of one before it. A leak of {@link WANTED} of the limit a day has to
 * rise as surely as the decision at that age asks (see group_growth.ts), and still do so a while later (accused_version.ts).
 */
import type { Millis, TimeMs } from "../../model/base/units.js";
import type { FleetNeededJson } from "../../model/documents/fleet_diagnosis_document.js";
import { LASTING_MS } from "./accused_version.js";
import { type GroupGrowth, LEAST_DECIDED_MS, LEAST_SURE } from "./growth/group_growth.js";
import type { JudgedVersion } from "./judged_version.js";

const DAY_MS: Millis = 24 * 3_600_000;
const WANTED = 0.05;
/** The rate that a curve shows differs from the true one; the half width is kept below this share of what decides. */
const MARGIN = 0.6;

/** null: no instance of the newest version runs, it is old enough, or nothing is known about its noise. The newest is last. */
export function needed(versions: readonly JudgedVersion[], endMs: TimeMs): FleetNeededJson | null {
  const newest = versions.at(-1);
  const growth = newest?.growth;
  if (newest === undefined || growth === null || growth === undefined) {
    return null;
  }
  const full = growth.limit || growth.level;
  const rate = (WANTED * full) / DAY_MS;
  const earlier = versions.slice(0, -1);
  const ms = LEAST_DECIDED_MS + LASTING_MS;
  const halfWidth = MARGIN * (1 - LEAST_SURE) * rate;
  const [noise] = [growth, ...earlier.map((each) => each.growth).reverse()].flatMap(noiseOf);
  const running = newest.processes.filter(({ process }) => (process.endedMs ?? endMs) >= endMs);
  if (growth.windowMs >= ms || noise === undefined || full <= 0 || running.length === 0) {
    return null;
  }
  return {
    version: newest.version,
    share: WANTED,
    isOfLimit: growth.limit > 0,
    instances: Math.max(1, Math.ceil((noise / (halfWidth * LEAST_DECIDED_MS ** 1.5)) ** 2)),
    ms,
    running: new Set(running.map(({ process }) => process.instance)).size,
    ranMs: growth.windowMs,
  };
}

function noiseOf(growth: GroupGrowth | null): number[] {
  if (growth === null) {
    return [];
  }
  const { straight, curve, windowMs } = growth;
  const halfWidth = (straight.high - straight.low) / 2;
  return halfWidth > 0 ? [halfWidth * windowMs ** 1.5 * Math.sqrt(curve.processes)] : [];
}
