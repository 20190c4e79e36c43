/** The range of moments that a timeline shows, and the functions that change it. */
import { useEffect, useState } from "react";

const FEWEST_MOMENTS = 12;

export interface MomentRange {
  readonly from: number;
  readonly to: number;
  /** A factor below 1 shows less; the fixed point is at `share` (0 to 1) of the width. */
  zoom(factor: number, share: number): void;
  /** The left edge, within the trace. */
  move(from: number): void;
  all(): void;
}

export function useRange(events: number): MomentRange {
  const whole = events + 1;
  const [[from, to], setRange] = useState<readonly [number, number]>([0, whole]);
  useEffect(() => setRange([0, whole]), [whole]);
  const within = (left: number, span: number): readonly [number, number] => {
    const first = Math.max(0, Math.min(whole - span, left));
    return [first, first + span];
  };
  return {
    from,
    to,
    // Several wheel events may arrive before a redraw, so each continues from the previous one.
    zoom: (factor, share) =>
      setRange(([left, right]) => {
        const span = Math.min(whole, Math.max(FEWEST_MOMENTS, (right - left) * factor));
        return within(left + share * (right - left - span), span);
      }),
    move: (left) => setRange(([first, last]) => within(left, last - first)),
    all: () => setRange([0, whole]),
  };
}
