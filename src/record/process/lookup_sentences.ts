/** What a recording notes about holder lookups that were delayed, expensive, or not made. */
import type { LookupAnswer } from "../../holders/lookup_request.js";
import type { Millis, Objects, Pid } from "../../model/base/units.js";

/** `isMade`: in the end. */
export function delayed(waitedMs: Millis, isMade: boolean, lacksMemory: boolean): string {
  const waited = `${Math.round(waitedMs / 1000)} s`;
  if (isMade) {
    const why = lacksMemory
      ? "because too little memory was left for it"
      : "to keep the recorder within its CPU budget";
    return `A holder lookup was delayed by ${waited} ${why}.`;
  }
  const why = lacksMemory
    ? "too little memory was left for it"
    : "the recorder's CPU budget had no room for it";
  return `A holder lookup was due for ${waited} but not made: ${why}.`;
}

export function overdrawn(cpuMs: Millis, owedMs: Millis): string {
  return `A holder lookup took ${seconds(cpuMs)} of CPU, more than the recorder's budget had left: the next one waits until that is paid back, in about ${Math.ceil(owedMs / 60_000)} min.`;
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
    `the heap has ${objects.toLocaleString("en-US")} objects, more than ${most.toLocaleString("en-US")}, and the lookup took ${seconds(cpuMs)} of CPU`;
  return `The holders of growing sites ${not}: ${why}. To look them up by hand: tidemark heap ${pid} --retained`;
}

function seconds(ms: Millis): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
