/** The figures of one recording that gates compare, each with its interval. */
import {
  addUp,
  diagnoseRecording,
  diffDocument,
  groupSites,
  type Recording,
  type SiteGroup,
  summarize,
  treeGrowth,
} from "../inspect/index.js";
import { type Interval, interval95 } from "../model/base/interval.js";
import type { Bytes, Millis, OnProgress } from "../model/base/units.js";
import type { DiagnosisJson } from "../model/documents/diagnosis_document.js";
import type { DiffJson } from "../model/documents/documents.js";
import type { SummaryJson } from "../model/documents/summary_document.js";

/** A figure and its interval. */
export interface Figure extends Interval {
  readonly value: number;
}

const MS_PER_HOUR = 3_600_000;
/** In a shorter run, a start-up and a leak look the same (diagnose/rules/window.rule.ts). */
export const SETTLED_MS: Millis = 25_000;

/** Bytes per hour after the first third of the window. */
export interface MeasuredGrowth extends Figure {
  /** The same of the last third alone. */
  readonly late: Figure;
  readonly lateMs: Millis;
  /** Whether it rises throughout, by more than noise and single steps. */
  readonly isSteady: boolean;
}

export interface Measured {
  readonly summary: SummaryJson;
  readonly diagnosis: DiagnosisJson;
  readonly durationMs: Millis;
  /**
   * Highest memory of the process tree; null if no poll saw it. For several processes, the sum of RSS counts shared
   * pages more than once, so it is the upper end; the highest PSS of a poll is the lower end.
   */
  readonly peak: Figure | null;
  /** Sampled live bytes at their peak; null if nothing was sampled. */
  readonly live: Figure | null;
  /** null if the window is too short to measure it. */
  readonly growth: MeasuredGrowth | null;
  /** By their bytes at the peak, largest first. */
  readonly groups: readonly SiteGroup[];
  /** The site that grew most after the first third, beyond its error; null if none did. Reads the recording again. */
  readonly mostGrown: () => DiffJson["sites"][number] | null;
}

/** `onProgress` counts profiles. Throws TidemarkError if the recording is damaged. */
export async function measure(recording: Recording, onProgress: OnProgress): Promise<Measured> {
  const summary = summarize(recording, "end");
  const diagnosis = await diagnoseRecording(recording, onProgress);
  const groups = groupSites(summary.sites)
    .filter(({ atPeak }) => atPeak.bytes > 0)
    .sort((a, b) => b.atPeak.bytes - a.atPeak.bytes);
  return {
    summary,
    diagnosis,
    durationMs: recording.endMs - recording.startMs,
    peak: peakOf(summary, recording.end?.maxRssBytes ?? 0),
    live: groups.length === 0 ? null : atPeakOf(groups),
    growth: growthOf(recording),
    groups,
    mostGrown: () => mostGrownOf(recording, summary),
  };
}

function mostGrownOf(recording: Recording, end: SummaryJson): DiffJson["sites"][number] | null {
  const { path, startMs, endMs } = recording;
  const settled = summarize(recording, startMs + (endMs - startMs) / 3);
  const [first] = diffDocument(
    { file: path, summary: settled },
    { file: path, summary: end },
  ).sites;
  return first === undefined || first.isNoise || first.growthBytes <= 0 ? null : first;
}

/** `maxRssBytes`: of the largest process, as the kernel reports it at the end, because polls may miss a short one. */
function peakOf({ rss, pss, processes }: SummaryJson, maxRssBytes: Bytes): Figure | null {
  if (rss.peakBytes <= 0) {
    return null;
  }
  const readings = processes.map(({ peakRssBytes }) => peakRssBytes ?? 0);
  const largest = Math.max(maxRssBytes, ...readings);
  const low = processes.length > 1 ? Math.max(pss?.peakBytes ?? 0, largest) : rss.peakBytes;
  // PSS and the largest process are lower bounds, whatever was polled at the same time.
  const high = Math.max(rss.peakBytes, low);
  return { value: low, low, high };
}

function growthOf(recording: Recording): MeasuredGrowth | null {
  const growth = treeGrowth(recording);
  if (growth === null || growth.shape === "short") {
    return null;
  }
  return {
    ...perHour(growth),
    late: perHour(growth.late),
    lateMs: growth.spanMs / 2, // only the last two thirds are judged
    isSteady: growth.shape === "growing",
  };
}

function perHour({ slope, low, high }: { slope: number; low: number; high: number }): Figure {
  return { value: slope * MS_PER_HOUR, low: low * MS_PER_HOUR, high: high * MS_PER_HOUR };
}

/** The bytes of all sites at the peak. */
export function atPeakOf(groups: readonly SiteGroup[]): Figure {
  const { bytes, standardErrorBytes } = addUp(groups, ({ atPeak }) => [
    atPeak.bytes,
    atPeak.standardErrorBytes,
  ]);
  return { value: bytes, ...interval95(bytes, standardErrorBytes) };
}
