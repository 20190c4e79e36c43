/** The error of a growth between two moments of one recording. */
import type { Bytes } from "../../model/base/units.js";

/** Estimates of one moment: what lives, and what was allocated until then. @internal */
export interface Figures {
  live: Bytes;
  variance: number;
  allocated: Bytes;
  allocatedVariance: number;
}

/**
 * Of the growth between two moments of one recording: samples that live at both are the same and add no error. What was
 * sampled in between does, and what was freed in between by its part of it.
 * @internal
 */
export function varianceBetween(a: Figures, b: Figures): number {
  const [before, after] = a.allocated <= b.allocated ? [a, b] : [b, a];
  const allocated = after.allocated - before.allocated;
  const variance = Math.max(0, after.allocatedVariance - before.allocatedVariance);
  const freed = Math.max(0, allocated - (after.live - before.live));
  const ofFreed = before.live > 0 ? (before.variance / before.live) * freed : 0;
  return variance + Math.max(ofFreed, allocated > 0 ? (variance / allocated) * freed : 0);
}
