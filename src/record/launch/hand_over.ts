/**
 * If memory is short, no recorder stays while the program runs:
 *
 *   recorder ── "alone", leaves ──> guard keeps the pool ... the program ends ──> orphan file ── a second recorder
 * completes and summarizes the recording
 *
 * The agents record as before. Only the recorder's own data is missing: RSS over time, holder lookups.
 */
import { formatBytesBriefly } from "../../model/base/numbers.js";
import type { Bytes } from "../../model/base/units.js";

/** With less room for the recorder and the program's growth, the recorder leaves. */
export const LEAST_ROOM: Bytes = 100 * 2 ** 20;

const HANDED_OVER = "The recorder left the program to its guard:";

export function handedOverSentence(roomBytes: Bytes): string {
  return `${HANDED_OVER} only ${formatBytesBriefly(roomBytes)} of memory was left, and the recorder needs up to ${formatBytesBriefly(LEAST_ROOM)}. RSS and processes end there; the profile continues to the program's end.`;
}

export function isHandedOver(limits: readonly string[]): boolean {
  return limits.some((sentence) => sentence.startsWith(HANDED_OVER));
}
