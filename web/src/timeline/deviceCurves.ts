/** Device memory on the axis of RSS: bytes held by the processes' allocators at each time. */

import { float64At } from "../../../src/model/base/columns.js";
import type { ReportDocument } from "../../../src/model/documents/report_document.js";
import {
  deviceMetric,
  type MemorySeries,
  MOST_DEVICES,
} from "../../../src/model/profile/series.js";

export interface DeviceCurves {
  /** One value per time; null before the first reading. */
  readonly reserved: (number | null)[];
  readonly allocated: (number | null)[];
}

/** At `times` (seconds since 1970); null if no process reported a device. `pid` null: all processes. */
export function deviceCurves(
  report: ReportDocument,
  pid: number | null,
  times: readonly number[],
): DeviceCurves | null {
  const series = report.series.filter((one) => pid === null || one.pid === pid);
  const reserved = summed(series, "reservedBytes", times);
  const allocated = summed(series, "allocatedBytes", times);
  return reserved.some(known) || allocated.some(known) ? { reserved, allocated } : null;
}

function known(value: number | null): boolean {
  return value !== null;
}

/** Each reading counts until the next one or the end of its process. */
function summed(
  series: readonly MemorySeries[],
  figure: "reservedBytes" | "allocatedBytes",
  times: readonly number[],
): (number | null)[] {
  const sum = new Array<number | null>(times.length).fill(null);
  for (const { timesMs, values } of series) {
    const endMs = timesMs.at(-1) ?? 0;
    for (let device = 0; device < MOST_DEVICES; device++) {
      const column = values.get(deviceMetric(device, figure));
      if (column === undefined) {
        continue;
      }
      let at = 0;
      let last: number | null = null;
      times.forEach((time, row) => {
        for (; at < timesMs.length && float64At(timesMs, at) <= time * 1000; at++) {
          if (!Number.isNaN(float64At(column, at))) {
            last = float64At(column, at);
          }
        }
        if (last !== null) {
          sum[row] = (sum[row] ?? 0) + (time * 1000 <= endMs ? last : 0);
        }
      });
    }
  }
  return sum;
}
