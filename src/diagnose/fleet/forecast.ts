/** Time to the limit of each running process at the growth of its group. */
import type { TimeMs } from "../../model/base/units.js";
import type { FleetForecastJson } from "../../model/documents/fleet_diagnosis_document.js";
import { median } from "../series/trend.js";
import type { FleetProcess } from "./curves/fleet_evidence.js";

/** The last readings, whose median is the level. */
const LAST = 5;

/** `rate`, `low`, `high`: bytes per ms. The first to reach its limit is first; processes without a limit are left out. */
export function forecasts(
  processes: readonly FleetProcess[],
  { rate, low, high }: { readonly rate: number; readonly low: number; readonly high: number },
  endMs: TimeMs,
): FleetForecastJson[] {
  return processes
    .filter(
      ({ endedMs, limitBytes, rss }) =>
        (endedMs ?? endMs) >= endMs && limitBytes > 0 && rss.values.length > 0,
    )
    .map(({ process, instance, version, limitBytes, rss }) => {
      const left = Math.max(0, limitBytes - median(rss.values.slice(-LAST)));
      // At its limit it has no time left; 0 would be "never".
      const at = (slope: number) => (slope > 0 ? Math.max(1, left / slope) : 0);
      const about = { process, instance, version };
      return { ...about, msToLimit: at(rate), earliestMs: at(high), latestMs: at(low) };
    })
    .sort((a, b) => a.msToLimit - b.msToLimit);
}
