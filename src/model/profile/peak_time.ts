/** When a peak of RSS was reached, in words. */
import type { Millis, TimeMs } from "../base/units.js";

/** The part of the summary's `rss` that states when; `peakAfterMs` is absent for a peak that a reading saw. */
export interface PeakTime {
  readonly peakMs: TimeMs;
  readonly peakAfterMs?: TimeMs;
}

/** A process that started this long before its recording was attached to. */
const ATTACHED_MS: Millis = 1_000;

/**
 * "at 1.2 s"; for a high-water mark of the kernel, which has no time, "between 1.2 s and 1.4 s", "before 443 ms", or
 * "before the recording began". `since` formats a time as the time since the recording's start.
 */
export function peakTimeText(
  { peakMs, peakAfterMs }: PeakTime,
  startMs: TimeMs,
  since: (timeMs: TimeMs) => string,
): string {
  if (peakAfterMs === undefined) {
    return `at ${since(peakMs)}`;
  }
  if (peakAfterMs > startMs) {
    return `between ${since(peakAfterMs)} and ${since(peakMs)}`;
  }
  const isAttached = peakAfterMs < startMs - ATTACHED_MS && peakMs < startMs + ATTACHED_MS;
  return isAttached ? "before the recording began" : `before ${since(peakMs)}`;
}
