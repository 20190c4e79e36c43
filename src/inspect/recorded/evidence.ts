/** Converts a recording to the evidence of a verdict. */

import {
  censusEvidence,
  type Evidence,
  framesOf,
  holderEvidenceOf,
  type ProcessEvidence,
  readingsAtWork,
  restrictedTo,
  SiteHistoryBuilder,
  withoutLaunchers,
} from "../../diagnose/index.js";
import type { Bytes, OnProgress, StackId } from "../../model/base/units.js";
import type { FrameJson } from "../../model/documents/documents.js";
import { isUnknown } from "../../model/profile/imported.js";
import type { RowCondition } from "../../model/profile/row_filter.js";
import type { MemorySeries } from "../../model/profile/series.js";
import type { Recording, SnapshotMoment } from "../../recording/types.js";
import { recordedSnapshots } from "./gpu/recorded_snapshots.js";
import { liveAtEnd } from "./live_at_end.js";
import { memoryEndsOf } from "./memory_ends.js";
import { chosenRows, conditionText } from "./rows/chosen_rows.js";

/** More snapshots than this do not improve the judgement of a course. */
const MOST_SNAPSHOTS = 48;
/**
 * If less than this share is left at the last snapshot, the program has freed its memory, and the previous
 * snapshot is more informative.
 */
const FREED_AT_END = 0.9;
/** The same as a share of the growth, because a leak may be small compared with what a program's libraries keep. */
const LEAST_GIVEN_BACK = 0.3;

/**
 * Uses only the rows that meet `where`. `onProgress` counts snapshots. Throws TidemarkError if one is damaged, or for
 * a condition that no row can meet. @internal
 */
export async function evidenceOf(
  whole: Recording,
  onProgress: OnProgress,
  where: readonly RowCondition[] = [],
): Promise<Evidence> {
  const evidence = {
    ...(await evidenceIn(chosenRows(whole, where), onProgress)),
    liveAtEndBytes: liveAtEnd(whole).bytes,
    ...(whole.end?.exitCode === 0 ? { isComplete: true } : {}),
    ...(whole.memoryEnds.length === 0
      ? {}
      : { memoryEnds: memoryEndsOf(whole), ...sitesAtPeak(whole) }),
  };
  return where.length === 0 ? evidence : restrictedTo(conditionText(where), evidence);
}

async function evidenceIn(recording: Recording, onProgress: OnProgress): Promise<Evidence> {
  const histories = await siteHistories(recording, onProgress);
  const census = censusEvidence(recording.censuses);
  const { snapshots, limits } = await recordedSnapshots(recording);
  const program = withoutLaunchers(processesOf(recording));
  const [first] = program.processes;
  const { pid, command } = (program.tree === undefined ? undefined : first) ?? recording.meta;
  return {
    target: {
      pid,
      command: [...command],
      python: first?.python ?? "",
      startedMs: first?.startedMs ?? recording.meta.startedMs,
    },
    window: { startMs: recording.startMs, endMs: recording.endMs },
    ...program,
    events: recording.events,
    ...histories,
    ...(census === null ? {} : { census }),
    ...holderEvidenceOf(recording.holderLookups, (stack) => framesIn(recording, stack)),
    ...(snapshots.length === 0 ? {} : { snapshots }),
    ...(isUnknown(recording.meta.imported, "python") ? { allocatorsUnknown: true as const } : {}),
    ...(recording.meta.imported === undefined
      ? {}
      : { importedFrom: recording.meta.imported.tool }),
    limits: [...recording.limits, ...limits],
  };
}

/**
 * The program's process comes first. If the recorder was killed before it wrote about any process, only the
 * command is known.
 */
function processesOf({ meta, processes, series }: Recording): ProcessEvidence[] {
  const known = processes.flatMap((process, i) => {
    const own = series[i];
    return own ? [{ ...process, series: own }] : [];
  });
  const { pid, command, startedMs } = meta;
  const unread = { pid, timesMs: new Float64Array(), values: new Map() };
  return known.length > 0
    ? known
    : [
        {
          pid,
          parentPid: 0,
          command,
          python: "",
          profiled: false,
          startedMs,
          endedMs: null,
          series: unread,
        },
      ];
}

function framesIn(recording: Recording, stack: StackId): FrameJson[] {
  const last = recording.snapshots.length - 1;
  const profile = last < 0 ? null : recording.profileOf(last);
  return profile !== null && stack < profile.stacks.length ? framesOf(profile, stack) : [];
}

function sitesAtPeak(recording: Recording): Pick<Evidence, "sitesAtPeak"> {
  if (recording.snapshots.length === 0) {
    return {};
  }
  const sites = new SiteHistoryBuilder();
  sites.add(recording.profileAt("peak"));
  return { sitesAtPeak: sites.build() };
}

async function siteHistories(
  recording: Recording,
  onProgress: OnProgress,
): Promise<Pick<Evidence, "sites" | "mappings">> {
  const chosen = chooseSnapshots(recording);
  if (chosen.length === 0) {
    return {};
  }
  const sites = new SiteHistoryBuilder();
  const mappings = new SiteHistoryBuilder(true);
  let mapped = 0;
  for (const [done, index] of chosen.entries()) {
    const profile = recording.profileOf(index);
    sites.add(profile);
    const mappedNow = profile.files.liveBytes.reduce((sum, bytes) => sum + bytes, 0);
    if (recording.snapshots[index]?.kind !== "end" || mappedNow >= FREED_AT_END * mapped) {
      mappings.add({ ...profile, sites: profile.files });
    }
    mapped = mappedNow;
    await onProgress(done + 1, chosen.length);
  }
  return { sites: sites.build(), mappings: mappings.build() };
}

/** Evenly over time; always includes the last snapshot of the program at work. @internal */
export function chooseSnapshots({ snapshots, series: [root] }: Recording): number[] {
  const hasFreed = root !== undefined && freedAtWork(root);
  const usable = hasFreed ? snapshots : snapshots.slice(0, snapshotsAtWork(snapshots));
  if (usable.length <= MOST_SNAPSHOTS) {
    return usable.map((_, index) => index);
  }
  const first = usable[0]?.timeMs ?? 0;
  const width = ((usable.at(-1)?.timeMs ?? 0) - first) / MOST_SNAPSHOTS;
  const chosen = new Map<number, number>();
  for (const [index, snapshot] of usable.entries()) {
    chosen.set(Math.floor((snapshot.timeMs - first) / width), index);
  }
  return [...chosen.values()];
}

/** A program goes on for longer after it freed its memory than an exit takes: at least so long, and this share of the run. */
const LONGEST_EXIT_MS = 2_000;
const LONGEST_EXIT_SHARE = 0.05;
const MOST_LEFT = 0.5;
/** Live bytes vary a little while nothing happens. */
const STAYED = 1.1;
const VARIES_BYTES: Bytes = 1 << 20;

/** Whether the first process freed most of its live memory well before its end, and hardly any of it since. @internal */
export function freedAtWork({ timesMs, values }: MemorySeries): boolean {
  const live = values.get("liveBytes") ?? new Float64Array();
  const last = live.findLastIndex((bytes) => !Number.isNaN(bytes));
  const [firstMs, lastMs, end] = [timesMs[0] ?? 0, timesMs[last] ?? 0, live[last] ?? 0];
  const exitMs = Math.max(LONGEST_EXIT_MS, LONGEST_EXIT_SHARE * (lastMs - firstMs));
  const before = live.findLast(
    (bytes, at) => !Number.isNaN(bytes) && (timesMs[at] ?? 0) <= lastMs - exitMs,
  );
  const highest = live.reduce((most, bytes) => Math.max(most, bytes || 0), 0);
  const hasStayed = before !== undefined && before <= STAYED * end + VARIES_BYTES;
  return hasStayed && end < MOST_LEFT * highest;
}

/**
 * Number of snapshots of the program at work: the one at its end, and one shortly before, may show a program
 * that is freeing its memory. @internal
 */
export function snapshotsAtWork(
  snapshots: readonly Pick<SnapshotMoment, "kind" | "timeMs" | "liveBytes">[],
): number {
  const [first, end] = [snapshots[0], snapshots.at(-1)];
  if (first === undefined || end?.kind !== "end") {
    return snapshots.length;
  }
  const times = snapshots.map(({ timeMs }) => timeMs);
  const values = snapshots.map(({ liveBytes }) => liveBytes);
  const working = readingsAtWork({ times, values }, first.timeMs, end.timeMs);
  // The growth since earlier snapshots may exceed what it has freed so far.
  const last = snapshots.length - 1;
  const before = values[last - 1] ?? 0;
  const settledMs = first.timeMs + (end.timeMs - first.timeMs) / 3;
  const settled = times.findIndex((time) => time >= settledMs);
  // If snapshots are rare, the one before the last may be the only one since then.
  const since = Math.max(0, Math.min(settled, last - 2));
  const grown = before - Math.min(...values.slice(since, last));
  const given = before - end.liveBytes;
  const gaveBack =
    end.liveBytes < FREED_AT_END * before || (grown > 0 && given > LEAST_GIVEN_BACK * grown);
  return Math.max(1, gaveBack ? Math.min(working, last) : working);
}
