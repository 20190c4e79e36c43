/** What the gates compare, of one recording: each figure with the interval in which it lies. */
import {
  addUp,
  diagnoseRecording,
  groupSites,
  type Recording,
  type SiteGroup,
  summarize,
} from "../inspect/index.js";
import { type Interval, interval95 } from "../model/base/interval.js";
import type { Bytes, Millis, Tell } from "../model/base/units.js";
import type { DiagnosisJson } from "../model/documents/diagnosis_document.js";
import type { SummaryJson } from "../model/documents/documents.js";

/** A figure and the interval in which it lies. */
export interface Figure extends Interval {
  readonly value: number;
}

/** Below it, what a start-up adds and what leaks look alike (diagnose/rules/window.rule.ts). */
export const SETTLED_MS: Millis = 25_000;

export interface Measured {
  readonly summary: SummaryJson;
  readonly diagnosis: DiagnosisJson;
  readonly durationMs: Millis;
  /** Highest memory of the process tree; null where no poll saw it. Of several processes the sum of their RSS counts
   * shared pages more than once, so that it is the upper end; the highest PSS of a poll is the lower end. */
  readonly peak: Figure | null;
  /** Live bytes at the moment of the most, by the samples; null where nothing was sampled. */
  readonly live: Figure | null;
  /** Bytes per hour after the first third of the window; null where the window is too short to measure it. */
  readonly growth: Figure | null;
  /** By what they held at the peak, the most first. */
  readonly groups: readonly SiteGroup[];
}

/** `tell` counts looks. Throws TidemarkError where the recording turns out damaged. */
export async function measure(recording: Recording, tell: Tell): Promise<Measured> {
  const summary = summarize(recording, "end");
  const diagnosis = await diagnoseRecording(recording, tell);
  const groups = groupSites(summary.sites)
    .filter(({ atPeak }) => atPeak.bytes > 0)
    .sort((a, b) => b.atPeak.bytes - a.atPeak.bytes);
  return {
    summary,
    diagnosis,
    durationMs: recording.endMs - recording.startMs,
    peak: peakOf(summary, recording.end?.maxRssBytes ?? 0),
    live: groups.length === 0 ? null : atPeakOf(groups),
    growth: growthOf(summary.series),
    groups,
  };
}

/** `maxRssBytes`: of the largest process, as the kernel reports it at the end: polls may miss a short one. */
function peakOf({ rss, pss, processes }: SummaryJson, maxRssBytes: Bytes): Figure | null {
  if (rss.peakBytes <= 0) {
    return null;
  }
  const readings = processes.map(({ peakRssBytes }) => peakRssBytes ?? 0);
  const largest = Math.max(maxRssBytes, ...readings);
  const low = processes.length > 1 ? Math.max(pss?.peakBytes ?? 0, largest) : rss.peakBytes;
  // PSS and the largest process are lower ends, whatever was polled at the same time.
  const high = Math.max(rss.peakBytes, low);
  return { value: low, low, high };
}

function growthOf(series: SummaryJson["series"]): Figure | null {
  const { growthLowBytesPerHour: low, growthHighBytesPerHour: high } = series;
  return low === undefined || high === undefined
    ? null
    : { value: series.growthBytesPerHour, low, high };
}

/** What sites together held at the peak. */
export function atPeakOf(groups: readonly SiteGroup[]): Figure {
  const { bytes, standardErrorBytes } = addUp(groups, ({ atPeak }) => [
    atPeak.bytes,
    atPeak.standardErrorBytes,
  ]);
  return { value: bytes, ...interval95(bytes, standardErrorBytes) };
}
