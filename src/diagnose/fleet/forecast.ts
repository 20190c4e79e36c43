/**
 * Time to the limit of each running process, at the growth of its group, or at its own where that certainly differs: an
 * instance with half of the requests may leak half as fast.
 */
import type { TimeMs } from "../../model/base/units.js";
import type { FleetForecastJson } from "../../model/documents/fleet_diagnosis_document.js";
import { mannKendall } from "../series/mann_kendall.js";
import { median, theilSen } from "../series/trend.js";
import type { Unloaded } from "./curves/load_removal.js";
import { areShort, type GroupGrowth, LEAST_LASTING_MS } from "./growth/group_growth.js";

const HOUR_MS = 3_600_000;
/** Share of the limit. */
const NEAR = 0.85;
/** The last readings, whose median is the level. */
const LAST = 5;
const BINS = 48;
/** A process whose readings cover less of the group's window has no rate of its own. */
const LEAST_OF_WINDOW = 0.5;
/** Of the variance: an interval of 99.7 %, because there are many instances. */
const WIDER = 2.3;

type Rate = Pick<GroupGrowth, "rate" | "low" | "high">;

/** `windowMs`: the window in which the group's rate was seen. The first to reach its limit is first; processes without a limit are left out. */
export function forecasts(
  lives: readonly Unloaded[],
  group: Rate & Pick<GroupGrowth, "windowMs">,
  endMs: TimeMs,
): FleetForecastJson[] {
  return lives
    .filter(
      ({ process: { endedMs, limitBytes, rss } }) =>
        (endedMs ?? endMs) >= endMs && limitBytes > 0 && rss.values.length > 0,
    )
    .map((life) => {
      const { process, instance, version, limitBytes, rss } = life.process;
      const own = ownRate(life, group, endMs);
      const { rate, low, high } = own ?? group;
      const left = Math.max(0, limitBytes - median(rss.values.slice(-LAST)));
      // At its limit it has no time left; 0 would be "never".
      const at = (slope: number) => (slope > 0 ? Math.max(1, left / slope) : 0);
      const about = { process, instance, version };
      return {
        ...about,
        msToLimit: at(rate),
        earliestMs: at(high),
        latestMs: at(low),
        ...(own === null ? {} : { growthBytesPerHour: rate * HOUR_MS }),
      };
    })
    .sort((a, b) => a.msToLimit - b.msToLimit);
}

/** Whether no process lives for much longer than a day, and none of those that ended was near its limit: a nightly restart. */
export function areRestartedInTime(lives: readonly Unloaded[], endMs: TimeMs): boolean {
  const ended = lives.filter(({ process: { endedMs } }) => (endedMs ?? endMs) < endMs);
  return (
    areShort(lives, { endMs }) &&
    ended.every(
      ({ process: { rss, limitBytes } }) =>
        Math.max(...rss.values.slice(-LAST)) < NEAR * limitBytes,
    )
  );
}

/** The growth of this process alone; null if it may be that of the group, or if the process was seen for too short a time. */
function ownRate(
  { rss: { times, values } }: Unloaded,
  { rate, windowMs }: Pick<GroupGrowth, "rate" | "windowMs">,
  endMs: TimeMs,
): Rate | null {
  const startMs = endMs - windowMs;
  const bins = Array.from({ length: BINS }, () => [] as number[]);
  times.forEach((timeMs, at) => {
    bins[Math.floor(((timeMs - startMs) / windowMs) * BINS)]?.push(values[at] as number);
  });
  const seen = bins.flatMap((bin, at) =>
    bin.length === 0
      ? []
      : [{ timeMs: startMs + ((at + 0.5) / BINS) * windowMs, level: median(bin) }],
  );
  const spanMs = (seen.at(-1)?.timeMs ?? 0) - (seen[0]?.timeMs ?? 0);
  if (spanMs < Math.max(LEAST_LASTING_MS, LEAST_OF_WINDOW * windowMs)) {
    return null;
  }
  const levels = seen.map(({ level }) => level);
  const own = theilSen(
    seen.map(({ timeMs }) => timeMs),
    levels,
    WIDER * mannKendall(levels).dependence,
  );
  const differs = own.low > rate || own.high < rate;
  return own.low > 0 && differs ? { rate: own.slope, low: own.low, high: own.high } : null;
}
