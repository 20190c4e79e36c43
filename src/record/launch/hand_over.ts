/**
 * Where memory is short, no recorder stays beside the program:
 *
 *   recorder ── "alone", leaves ──> guard keeps the pool ... the program ends ──> orphan file ── a second recorder
 *                                                                                  completes the recording, sums it up
 *
 * The agents record as before. What is missing is what only a recorder sees: RSS over time, lookups of holders.
 */
import { formatBytesBriefly } from "../../model/base/numbers.js";
import type { Bytes } from "../../model/base/units.js";

/** With less room than that for the recorder and the program's growth, the recorder leaves. */
export const LEAST_ROOM: Bytes = 100 * 2 ** 20;

const HANDED_OVER = "The recorder left the program to its guard:";

export function handedOverSentence(roomBytes: Bytes): string {
  return `${HANDED_OVER} there was room for ${formatBytesBriefly(roomBytes)} beside the program, and the recorder needs up to ${formatBytesBriefly(LEAST_ROOM)}. RSS and processes end there; the profile goes on to the program's end.`;
}

export function isHandedOver(limits: readonly string[]): boolean {
  return limits.some((sentence) => sentence.startsWith(HANDED_OVER));
}
