/** What a recording notes about holder lookups that were late or not made. */
import type { LookupAnswer } from "../../holders/lookup_request.js";
import { formatDurationBriefly, formatExactCount } from "../../model/base/numbers.js";
import type { Millis, Objects, Pid } from "../../model/base/units.js";

/** Why a due lookup has no result. */
export type LookupObstacle = "memory" | "budget" | "unfinished" | "ended";

/** A due lookup has no result. `agoMs`: from the newest lookup to the end; null if there was none. */
export function notMade(agoMs: Millis | null, obstacle: LookupObstacle): string {
  const known =
    agoMs === null
      ? "No holders were looked up"
      : `The holders are from ${formatDurationBriefly(agoMs)} before the end`;
  const which = agoMs === null ? "a lookup" : "a later lookup";
  switch (obstacle) {
    case "memory":
      return `${known}: too little memory was left for ${which}.`;
    case "budget":
      return `${known}: ${which} would have exceeded the recorder's CPU budget.`;
    case "ended":
      return `${known}: the process ended during ${which}.`;
    case "unfinished":
      return `${known}: ${which} had not finished at the end, because the machine was busy.`;
  }
}

/** The first lookup of suspects waited for the budget. `elapsedMs`: from the start of the recording to the lookup. */
export function madeLate(elapsedMs: Millis): string {
  return `The holders were looked up ${formatDurationBriefly(elapsedMs)} after the start, and not earlier: a lookup would have exceeded the recorder's CPU budget.`;
}

/** The heap is not looked up again, or was not at all. `isFirst`: no earlier lookup found holders. */
export function tooLarge(
  { objects, refusal, cpuMs }: LookupAnswer,
  pid: Pid,
  { most, isFirst }: { readonly most: Objects; readonly isFirst: boolean },
): string {
  const not = isFirst && refusal !== null ? "were not looked up" : "are not looked up again";
  const why =
    refusal ??
    `the heap has ${formatExactCount(objects)} objects, more than ${formatExactCount(most)}, and the lookup took ${seconds(cpuMs)} of CPU`;
  return `The holders of growing sites ${not}: ${why}. To look them up by hand: tidemark heap ${pid} --retained`;
}

function seconds(ms: Millis): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
