import {
  doubtAbout,
  isBelowLive,
  isPassing,
  lastReading,
  levelAtEnd,
  membersOf,
  pssOfTree,
  type Reading,
  type TotalGrowth,
  totalGrowth,
} from "../../diagnose/index.js";
import { float64At } from "../../model/base/columns.js";
import { unseenUpToBytes } from "../../model/base/interval.js";
import { formatBytes } from "../../model/base/numbers.js";
import type { Bytes, Millis, Pid, TimeMs } from "../../model/base/units.js";
import type { SummaryJson } from "../../model/documents/summary_document.js";
import { nothingThere } from "../../model/errors/errors.js";
import type { Profile } from "../../model/profile/profile.js";
import type { MemorySeries, Metric } from "../../model/profile/series.js";
import type { Moment, Recording } from "../../recording/types.js";
import { liveAtEnd } from "./live_at_end.js";
import { memoryEndsOf } from "./memory_ends.js";
import { lastLedger } from "./newest_ledger.js";
import { rowGroups } from "./row_groups.js";
import { checkKey, chosenRows, conditionText, type RowChoice } from "./rows/chosen_rows.js";
import { sitesOf } from "./rows/profile_sites.js";
import { stepsOf } from "./rows/step_ranges.js";

const MS_PER_HOUR = 3_600_000;
/**
 * The kernel adds a thread's pages to a process's counters in batches of a few dozen, the last ones when the
 * thread ends.
 */
const RSS_LAG_BYTES: Bytes = 1 << 20;

/**
 * The summary of a recording, with the sites at `moment`, for the selected rows. Figures of RSS, processes and
 * series always cover the whole run and all rows.
 * Throws TidemarkError (TM-E014) for a time outside the recording, and for rows that it does not have.
 */
export function summarize(
  whole: Recording,
  moment: Moment,
  { where = [], by }: RowChoice = {},
): SummaryJson {
  const recording = chosenRows(whole, where);
  if (
    typeof moment === "number" &&
    (moment < recording.startMs - 1000 || moment > recording.endMs + 1000)
  ) {
    throw nothingThere(
      `the recording has no data at ${isoTime(moment)}`,
      `it covers ${isoTime(recording.startMs)} to ${isoTime(recording.endMs)}`,
    );
  }
  const profileOf = (at: Moment) =>
    recording.snapshots.length > 0 ? recording.profileAt(at) : null;
  const [profile, peak] = [profileOf(moment), profileOf("peak")];
  const root = recording.series[0];
  const rootProcess = recording.processes[0];
  const steps = launcherSteps(recording);
  const live = liveAtEnd(whole);
  return {
    schema: "tidemark.summary/1",
    target: {
      pid: recording.meta.pid,
      command: [...recording.meta.command],
      python: rootProcess?.python ?? "",
      startedMs: rootProcess?.startedMs ?? recording.meta.startedMs,
    },
    ...importedOf(recording),
    window: {
      startMs: recording.startMs,
      endMs: recording.endMs,
      points: root?.timesMs.length ?? 0,
    },
    atMs: profile?.timeMs ?? (typeof moment === "number" ? moment : recording.endMs),
    ...(peak === null ? {} : { livePeakMs: peak.timeMs }),
    rss: treeRss(whole, live.bytes),
    ...treePss(whole, live.bytes),
    processes: recording.processes.flatMap((process, index) => {
      const series = recording.series[index];
      if (steps.has(index)) {
        return [];
      }
      const row = {
        pid: process.pid,
        parentPid: process.parentPid,
        command: [...process.command],
        python: process.python,
        peakRssBytes:
          Math.max(
            highest(series, "rssBytes").value,
            highest(series, "vmHwmBytes").value,
            rssWhenKilled(recording, process.pid),
            // Of any process, so only if there is one.
            recording.processes.length === 1 ? (recording.end?.maxRssBytes ?? 0) : 0,
          ) || null,
        endRssBytes:
          Math.max(
            (series && lastReading(series, "rssBytes", live.byProcess.get(process.pid))?.bytes) ??
              0,
            rssWhenKilled(recording, process.pid),
          ) || null,
        profiled: process.profiled,
        ...(typeof process.rank === "number" ? { rank: process.rank } : {}),
      };
      return [row];
    }),
    ...(where.length === 0 ? {} : { where: conditionText(where) }),
    ...groupsOf(recording, profile, peak, by),
    sites: profile && peak ? sitesOf(profile, peak) : [],
    series: growthOf(whole, live.bytes),
    agent: agentFigures(recording, moment === "peak" ? profileOf("end") : profile),
    ...copiedIn(profile),
    ...lastLedger(recording),
    ...(recording.memoryEnds.length === 0 ? {} : { memoryEnds: memoryEndsOf(whole) }),
    limits: [...recording.limits, ...inexact(recording), ...unprofiled(recording)],
  };
}

/**
 * Numbers of the programs that never ran Python and passed: steps of a launcher. A program that started one that is listed
 * is listed, too; the recorded program always is.
 */
function launcherSteps({ processes, series, endMs }: Recording): ReadonlySet<number> {
  const steps = new Set<number>();
  const parents = new Set<Pid>();
  for (const [index, process] of [...processes.entries()].reverse()) {
    const own = series[index];
    const isStep =
      index > 0 &&
      own !== undefined &&
      process.python === "" &&
      process.endedMs !== null &&
      process.endedMs < endMs &&
      !parents.has(process.pid) &&
      isPassing({ ...process, series: own });
    if (isStep) {
      steps.add(index);
    } else {
      parents.add(process.parentPid);
    }
  }
  return steps;
}

function membersIn({ processes, series }: Recording): number {
  return membersOf(
    processes.flatMap((process, index) => {
      const own = series[index];
      return own === undefined ? [] : [{ ...process, series: own }];
    }),
  );
}

/** Nothing if copies were not counted. */
function copiedIn(profile: Profile | null): Pick<SummaryJson, "copied"> {
  const { copies } = profile ?? {};
  if (copies === undefined || copies.length === 0) {
    return {};
  }
  const sum = (column: Float64Array) => column.reduce((total, value) => total + value, 0);
  return {
    copied: {
      bytes: sum(copies.allocatedBytes),
      calls: sum(copies.allocatedObjects),
      standardErrorBytes: Math.sqrt(sum(copies.allocatedVariance)),
    },
  };
}

/** Without the figures of lines, which only `lines` shows. */
function importedOf({ meta: { imported } }: Recording): Pick<SummaryJson, "imported"> {
  if (imported === undefined) {
    return {};
  }
  const { tool, file, unknown, precision = "unknown" } = imported;
  return { imported: { tool, file, unknown: [...unknown], precision } };
}

function groupsOf(
  recording: Recording,
  now: Profile | null,
  peak: Profile | null,
  by: string | undefined,
): Pick<SummaryJson, "by" | "groups" | "steps"> {
  if (by === undefined) {
    return {};
  }
  // Throws if the recording contains no profile.
  const groupedNow = now ?? recording.profileAt("end");
  const grouped = { now: groupedNow, peak: peak ?? recording.profileAt("peak") };
  const steps = by === "step" ? stepsOf(recording.events, groupedNow) : null;
  if (steps !== null) {
    return { by, steps };
  }
  checkKey(recording, groupedNow, by);
  return { by, groups: rowGroups(recording, grouped, by) };
}

/** Since when and until when a peak may have been; null: at the time of a reading. */
interface Peak {
  readonly value: Bytes;
  readonly timeMs: TimeMs;
  readonly afterMs: TimeMs | null;
}

/**
 * Polls miss peaks between them. The kernel's high-water marks do not, but cover only one process, and a mark has no
 * time: only the readings before and after it do.
 */
function treeRss(recording: Recording, liveBytes: Bytes): SummaryJson["rss"] {
  const { series: all, startMs, endMs } = recording;
  const root = all[0];
  let peak: Peak = { ...highest(root, "treeRssBytes"), afterMs: null };
  const raise = (mark: Peak) => {
    if (mark.value > peak.value) {
      const isReading = peak.timeMs !== 0 && mark.value <= peak.value + RSS_LAG_BYTES;
      peak = isReading ? { ...peak, value: mark.value } : mark;
    }
  };
  for (const [index, series] of all.entries()) {
    const { value, timeMs } = highest(series, "vmHwmBytes");
    // The first mark of a process that was attached to is of its whole life.
    const sinceMs = Math.min(startMs, recording.processes[index]?.startedMs ?? startMs);
    raise({ value, timeMs, afterMs: readingBefore(series, "vmHwmBytes", timeMs) ?? sinceMs });
  }
  // Of any process, at any time: a child may have ended before a poll saw it.
  raise({ value: recording.end?.maxRssBytes ?? 0, timeMs: endMs, afterMs: startMs });
  for (const { rssBytes, timeMs } of recording.memoryEnds) {
    peak = rssBytes > peak.value ? { value: rssBytes, timeMs, afterMs: null } : peak;
  }
  const last = root ? lastReading(root, "treeRssBytes", liveBytes) : null;
  const killedBytes = rssWhenKilled(recording, recording.meta.pid);
  return {
    peakBytes: peak.value,
    peakMs: peak.timeMs || endMs,
    ...(peak.afterMs === null ? {} : { peakAfterMs: peak.afterMs }),
    ...(killedBytes > (last?.bytes ?? 0)
      ? { endBytes: killedBytes }
      : { endBytes: last?.bytes ?? 0, ...(last ? endTime(recording, last, liveBytes) : {}) }),
  };
}

/** Growth since the last poll of a process killed for memory. 0 for any other process. */
function rssWhenKilled({ memoryEnds }: Recording, pid: Pid): Bytes {
  return Math.max(0, ...memoryEnds.filter((end) => end.pid === pid).map((end) => end.rssBytes));
}

/**
 * Nothing for a single process, whose PSS equals its RSS except for libraries that others map as well; and nothing
 * if PSS, which is read rarely, was only read while the processes were much smaller than at their peak.
 */
function treePss(recording: Recording, liveBytes: Bytes): Pick<SummaryJson, "pss"> {
  const [root] = recording.series;
  const end = root === undefined ? null : levelAtEnd(root, membersIn(recording), liveBytes);
  const { value, timeMs } = root === undefined ? NOTHING : highestOf(root.timesMs, pssOfTree(root));
  return end?.metric === "treePssBytes"
    ? {
        pss: {
          peakBytes: value,
          peakMs: timeMs,
          endBytes: end.bytes,
          ...endTime(recording, end, liveBytes),
        },
      }
    : {};
}

const WELL_BEFORE_MS: Millis = 300;

/** The time of the last reading, if the program ended well after it, or held more at its end. */
function endTime(
  { processes: [root], endMs }: Recording,
  last: Reading,
  liveBytes: Bytes,
): { readonly endMs?: TimeMs } {
  const hasEnded = root !== undefined && root.endedMs !== null;
  const isEarly = endMs - last.timeMs >= WELL_BEFORE_MS || isBelowLive(last.bytes, liveBytes);
  return hasEnded && isEarly ? { endMs: last.timeMs } : {};
}

/** The time of the last reading before `timeMs`; undefined if there is none. */
function readingBefore(series: MemorySeries, metric: Metric, timeMs: TimeMs): TimeMs | undefined {
  const values = series.values.get(metric);
  return series.timesMs.findLast((at, i) => at < timeMs && (values?.[i] ?? 0) > 0);
}

/** The highest reading and when it was first reached; 0 if there is none. */
function highest(
  series: MemorySeries | undefined,
  metric: Metric,
): { value: Bytes; timeMs: TimeMs } {
  const values = series?.values.get(metric);
  return series === undefined || values === undefined ? NOTHING : highestOf(series.timesMs, values);
}

const NOTHING = { value: 0, timeMs: 0 };

function highestOf(timesMs: Float64Array, values: Float64Array) {
  let { value, timeMs } = NOTHING;
  values.forEach((reading, i) => {
    if (reading > value) {
      value = reading;
      timeMs = float64At(timesMs, i);
    }
  });
  return { value, timeMs };
}

/** PSS is polled rarely; the RSS of the remaining processes at the end bounds it. */
function lastPss(series: MemorySeries | undefined): number | null {
  const pss =
    series === undefined ? null : (pssOfTree(series).findLast((reading) => reading > 0) ?? null);
  const rss = series === undefined ? null : lastReading(series, "treeRssBytes");
  return pss === null || rss === null ? pss : Math.min(pss, rss.bytes);
}

/** The growth of the process tree's memory, as the verdict uses it; null without readings. */
export function treeGrowth(
  recording: Recording,
  liveBytes = liveAtEnd(recording).bytes,
): TotalGrowth | null {
  const [series] = recording.series ?? [];
  const endedMs = recording.processes[0]?.endedMs ?? null;
  return series === undefined
    ? null
    : totalGrowth({ series, endedMs, liveBytes }, membersIn(recording));
}

function growthOf(recording: Recording, liveBytes: Bytes): SummaryJson["series"] {
  const known = treeGrowth(recording, liveBytes);
  if (known === null) {
    return {
      startBytes: 0,
      minBytes: 0,
      baselineBytes: 0,
      growthBytesPerHour: 0,
      points: 0,
      treePssBytes: 0,
    };
  }
  const { readings, shape, ...growth } = known;
  const doubt = doubtAbout(known);
  const { values, baseline } = shownReadings(recording, known);
  return {
    startBytes: values[0] ?? 0,
    minBytes: values.reduce((least, value) => Math.min(least, value), values[0] ?? 0),
    baselineBytes: baseline,
    growthBytesPerHour: growth.slope * MS_PER_HOUR,
    ...(shape === "short"
      ? {}
      : {
          growthLowBytesPerHour: growth.low * MS_PER_HOUR,
          growthHighBytesPerHour: growth.high * MS_PER_HOUR,
        }),
    ...(known.end.metric === "treePssBytes" && known.metric !== "treePssBytes"
      ? { growthOfRss: true as const }
      : {}),
    ...(doubt === null ? {} : { growthDoubt: doubt }),
    points: readings.values.length,
    treePssBytes: lastPss(recording.series?.[0]) ?? 0,
  };
}

/** Readings of the measure that the header shows: PSS of a tree may be too rare to show a growth rate. */
function shownReadings(
  { series: [root] = [] }: Recording,
  { metric, readings, baseline, end }: TotalGrowth,
): { readonly values: readonly Bytes[]; readonly baseline: Bytes } {
  if (root === undefined || end.metric !== "treePssBytes" || metric === "treePssBytes") {
    return { values: readings.values, baseline };
  }
  const values = Array.from(pssOfTree(root)).filter((reading) => reading > 0);
  // The first third of a window is start-up.
  return { values, baseline: values[Math.floor(values.length / 3)] ?? 0 };
}

function agentFigures(recording: Recording, profile: Profile | null): SummaryJson["agent"] {
  const snapshot =
    recording.snapshots.findLast(({ timeMs }) => timeMs <= (profile?.timeMs ?? 0)) ??
    recording.snapshots.at(-1);
  const seconds = (profile?.durationMs ?? 0) / 1000;
  const allocated = profile?.sites.allocatedBytes.reduce((sum, bytes) => sum + bytes, 0) ?? 0;
  const periodBytes = snapshot?.agent.periodBytes || recording.meta.periodBytes;
  const coarsest = coarsestPeriod(recording, snapshot?.timeMs);
  return {
    periodBytes,
    coarsestPeriodBytes: coarsest,
    unseenUpToBytes: unseenUpToBytes(coarsest),
    samples: snapshot?.agent.samples ?? 0,
    lost: snapshot?.agent.lost ?? 0,
    cpuMs: snapshot?.agent.cpuMs ?? 0,
    allocatedBytesPerSecond: seconds > 0 ? allocated / seconds : 0,
  };
}

/**
 * The longest sampling period at any time until then, because live blocks may have been allocated when samples
 * were rarer than now. @internal
 */
export function coarsestPeriod(
  { meta, snapshots, events }: Recording,
  untilMs: TimeMs = Number.POSITIVE_INFINITY,
): Bytes {
  const periods = [
    ...snapshots.map(({ timeMs, agent }) => ({ timeMs, value: agent.periodBytes })),
    ...events.filter(({ kind }) => kind === "period"),
  ];
  return periods
    .filter(({ timeMs }) => timeMs <= untilMs)
    .reduce((coarsest, { value }) => Math.max(coarsest, value ?? 0), meta.periodBytes);
}

/** A note if `--period 1` was requested but the agent had no room for every allocation. */
function inexact(recording: Recording): string[] {
  const coarsest = coarsestPeriod(recording);
  return recording.meta.periodBytes === 1 && coarsest > 1
    ? [
        `Figures are not exact: more allocations were live than the agent can hold, so at times it took one sample every ${formatBytes(coarsest)}.`,
      ]
    : [];
}

/** Only if an agent was meant to run; otherwise a limit already gives the reason. */
function unprofiled(recording: Recording): string[] {
  const { meta } = recording;
  const steps = launcherSteps(recording);
  const processes = recording.processes.filter((_, index) => !steps.has(index));
  const without = processes.filter((process) => !process.profiled);
  if (meta.periodBytes === 0 || without.length === 0) {
    return [];
  }
  const names = [...new Set(without.map(({ command }) => programName(command)))];
  const shown = names.length > 4 ? `${names.slice(0, 4).join(", ")}, ...` : names.join(", ");
  const verb = without.length === 1 ? "has" : "have";
  return [
    `${without.length} of ${processes.length} processes ${verb} no profile (${shown}): the agent could not run in them, or they allocated too little to be sampled.`,
  ];
}

function programName(command: readonly string[]): string {
  return command[0]?.split("/").at(-1) ?? "?";
}

function isoTime(timeMs: TimeMs): string {
  return Math.abs(timeMs) < 8.64e15 ? new Date(timeMs).toISOString() : String(timeMs);
}
