/** What the pictures of a device need beside its replay: made once, kept while the page is open. */

import { useMemo } from "react";
import { float64At } from "../../../../src/model/base/columns.js";
import type { GpuPageDevice } from "../../../../src/model/documents/gpu/gpu_page.js";
import { MomentHeights } from "./momentHeights.js";
import { type StackedAllocations, stackAllocations } from "./timelineLayout.js";

export interface DeviceShape {
  readonly stacked: StackedAllocations;
  readonly heights: MomentHeights;
  /** Bytes asked for at the highest moment; 1 at least. */
  readonly highest: number;
}

export function useDeviceShape({ replay }: GpuPageDevice): DeviceShape {
  return useMemo(() => {
    const heights = new MomentHeights(replay.requested);
    const highest = float64At(replay.requested, heights.highest(0, replay.events + 1));
    return { stacked: stackAllocations(replay), heights, highest: Math.max(1, highest) };
  }, [replay]);
}
