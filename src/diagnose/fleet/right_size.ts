/**
 * The memory request and limit that a service needs, from the peaks of its instances.
 *
 *   hourly peaks of each process ─┬─ the highest of each day and instance ─ 99th percentile ─ + margin ─ limit
 *                                 └─ 95th percentile of the hours ──────────────────────────────────── request
 *
 * Only versions that run count, once one of them has run for a day: what an old version needed is no guide to the new.
 *
 * Failure modes, and what is said then:
 *   - it leaks: no figure, because a limit only decides when it dies; it may still grow: a caution
 *   - less than a day: no figure; less than a week: a caution, since a weekly peak was not seen
 *   - killed for memory: it was cut off at its limit, so its real peak is unknown: at least half as much again
 *   - a single peak far above the others: the percentile leaves it out, and a caution says what would have been killed
 *   - other users of the same cgroup, and file pages: the limit counts them and the program's RSS does not: a caution
 */
import type { Bytes, Millis, TimeMs } from "../../model/base/units.js";
import type { FleetDiagnosisJson } from "../../model/documents/fleet_diagnosis_document.js";
import type { ServiceSizeJson, SizeState } from "../../model/documents/sizes_document.js";
import type { Readings } from "../series/readings.js";
import { median } from "../series/trend.js";
import { type SizeFigures, sizeCautions, sizeSummary } from "../wording/size_sentence.js";

const HOUR_MS: Millis = 3_600_000;
const DAY_MS: Millis = 24 * HOUR_MS;
const SHORTEST_OBSERVED_MS: Millis = DAY_MS;
const PEAK_QUANTILE = 0.99;
const REQUEST_QUANTILE = 0.95;
/** Of the limit at which it was killed. */
const AFTER_A_KILL = 1.5;
const ALIKE = 0.1;
/** Sizes are rounded up to a multiple of the step of the first row that is larger. */
const STEPS: readonly (readonly [below: Bytes, step: Bytes])[] = [
  [2 ** 30, 2 ** 24],
  [2 ** 32, 2 ** 26],
  [Number.POSITIVE_INFINITY, 2 ** 28],
];
const LEAST: Bytes = 2 ** 26;
export const USUAL_MARGIN = 0.2;

export interface SizeEvidence {
  readonly service: string;
  readonly window: { readonly startMs: TimeMs; readonly endMs: TimeMs };
  readonly processes: readonly SizedProcess[];
}

/** One life of one instance. */
export interface SizedProcess {
  readonly instance: string;
  readonly version: string;
  /** null: it runs. */
  readonly endedMs: TimeMs | null;
  /** 0: none is known. */
  readonly limitBytes: Bytes;
  /** The peak of each hour, of the program and its child processes; pages that they share are counted once where that is known. */
  readonly peaks: Readings;
  /** What its cgroup used beside the program: median; 0 if that is unknown. */
  readonly besideBytes: Bytes;
  /** When the kernel killed one of its processes for memory. */
  readonly killsMs: readonly TimeMs[];
}

/** `diagnosis`: of the same service. */
export function rightSize(
  { service, processes }: SizeEvidence,
  diagnosis: FleetDiagnosisJson | undefined,
  marginShare: number,
): ServiceSizeJson {
  const running = processes.filter(({ endedMs }) => endedMs === null);
  const versions = [...new Set(running.map(({ version }) => version))];
  const current = processes.filter(({ version }) => versions.includes(version));
  const isSeen = observedMs(current) >= SHORTEST_OBSERVED_MS;
  const used = isSeen ? current : processes;
  const dayPeaks = dailyPeaks(used);
  const hourPeaks = used.flatMap(({ peaks }) => [...peaks.values]);
  const peakBytes = quantile(dayPeaks, PEAK_QUANTILE);
  const limitBytes = commonest(running.map((process) => process.limitBytes));
  const killed = used.filter(({ killsMs }) => killsMs.length > 0);
  const killedAt = killed.reduce((most, process) => Math.max(most, process.limitBytes), 0);
  const needed = roundedUp(Math.max(peakBytes * (1 + marginShare), killedAt * AFTER_A_KILL));
  const figures = {
    limitBytes,
    peakBytes,
    highestBytes: dayPeaks.reduce((most, peak) => Math.max(most, peak), 0),
    instances: running.length,
    versions,
    earlierVersions: !isSeen && used.length > current.length,
    observedMs: observedMs(used),
    instanceDays: dayPeaks.length,
    kills: killed.reduce((sum, { killsMs }) => sum + killsMs.length, 0),
  };
  const about = {
    ...figures,
    diagnosis,
    killedAt,
    needs: {
      requestBytes: Math.min(needed, roundedUp(quantile(hourPeaks, REQUEST_QUANTILE))),
      limitBytes: needed,
    },
    besideBytes: median(running.map((process) => process.besideBytes)),
    dayPeaks,
  };
  const state = stateOf(about);
  const isDecided = state !== "leaks" && state !== "unknown";
  return {
    service,
    state,
    summary: sizeSummary(state, about),
    ...figures,
    ...(isDecided ? { needs: about.needs } : {}),
    savedBytes:
      state === "lower" || state === "higher" ? (limitBytes - needed) * running.length : 0,
    cautions: sizeCautions(state, about),
  };
}

function stateOf({ diagnosis, instances, needs, limitBytes, ...seen }: SizeFigures): SizeState {
  if (diagnosis?.leak !== undefined) {
    return "leaks";
  }
  if (instances === 0 || seen.observedMs < SHORTEST_OBSERVED_MS) {
    return "unknown";
  }
  if (limitBytes === 0) {
    return "unlimited";
  }
  const ratio = needs.limitBytes / limitBytes;
  return ratio < 1 - ALIKE ? "lower" : ratio > 1 + ALIKE ? "higher" : "fits";
}

/** The highest of each day of each instance, whatever processes it had. */
function dailyPeaks(processes: readonly SizedProcess[]): Bytes[] {
  const peaks = new Map<string, Bytes>();
  for (const {
    instance,
    peaks: { times, values },
  } of processes) {
    for (const [at, time] of times.entries()) {
      const key = `${Math.floor(time / DAY_MS)} ${instance}`;
      peaks.set(key, Math.max(peaks.get(key) ?? 0, values[at] ?? 0));
    }
  }
  return [...peaks.values()];
}

function hourOf(timeMs: TimeMs): number {
  return Math.floor(timeMs / HOUR_MS);
}

/** Hours in which one of them ran. */
function observedMs(processes: readonly SizedProcess[]): Millis {
  const hours = new Set(processes.flatMap(({ peaks: { times } }) => times.map(hourOf)));
  return hours.size * HOUR_MS;
}

/** By rank: at least this share of the values is not above it. 0 if there are none. */
function quantile(values: readonly number[], share: number): number {
  const sorted = values.slice().sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
}

/** The value that most have, the smallest of them; 0 if there is none. */
function commonest(values: readonly number[]): number {
  const counts = new Map<number, number>();
  for (const value of values) {
    counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  return [...counts].sort(([a, m], [b, n]) => n - m || a - b)[0]?.[0] ?? 0;
}

function roundedUp(bytes: Bytes): Bytes {
  const step = STEPS.find(([below]) => bytes < below)?.[1] ?? 1;
  return Math.max(LEAST, Math.ceil(bytes / step) * step);
}
