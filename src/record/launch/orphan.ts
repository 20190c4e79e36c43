/**
 * Recordings whose recorder was killed. What the agents know is still somewhere:
 *
 *   the guard lives          in the pool that it keeps, /proc/<guard>/fd/<n>: the program runs on
 *   the program has ended    in REC.orphan, the used slots, which the guard left
 *   the guard was killed     nowhere: the recording ends with its last look
 */

import { closeSync, constants, fstatSync, openSync, renameSync, rmSync } from "node:fs";
import { processLives } from "../../linux/process/process_identity.js";
import { uint32At } from "../../model/base/columns.js";
import type { TimeMs } from "../../model/base/units.js";
import { damagedInput, fileUnusable, notOurs, TidemarkError } from "../../model/errors/errors.js";
import { joinFiles, partFiles } from "../../model/profile/file_mappings.js";
import { foldSites } from "../../model/profile/fold_sites.js";
import type {
  Profile,
  ProfileLook,
  ProfileTables,
  SiteTable,
} from "../../model/profile/profile.js";
import { pickSites } from "../../model/profile/site_columns.js";
import { ProfileTablesBuilder, type TablesMap } from "../../model/profile/tables_builder.js";
import type { OpenRecording } from "../../recording/reader.js";
import type { AgentFigures } from "../../recording/types.js";
import { RecordingWriter } from "../../recording/writer.js";
import type { ProfileAssembler } from "../../segment/index.js";
import { reopenRecording } from "../process/open_recording.js";
import { profilePool } from "../process/pool_profile.js";
import { orphanPath } from "./run.js";

/**
 * Brings a recording up to what is known of its run, if its recorder was killed; to be called before one
 * is opened. Returns a sentence about what was done, null where there was nothing to do.
 * Throws TidemarkError where the recording cannot be opened, or where its orphan file is damaged,
 * somebody else's, or of another run.
 */
export function finishOrphan(path: string): string | null {
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
    if (meta.keeper && processLives(meta.keeper.pid, meta.keeper.startTicks)) {
      return lookIntoKept(recording, `/proc/${meta.keeper.pid}/fd/${meta.keeper.fd}`);
    }
    return foldOrphan(recording, orphanPath(path));
  } catch (error) {
    if (error instanceof TidemarkError && error.id === "TM-E004") {
      return `The recording was left unfinished and cannot be finished: ${error.what}.`;
    }
    throw error;
  }
}

function lookIntoKept(recording: OpenRecording, poolPath: string): string {
  const descriptor = openForReading(poolPath, 0); // a link by nature
  if (descriptor === null) {
    return "The recorder was killed; the program still runs.";
  }
  try {
    append(recording, descriptor, poolPath, Date.now(), false);
  } finally {
    closeSync(descriptor);
  }
  return "The recorder was killed while the program still runs: its profile as of now was added.";
}

function foldOrphan(recording: OpenRecording, path: string): string | null {
  // Taken by renaming, so that of two commands at once only one folds it in.
  const taken = `${path}.${process.pid}`;
  try {
    renameSync(path, taken);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") {
      return null;
    }
    throw fileUnusable(path, "write", (error as Error).message);
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
        throw notOurs(path, "what tidemark-guard leaves of a run");
      }
      if (stats.uid !== process.getuid?.()) {
        throw fileUnusable(path, "read", `EPERM: it belongs to user ${stats.uid}`);
      }
      append(recording, descriptor, path, Math.round(stats.mtimeMs), true);
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
  return "The recorder was killed during the run: the program's last moment was added to the recording.";
}

function openForReading(path: string, flags: number): number | null {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | flags);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") {
      return null;
    }
    throw fileUnusable(path, "read", message);
  }
}

/** Appends a look at all segments of the pool; `last`: the end, too. */
function append(
  recording: OpenRecording,
  descriptor: number,
  source: string,
  timeMs: TimeMs,
  last: boolean,
): void {
  const { header, assembler, limits } = profilePool(descriptor, source);
  if (header.runId !== recording.meta.runId) {
    throw damagedInput(source, "it is of another run than the recording beside it");
  }
  const before =
    recording.looks.length > 0 ? recording.profileOf(recording.looks.length - 1) : null;
  const atMs = Math.max(timeMs, recording.endMs);
  const { tables, look } = merge(recording.tables(), before, assembler.take(atMs));
  const writer = RecordingWriter.resume(
    recording.path,
    recording.wholeBytes,
    recording.tables(),
    recording.looks.length,
  );
  try {
    if (look.sites.length > 0) {
      writer.look(tables, look, {
        kind: last ? "end" : "poll",
        agent: agentOf(recording, assembler),
      });
    }
    writer.agentLimits(atMs, limits);
    if (last) {
      writer.limits(atMs, [
        "The recorder was killed: memory figures and processes end where it died, and nobody saw how the program ended.",
      ]);
      writer.end({
        timeMs: atMs,
        exitCode: null,
        signal: null,
        maxRssBytes: 0,
        userMs: 0,
        systemMs: 0,
      });
    }
    if (writer.failure) {
      throw writer.failure;
    }
  } finally {
    writer.close();
  }
}

/** The dictionaries with the new rows added; the new look, and of the old one the processes that the pool
 * no longer holds: they have ended, so nothing of theirs lives. */
function merge(
  recorded: ProfileTables,
  before: Profile | null,
  found: { readonly tables: ProfileTables; readonly look: ProfileLook },
): { tables: ProfileTables; look: ProfileLook } {
  const builder = new ProfileTablesBuilder();
  builder.absorb(recorded);
  const map = builder.absorb(found.tables);
  const tables = builder.tables();
  const { look } = found;
  const rows = translate(joinFiles(look), map);
  const present = new Set(map.processes);
  const peakMs = tables.processes.map((_, index) => before?.peakMs[index] ?? 0);
  map.processes.forEach((to, from) => {
    peakMs[to] = look.peakMs[from] ?? 0;
  });
  const parts = [rows];
  if (before) {
    const all = joinFiles(before);
    const gone = Array.from(all.process.keys()).filter(
      (row) => !present.has(all.process[row] as number),
    );
    const ended = pickSites(all, gone, 0);
    for (const figure of ["liveBytes", "liveObjects", "liveVariance", "liveSamples"] as const) {
      ended[figure].fill(0);
    }
    parts.push({ ...ended, cohortBytes: new Float64Array(gone.length * look.cohorts.length) });
  }
  const width = look.cohorts.length;
  return { tables, look: { ...look, ...partFiles(foldSites(parts, width), width), peakMs } };
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

/** Processes that ended before the recorder did are in its last figures alone. */
function agentOf(recording: OpenRecording, assembler: ProfileAssembler): AgentFigures {
  const { samples, lost, cpuMs, periodBytes } = assembler.totals();
  const known = recording.looks.at(-1)?.agent;
  return {
    samples: Math.max(samples, known?.samples ?? 0),
    lost: Math.max(lost, known?.lost ?? 0),
    cpuMs: Math.max(cpuMs, known?.cpuMs ?? 0),
    periodBytes,
  };
}
