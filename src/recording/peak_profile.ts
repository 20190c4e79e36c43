import { addAt, float64At, uint16At } from "../model/base/columns.js";
import type { Bytes, ProcessIndex, TimeMs } from "../model/base/units.js";
import { foldSites } from "../model/profile/fold_sites.js";
import type { Profile, ProfileProcess, SiteTable } from "../model/profile/profile.js";
import { pickSites } from "../model/profile/site_columns.js";
import type { Recording } from "./types.js";

/**
 * The profile of the tree's highest live bytes. The recorder's profiles miss a peak between them, but every agent keeps
 * its own process's peak. So this takes the peak of the process with the highest one, and for the other processes that were
 * seen to run then the profile nearest to that moment; or the highest of the recorder's profiles, if that is higher.
 */
export function peakProfile(recording: Recording): Profile {
  const last = recording.profileOf(recording.snapshots.length - 1);
  const peak = greatestPeak(last);
  const highest = highestSnapshot(recording);
  if (peak === null) {
    return recording.profileOf(highest);
  }
  const others = recording.profileOf(nearestSnapshot(recording, peak.timeMs));
  const runs = others.processes.map(
    (process, index) => index !== peak.process && ranAt(recording, process, peak.timeMs),
  );
  const rest = rowsOf(others.sites, (row) => runs[others.sites.process[row] ?? -1] === true);
  const sites = [
    asOneCohort(pickSites(others.sites, rest, others.cohorts.length)),
    peakRows(last.sites, peak.process),
  ];
  const folded = foldSites(sites, 1);
  if (sum(folded.liveBytes) < (recording.snapshots[highest]?.liveBytes ?? 0)) {
    return recording.profileOf(highest);
  }
  return {
    ...last,
    timeMs: peak.timeMs,
    durationMs: Math.max(0, last.durationMs - (last.timeMs - peak.timeMs)),
    sites: folded,
    cohorts: [peak.timeMs + 1],
  };
}

/**
 * Whether a process ran at a time. Nearest profiles contain some that ran only before or after. One that ended between two
 * readings had ended, unless the program ended as well.
 */
function ranAt(
  { processes, series }: Recording,
  { pid, startedMs }: ProfileProcess,
  timeMs: TimeMs,
): boolean {
  if (startedMs > timeMs) {
    return false;
  }
  const index = processes.findLastIndex(
    (each) => each.pid === pid && each.startedMs <= startedMs + START_ERROR_MS,
  );
  const endedMs = processes[index]?.endedMs ?? Number.POSITIVE_INFINITY;
  const endsWithProgram = endedMs >= (processes[0]?.endedMs ?? Number.POSITIVE_INFINITY);
  const rss = series[index]?.values.get("rssBytes");
  const lastRead = rss?.findLastIndex((bytes) => bytes > 0) ?? -1;
  const lastMs = endsWithProgram ? endedMs : (series[index]?.timesMs[lastRead] ?? endedMs);
  return lastMs >= timeMs;
}

/** The kernel counts starts in hundredths of a second. */
const START_ERROR_MS = 50;

function greatestPeak(
  profile: Profile,
): { process: ProcessIndex; timeMs: TimeMs; bytes: Bytes } | null {
  const { sites, peakMs } = profile;
  const bytes = new Float64Array(profile.processes.length);
  for (let row = 0; row < sites.length; row++) {
    addAt(bytes, uint16At(sites.process, row), float64At(sites.peakBytes, row));
  }
  let greatest: { process: ProcessIndex; timeMs: TimeMs; bytes: Bytes } | null = null;
  bytes.forEach((peakBytes, process) => {
    const timeMs = peakMs[process] ?? 0;
    if (timeMs > 0 && peakBytes > (greatest?.bytes ?? 0)) {
      greatest = { process, timeMs, bytes: peakBytes };
    }
  });
  return greatest;
}

/**
 * The process's sites with the peak's figures as the live ones. Their allocation times are unknown, and so is what they
 * had allocated by then: the allocated figures are those of the end, of all sites.
 */
function peakRows(sites: SiteTable, process: ProcessIndex): SiteTable {
  const rows = rowsOf(sites, (row) => sites.process[row] === process);
  const picked = pickSites(sites, rows, 0);
  return {
    ...picked,
    liveBytes: picked.peakBytes.slice(),
    liveObjects: picked.peakObjects.slice(),
    liveVariance: picked.peakVariance.slice(),
    cohortBytes: picked.peakBytes.slice(),
  };
}

function asOneCohort(sites: SiteTable): SiteTable {
  return { ...sites, cohortBytes: sites.liveBytes.slice() };
}

function rowsOf(sites: SiteTable, wanted: (row: number) => boolean): number[] {
  return Array.from({ length: sites.length }, (_, row) => row).filter(wanted);
}

function highestSnapshot({ snapshots }: Recording): number {
  return snapshots.reduce(
    (best, snapshot, index) =>
      snapshot.liveBytes > (snapshots[best]?.liveBytes ?? 0) ? index : best,
    0,
  );
}

function nearestSnapshot({ snapshots }: Recording, timeMs: TimeMs): number {
  const distance = (index: number) =>
    Math.abs((snapshots[index]?.timeMs ?? Number.POSITIVE_INFINITY) - timeMs);
  return snapshots.reduce(
    (best, _look, index) => (distance(index) < distance(best) ? index : best),
    0,
  );
}

function sum(values: Float64Array): number {
  return values.reduce((total, value) => total + value, 0);
}
