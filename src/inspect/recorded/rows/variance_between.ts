/** The error of the growth between two moments of one recording. */
import type { Bytes } from "../../../model/base/units.js";

/** Estimates at one moment: live bytes, and bytes allocated until then. @internal */
export interface Figures {
  live: Bytes;
  variance: number;
  allocated: Bytes;
  allocatedVariance: number;
}

/**
 * The variance of the growth between two moments of one recording. Samples that are live at both moments add no
 * error. Samples taken in between do, and so do samples freed in between, by their share.
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
