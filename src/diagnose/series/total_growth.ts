/** The growth rate of a whole process tree's memory, used by the header, the verdict and the JSON. */
import type { TimeMs } from "../../model/base/units.js";
import type { MemorySeries, Metric } from "../../model/profile/series.js";
import { assessGrowth, type Growth, isFirm, isWindowShort, withoutRate } from "./growth.js";
import { type Readings, readingsOf } from "./readings.js";

export interface TotalGrowth extends Growth {
  readonly metric: Metric;
  readonly readings: Readings;
}

/**
 * The growth that a site's share refers to: that of the whole program if it grows with certainty, but at least
 * `kept`, the growth of all sites.
 */
export function growthShown(total: TotalGrowth, kept: number): number {
  return isFirm(total) ? Math.max(kept, total.slope) : kept;
}

/** The name of the memory that was measured, as the subject of a sentence. */
export function memoryName({ metric }: TotalGrowth): string {
  return metric === "rssBytes" ? "RSS" : "Memory of the process tree";
}

/** Without a rate in a window too short for one, however many readings it has. */
function growthOf(readings: Readings): Growth {
  const growth = assessGrowth(readings);
  return isWindowShort(readings) ? withoutRate(growth) : growth;
}

/** PSS counts shared memory once; it is polled less often than RSS. */
const FEWEST_OF_PSS = 16;

/**
 * `root`: the first process of the tree, whose series carries the tree's figures. `members`: number of
 * processes in the tree. A single process is judged by its own RSS, a tree by its PSS, or by its RSS if PSS is
 * unknown.
 */
export function totalGrowth(
  { series, endedMs }: { readonly series: MemorySeries; readonly endedMs: TimeMs | null },
  members: number,
): TotalGrowth {
  const candidates: readonly [Metric, number][] =
    members > 1
      ? [
          ["treePssBytes", FEWEST_OF_PSS],
          ["treeRssBytes", 1],
        ]
      : [];
  for (const [metric, fewest] of candidates) {
    const readings = readingsOf(series, metric, endedMs);
    if (readings.values.length >= fewest) {
      return { metric, readings, ...growthOf(readings) };
    }
  }
  const readings = readingsOf(series, "rssBytes", endedMs);
  return { metric: "rssBytes", readings, ...growthOf(readings) };
}
