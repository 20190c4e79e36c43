/** How fast the memory of a whole process tree grows: one figure for the header, the verdict and the JSON. */
import type { TimeMs } from "../../model/base/units.js";
import type { MemorySeries, Metric } from "../../model/profile/series.js";
import { assessGrowth, type Growth } from "./growth.js";
import { type Readings, readingsOf } from "./readings.js";

export interface TotalGrowth extends Growth {
  readonly metric: Metric;
  readonly readings: Readings;
}

/** What the figure is of, to begin a sentence with. */
export function memoryName({ metric }: TotalGrowth): string {
  return metric === "rssBytes" ? "RSS" : "Memory of the process tree";
}

/** PSS counts what processes share once; it is polled less often than RSS. */
const FEWEST_OF_PSS = 16;

/** `root`: the first process of the tree, whose series carries the tree's figures. `members`: how many processes the
 * tree had. A lone process is judged by its own RSS, a tree by its PSS, or its RSS where PSS is not known. */
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
      return { metric, readings, ...assessGrowth(readings) };
    }
  }
  const readings = readingsOf(series, "rssBytes", endedMs);
  return { metric: "rssBytes", readings, ...assessGrowth(readings) };
}
