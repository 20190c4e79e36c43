import type { Bytes } from "../../model/base/units.js";
import type { Evidence } from "./evidence.js";

const FEWEST_STEPS = 10;

/** Growth by one unit of work, where the program counts its steps; MB a step is steadier than MB an hour.
 * `slope`: bytes by ms. null where it counts none. */
export function bytesPerStep({ events, window }: Evidence, slope: number): Bytes | null {
  const settledMs = window.startMs + (window.endMs - window.startMs) / 3;
  const steps = events.filter(({ kind, timeMs }) => kind === "step-begin" && timeMs >= settledMs);
  return steps.length < FEWEST_STEPS
    ? null
    : Math.round((slope * (window.endMs - settledMs)) / steps.length);
}
