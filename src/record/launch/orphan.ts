/**
 * Recordings whose recorder was killed, or left the program to its guard because memory was short
 * (hand_over.ts). The agents' data still exists:
 *
 *   the guard lives          in the pool that it keeps, /proc/<guard>/fd/<n>: the program still runs
 *   the program has ended    in REC.orphan, the used slots, which the guard left
 *   the guard was killed     nowhere: the recording ends with its last snapshot
 */

import { closeSync, constants, fstatSync, openSync, renameSync, rmSync } from "node:fs";
import { processLives } from "../../linux/process/process_identity.js";
import { uint16At, uint32At } from "../../model/base/columns.js";
import type { TimeMs } from "../../model/base/units.js";
import { damagedInput, fileUnusable, notOurs, TidemarkError } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import { foldSites } from "../../model/profile/fold_sites.js";
import type {
  Profile,
  ProfileSnapshot,
  ProfileTables,
  SiteTable,
} from "../../model/profile/profile.js";
import { pickSites } from "../../model/profile/site_columns.js";
import { joinTables, partTables } from "../../model/profile/snapshot_tables.js";
import { ProfileTablesBuilder, type TablesMap } from "../../model/profile/tables_builder.js";
import type { OpenRecording } from "../../recording/reader.js";
import type { AgentFigures } from "../../recording/types.js";
import { RecordingWriter } from "../../recording/writer.js";
import type { ProfileAssembler } from "../../segment/index.js";
import type { ExitReport } from "../process/exit_report.js";
import { reopenRecording } from "../process/open_recording.js";
import { profilePool } from "../process/pool_profile.js";
import { isHandedOver } from "./hand_over.js";
import { memoryEndsLeft } from "./memory_ends_left.js";
import { orphanPath } from "./run.js";

/**
 * Completes a recording whose recorder was killed or has left; call it before opening one. `report`: how the
 * program ended, from its waiting guard; if absent, unknown. Returns a sentence about what was done, or null if
 * there was nothing to do. Throws TidemarkError if the recording cannot be opened, or its orphan file is
 * damaged, owned by another user, or of another run.
 */
export function finishOrphan(path: string, report: ExitReport | null = null): string | null {
  const recording = reopenRecording(path);
  const { meta } = recording;
  if (
    recording.complete ||
    recording.damaged ||
    processLives(meta.recorder.pid, meta.recorder.startTicks)
  ) {
    return null;
  }
  try {
    const { keeper } = meta;
    if (report === null && keeper && processLives(keeper.pid, keeper.startTicks)) {
      return readKeptPool(recording, `/proc/${keeper.pid}/fd/${keeper.fd}`);
    }
    return foldOrphan(recording, orphanPath(path), report);
  } catch (error) {
    if (error instanceof TidemarkError && error.id === "TM-E004") {
      return `The recording is incomplete and cannot be completed: ${error.what}.`;
    }
    throw error;
  }
}

function readKeptPool(recording: OpenRecording, poolPath: string): string {
  const what = isHandedOver(recording.limits) ? "left the program to its guard" : "was killed";
  const descriptor = openForReading(poolPath, 0); // a link by nature
  if (descriptor === null) {
    return `The recorder ${what}; the program is still running.`;
  }
  try {
    append(recording, descriptor, poolPath, Date.now(), null);
  } finally {
    closeSync(descriptor);
  }
  return `The recorder ${what}, but the program is still running: its current profile was added.`;
}

function foldOrphan(
  recording: OpenRecording,
  path: string,
  report: ExitReport | null,
): string | null {
  // Claimed by renaming, so that only one of two simultaneous commands merges it.
  const taken = `${path}.${process.pid}`;
  try {
    renameSync(path, taken);
  } catch (error) {
    if (reasonOf(error).code === "ENOENT") {
      return null;
    }
    throw fileUnusable(path, "write", reasonOf(error).message);
  }
  let done = false;
  try {
    const descriptor = openForReading(taken, constants.O_NOFOLLOW);
    if (descriptor === null) {
      return null;
    }
    try {
      const stats = fstatSync(descriptor);
      if (!stats.isFile()) {
        throw notOurs(path, "a file that tidemark-guard wrote for a run");
      }
      if (stats.uid !== process.getuid?.()) {
        throw fileUnusable(path, "read", `EPERM: it belongs to user ${stats.uid}`);
      }
      append(recording, descriptor, path, Math.round(stats.mtimeMs), report ?? UNSEEN_END);
      done = true;
    } finally {
      closeSync(descriptor);
    }
  } finally {
    if (done) {
      rmSync(taken, { force: true });
    } else {
      renameSync(taken, path);
    }
  }
  return isHandedOver(recording.limits)
    ? "The recorder had left the program to its guard: the program's last moment was added to the recording."
    : "The recorder was killed during the run: the program's last moment was added to the recording.";
}

function openForReading(path: string, flags: number): number | null {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | flags);
  } catch (error) {
    const { code, message } = reasonOf(error);
    if (code === "ENOENT") {
      return null;
    }
    throw fileUnusable(path, "read", message);
  }
}

/** It is unknown how the program ended. */
const UNSEEN_END: ExitReport = {
  exitCode: null,
  signal: null,
  maxRssBytes: 0,
  userMs: 0,
  systemMs: 0,
  endedMs: null,
};

/** Appends a snapshot of all segments of the pool, and the end, if known. */
function append(
  recording: OpenRecording,
  descriptor: number,
  source: string,
  timeMs: TimeMs,
  end: ExitReport | null,
): void {
  const { header, assembler, limits } = profilePool({ descriptor, source });
  if (header.runId !== recording.meta.runId) {
    throw damagedInput(source, "it belongs to another run than the recording next to it");
  }
  const before =
    recording.snapshots.length > 0 ? recording.profileOf(recording.snapshots.length - 1) : null;
  const atMs = Math.max(end?.endedMs ?? timeMs, recording.endMs);
  const { tables, snapshot } = merge(recording.tables(), before, assembler.take(atMs));
  const pids = new Set([...recording.processes, ...tables.processes].map(({ pid }) => pid));
  const memoryEnds = end === null ? [] : memoryEndsLeft(recording, pids, end, atMs);
  const killed = new Set(memoryEnds.map(({ pid }) => pid));
  killed.delete(recording.meta.pid); // the last snapshot shows what the program itself held when it ended
  emptyProcesses(snapshot, (process) => killed.has(tables.processes[process]?.pid ?? 0));
  const writer = RecordingWriter.resume(
    recording.path,
    recording.wholeBytes,
    recording.tables(),
    recording.snapshots.length,
  );
  try {
    if (snapshot.sites.length > 0) {
      writer.snapshot(tables, snapshot, {
        kind: end === null ? "poll" : "end",
        agent: agentOf(recording, assembler),
      });
    }
    writer.agentLimits(atMs, limits);
    if (end !== null) {
      if (!isHandedOver(recording.limits)) {
        writer.limits(atMs, [
          "The recorder was killed: memory figures and processes end at that point, and what the program did afterwards is unknown.",
        ]);
      }
      writer.memoryEnds(atMs, memoryEnds);
      const { endedMs: _, ...how } = end;
      writer.end({ timeMs: atMs, ...how });
    }
    if (writer.failure) {
      throw writer.failure;
    }
  } finally {
    writer.close();
  }
}

/**
 * The dictionaries with the new rows; the new snapshot, plus the processes of the old one that are no longer in
 * the pool: they have ended, so they have no live memory.
 */
function merge(
  recorded: ProfileTables,
  before: Profile | null,
  found: { readonly tables: ProfileTables; readonly snapshot: ProfileSnapshot },
): { tables: ProfileTables; snapshot: ProfileSnapshot } {
  const builder = new ProfileTablesBuilder();
  builder.absorb(recorded);
  const map = builder.absorb(found.tables);
  const tables = builder.tables();
  const { snapshot } = found;
  const rows = translate(joinTables(snapshot), map);
  const present = new Set(map.processes);
  const peakMs = tables.processes.map((_, index) => before?.peakMs[index] ?? 0);
  map.processes.forEach((to, from) => {
    peakMs[to] = snapshot.peakMs[from] ?? 0;
  });
  const parts = [rows];
  if (before) {
    const all = joinTables(before);
    const gone = Array.from(all.process.keys()).filter(
      (row) => !present.has(uint16At(all.process, row)),
    );
    const ended = pickSites(all, gone, 0);
    for (const figure of ["liveBytes", "liveObjects", "liveVariance", "liveSamples"] as const) {
      ended[figure].fill(0);
    }
    parts.push({ ...ended, cohortBytes: new Float64Array(gone.length * snapshot.cohorts.length) });
  }
  const width = snapshot.cohorts.length;
  return {
    tables,
    snapshot: { ...snapshot, ...partTables(foldSites(parts, width), width), peakMs },
  };
}

/** Sets the live figures of killed processes to zero, because their agents could not. */
function emptyProcesses(
  { sites, cohorts }: ProfileSnapshot,
  isGone: (process: number) => boolean,
): void {
  for (let row = 0; row < sites.length; row++) {
    if (isGone(uint16At(sites.process, row))) {
      for (const figure of ["liveBytes", "liveObjects", "liveVariance", "liveSamples"] as const) {
        sites[figure][row] = 0;
      }
      sites.cohortBytes.fill(0, row * cohorts.length, (row + 1) * cohorts.length);
    }
  }
}

function translate(sites: SiteTable, map: TablesMap): SiteTable {
  const through = (ids: Uint32Array | Uint16Array, to: Uint32Array) =>
    Uint32Array.from(ids, (id) => uint32At(to, id));
  return {
    ...sites,
    stack: through(sites.stack, map.stacks),
    process: Uint16Array.from(through(sites.process, map.processes)),
    thread: through(sites.thread, map.threads),
    label: through(sites.label, map.labels),
  };
}

/** Processes that ended before the recorder are only in its last figures. */
function agentOf(recording: OpenRecording, assembler: ProfileAssembler): AgentFigures {
  const { samples, lost, cpuMs, periodBytes } = assembler.totals();
  const known = recording.snapshots.at(-1)?.agent;
  return {
    samples: Math.max(samples, known?.samples ?? 0),
    lost: Math.max(lost, known?.lost ?? 0),
    cpuMs: Math.max(cpuMs, known?.cpuMs ?? 0),
    periodBytes,
  };
}
