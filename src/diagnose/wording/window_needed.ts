/** The window length that a verdict needs, shared by the rule's sentence and the advice. */
import type { Millis } from "../../model/base/units.js";
import type { SuspectJson, VerdictKind } from "../../model/documents/diagnosis_document.js";
import type { Observations } from "../evidence/observations.js";

const SECOND: Millis = 1000;
const MINUTE: Millis = 60 * SECOND;
const HOUR: Millis = 60 * MINUTE;

/** Common window lengths, in the syntax of `--for`. */
const WINDOWS: readonly (readonly [Millis, string])[] = [
  [30 * SECOND, "30s"],
  [MINUTE, "1min"],
  [2 * MINUTE, "2min"],
  [5 * MINUTE, "5min"],
  [10 * MINUTE, "10min"],
  [20 * MINUTE, "20min"],
  [30 * MINUTE, "30min"],
  [HOUR, "1h"],
  [2 * HOUR, "2h"],
  [4 * HOUR, "4h"],
  [8 * HOUR, "8h"],
  [24 * HOUR, "24h"],
];
const DAY: Millis = 24 * HOUR;

/**
 * "a window of 10 min would settle it", or "a run of 10 min or more would settle it" if the program has ended.
 * `neededMs` is the length of the whole window; it is rounded up to a common length.
 */
export function settledBy(observations: Observations, neededMs: Millis): string {
  const length = windowFor(neededMs)[1].replace(/[a-z]+/, " $&");
  return hasEnded(observations)
    ? `a run of ${length} or more would settle it`
    : `a window of ${length} would settle it`;
}

/** Whether the recorded program is known to have ended: it can only be run again, not be watched for longer. */
export function hasEnded({ evidence, target }: Observations): boolean {
  return target.process.endedMs !== null && evidence.importedFrom === undefined;
}

/** In less time, many a cache does not reach the size at which the code clears it. */
export const CLEARED_WITHIN_MS = MINUTE;

/** Whether the code may still clear the container of the first suspect, as in `if len(cache) > LIMIT: cache.clear()`. */
export function mayBeCleared(
  kind: VerdictKind | null,
  observations: Observations,
  { holder, backlog }: Partial<SuspectJson> = {},
): boolean {
  const isContainer = (holder?.entries ?? 0) > 0 && backlog === undefined;
  const isYoung = observations.windowMs < CLEARED_WITHIN_MS && !hasEnded(observations);
  return kind === "python-leak" && isYoung && isContainer;
}

/** The value of `--for`: "10min". */
export function watchFor(neededMs: Millis): string {
  return windowFor(neededMs)[1];
}

function windowFor(neededMs: Millis): readonly [Millis, string] {
  return (
    WINDOWS.find(([lengthMs]) => lengthMs >= neededMs) ?? [
      neededMs,
      `${24 * Math.ceil(neededMs / DAY)}h`,
    ]
  );
}
