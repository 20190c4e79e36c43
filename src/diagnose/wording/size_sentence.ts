/** The sentences about the memory that a service needs. */
import { formatBytes, formatDuration, formatRate } from "../../model/base/numbers.js";
import type { Bytes } from "../../model/base/units.js";
import type { FleetDiagnosisJson } from "../../model/documents/fleet_diagnosis_document.js";
import type { ServiceSizeJson, SizeState } from "../../model/documents/sizes_document.js";

const DAY_MS = 86_400_000;
const WEEK_MS = 7 * DAY_MS;
const WEEK_HOURS = 168;
/** Of its level within a week. */
const GROWS_SHARE = 0.05;
/** Of the limit that is needed. */
const BESIDE_SHARE = 0.1;

/** What the state and the sentences are made from. */
export interface SizeFigures
  extends Omit<ServiceSizeJson, "service" | "state" | "summary" | "cautions" | "savedBytes"> {
  readonly needs: NonNullable<ServiceSizeJson["needs"]>;
  readonly diagnosis: FleetDiagnosisJson | undefined;
  readonly besideBytes: Bytes;
  readonly dayPeaks: readonly Bytes[];
  /** The highest limit at which one of its processes was killed; 0: none is known. */
  readonly killedAt: Bytes;
}

/** "A limit of 768 MiB is enough: 99 % of an instance's daily peaks are below 611 MiB. It has 2.00 GiB." */
export function sizeSummary(state: SizeState, about: SizeFigures): string {
  const { diagnosis, limitBytes, needs, peakBytes, instances } = about;
  const peak = `99 % of the daily peaks of an instance are at most ${formatBytes(peakBytes)}`;
  const need = formatBytes(needs.limitBytes);
  switch (state) {
    case "leaks":
      return `It leaks ${formatRate(diagnosis?.leak?.growthBytesPerHour ?? 0)} an instance: no limit is enough for long. Repair the leak first.`;
    case "unknown":
      return instances === 0
        ? "No instance runs."
        : `It was observed for ${formatDuration(about.observedMs)}; its daily peak is not known yet.`;
    case "unlimited":
      return `It has no limit that is known; ${need} would be enough: ${peak}.`;
    case "fits":
      return `Its limit of ${formatBytes(limitBytes)} fits: ${peak}.`;
    case "lower":
      return `A limit of ${need} is enough, instead of ${formatBytes(limitBytes)}: ${peak}.`;
    case "higher":
      return `It needs a limit of ${need}, instead of ${formatBytes(limitBytes)}: ${peak}${killsText(about)}.`;
  }
}

function killsText({ kills }: SizeFigures): string {
  return kills === 0 ? "" : `, and it was killed for memory ${times(kills)}`;
}

/** What would break, or may be wrong. */
export function sizeCautions(state: SizeState, about: SizeFigures): string[] {
  if (state === "leaks" || state === "unknown") {
    return [];
  }
  const { needs, dayPeaks, kills, killedAt, besideBytes, observedMs, diagnosis } = about;
  const above = dayPeaks.filter((peak) => peak > needs.limitBytes);
  const newest = diagnosis?.versions.at(-1);
  const all: readonly (string | false)[] = [
    above.length > 0 && wouldBreak(above, about),
    kills > 0 &&
      `It was killed for memory ${times(kills)}, so its real peak is unknown${killedAt === 0 ? "" : `: what is proposed is at least half as much again as the limit of ${formatBytes(killedAt)} at which it was killed`}. Look again after a few days with a higher limit.`,
    about.earlierVersions &&
      `What runs now has run for less than a day: peaks of earlier versions are used as well.`,
    observedMs < WEEK_MS &&
      `It was observed for ${formatDuration(observedMs)}: a peak that comes once a week was not seen.`,
    newest !== undefined &&
      newest.low > 0 &&
      newest.growthBytesPerHour * WEEK_HOURS > newest.levelBytes * GROWS_SHARE &&
      `It still grows, by ${formatRate(newest.growthBytesPerHour)} an instance: wait until it has reached its level.`,
    besideBytes > needs.limitBytes * BESIDE_SHARE &&
      `Its cgroup uses ${formatBytes(besideBytes)} beside the program: file pages, which the kernel gives up under pressure, or other processes, which the limit has to hold as well.`,
  ];
  return all.filter((text) => text !== false);
}

function wouldBreak(
  above: readonly Bytes[],
  { dayPeaks, needs, highestBytes }: SizeFigures,
): string {
  return `On ${above.length} of ${dayPeaks.length} days of an instance its peak was above ${formatBytes(needs.limitBytes)}, up to ${formatBytes(highestBytes)}: these would have been killed.`;
}

function times(count: number): string {
  return count === 1 ? "once" : `${count} times`;
}
