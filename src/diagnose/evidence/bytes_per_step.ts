import type { Bytes } from "../../model/base/units.js";
import type { Evidence } from "./evidence.js";

const FEWEST_STEPS = 10;

/**
 * Growth per step if the program marks its steps, which varies less than growth per hour. `slope`: bytes per
 * ms. null if it marks no steps.
 */
export function bytesPerStep({ events, window }: Evidence, slope: number): Bytes | null {
  const settledMs = window.startMs + (window.endMs - window.startMs) / 3;
  const steps = events.filter(({ kind, timeMs }) => kind === "step-begin" && timeMs >= settledMs);
  return steps.length < FEWEST_STEPS
    ? null
    : Math.round((slope * (window.endMs - settledMs)) / steps.length);
}
