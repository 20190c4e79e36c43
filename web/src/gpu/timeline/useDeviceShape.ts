/** Data that the views of a device need in addition to its replay; computed once per page. */

import { useMemo } from "react";
import { float64At } from "../../../../src/model/base/columns.js";
import type { GpuPageDevice } from "../../../../src/model/documents/gpu/gpu_page.js";
import { MomentHeights } from "./momentHeights.js";
import { type StackedAllocations, stackAllocations } from "./timelineLayout.js";

export interface DeviceShape {
  readonly stacked: StackedAllocations;
  readonly heights: MomentHeights;
  /** Requested bytes at the highest moment; at least 1. */
  readonly highest: number;
}

export function useDeviceShape({ replay }: GpuPageDevice): DeviceShape {
  return useMemo(() => {
    const heights = new MomentHeights(replay.requested);
    const highest = float64At(replay.requested, heights.highest(0, replay.events + 1));
    return { stacked: stackAllocations(replay), heights, highest: Math.max(1, highest) };
  }, [replay]);
}
