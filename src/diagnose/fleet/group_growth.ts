/**
 * Growth of processes that are alike: of a version, or of one instance through its restarts.
 *
 *   window   7 d, then 1 d, 6 h, 1 h; a shorter one only for growth that began within it
 *   curve    age_curve.ts         grows?  ../series/growth.ts, the decision for single processes, too
 *                                 lasts?  lasting_growth.ts
 *
 * A leak is what grows and lasts. What grows and may still be a filling cache is undecided.
 */
import type { Bytes, Millis, TimeMs } from "../../model/base/units.js";
import type { FleetShape } from "../../model/documents/fleet_diagnosis_document.js";
import { assessGrowth } from "../series/growth.js";
import { median } from "../series/trend.js";
import { type AgeCurve, ageCurve } from "./age_curve.js";
import { type LastingGrowth, lastingGrowth } from "./lasting_growth.js";
import type { Unloaded } from "./load_removal.js";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
export const WINDOWS_MS: readonly Millis[] = [7 * DAY_MS, DAY_MS, 6 * HOUR_MS, HOUR_MS];
/** Start-up, which no window needs. */
const START_UP_MS = 10 * 60_000;
/** Smallest rise over a curve: bytes, and share of the level; of a window within a longer one, more. */
const LEAST = { bytes: 2e6, share: 0.006 };
const LEAST_OF_PART = { bytes: 8e6, share: 0.04 };
/** A version that ran for less than this share of a window is judged in a shorter one. */
const LEAST_USED = 0.3;

export interface GroupGrowth extends LastingGrowth {
  readonly shape: FleetShape;
  readonly windowMs: Millis;
  readonly curve: AgeCurve;
  readonly level: Bytes;
}

export interface Judging {
  readonly endMs: TimeMs;
  /** Half the width of intervals in standard errors. */
  readonly z: number;
  /** Whether what follows the load was removed. */
  readonly isLoadKnown: boolean;
}

/** The decision of the longest window, or of a shorter one that shows a leak which began in it. null: no readings. */
export function groupGrowth(processes: readonly Unloaded[], judging: Judging): GroupGrowth | null {
  let longest: GroupGrowth | null = null;
  for (const windowMs of WINDOWS_MS) {
    if (longest !== null && windowMs > longest.windowMs * (1 - LEAST_USED)) {
      continue;
    }
    const growth = growthIn(processes, windowMs, judging, longest === null ? LEAST : LEAST_OF_PART);
    if (growth?.shape === "leaking") {
      return growth;
    }
    longest ??= growth;
    // A part of a filling curve also looks straight.
    if (longest !== null && !["flat", "stepped"].includes(longest.shape)) {
      return longest;
    }
  }
  return longest;
}

function growthIn(
  processes: readonly Unloaded[],
  windowMs: Millis,
  { endMs, z, isLoadKnown }: Judging,
  least: typeof LEAST,
): GroupGrowth | null {
  const window = { startMs: endMs - windowMs, endMs };
  const whole = ageCurve(processes, window);
  if (whole === null) {
    return null;
  }
  const curve = whole.axis === "age" ? withoutStartUp(whole) : whole;
  const lasting = lastingGrowth(curve, z);
  const lengthMs = (curve.times.at(-1) ?? 0) - (curve.times[0] ?? 0);
  const level = levelOf(processes, endMs);
  const about = { windowMs: Math.min(windowMs, lengthMs + curve.binMs), curve, level };
  if (lasting === null) {
    return { ...NOTHING, ...about, shape: "short" };
  }
  const assessed = assessGrowth(curve);
  const leastRate = Math.max(least.bytes, least.share * level) / lengthMs;
  const grows = assessed.shape === "growing" && lasting.high > leastRate;
  const lasts = lasting.low > 0 && lasting.rate > leastRate;
  const mayBeLoad = !isLoadKnown && lengthMs < 2 * DAY_MS;
  const shape: FleetShape =
    grows && lasts
      ? mayBeLoad
        ? "undecided"
        : "leaking"
      : assessed.shape === "short"
        ? "short"
        : grows
          ? lasting.low > 0 || assessed.rise > leastRate * lengthMs
            ? "undecided"
            : "flat"
          : assessed.shape === "stepped"
            ? "stepped"
            : lasting.fillBytes > leastRate * lengthMs && lasting.low <= 0
              ? "filling"
              : "flat";
  return { ...lasting, ...about, shape };
}

const NOTHING = { rate: 0, low: 0, high: 0, fillBytes: 0, fillMs: 0, noise: 0 };

function withoutStartUp(curve: AgeCurve): AgeCurve {
  const { times } = curve;
  const last = times.at(-1) ?? 0;
  const from = times.findIndex((time) => time >= Math.min(START_UP_MS, last / 6));
  return {
    ...curve,
    times: times.slice(from),
    values: curve.values.slice(from),
    weights: curve.weights.slice(from),
  };
}

/** Median RSS at the end of the running processes, otherwise of all. */
function levelOf(processes: readonly Unloaded[], endMs: TimeMs): Bytes {
  const running = processes.filter(({ process }) => (process.endedMs ?? endMs) >= endMs);
  const last = (running.length > 0 ? running : processes).flatMap(
    ({ process }) => process.rss.values.at(-1) ?? [],
  );
  return median(last);
}
