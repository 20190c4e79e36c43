import { closeSync, constants, fstatSync, openSync, readdirSync, statSync } from "node:fs";
import { hostname, release } from "node:os";
import { basename, dirname, join } from "node:path";
import { TIDEMARK_VERSION } from "../../linux/installation.js";
import { orNull } from "../../linux/process/proc_files.js";
import type { Pid, TimeMs } from "../../model/base/units.js";
import { fileNotFound, fileUnusable, nothingThere } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import { FileSink } from "../../recording/frames/file_sink.js";
import { RecordingWriter } from "../../recording/writer.js";
import type { SegmentHeader } from "../../segment/index.js";
import { type PoolFile, profilePool } from "../process/pool_profile.js";

/** The agent's name for a pool file in its folder (agent/src/segment/pool.c). */
const POOL_NAME = /^tidemark-\d+\.pool$/;
/** Most pool files in a folder that are searched for children, the newest. */
const MOST_POOLS = 200;

export interface PoolChoice {
  /** The process to import from the pool; null: all. */
  readonly only: Pid | null;
  /** Whether the children's pools beside the file belong to the recording. */
  readonly withChildren: boolean;
}

/**
 * Converts a pool file to a recording. An agent that was enabled by the environment (`TIDEMARK=dir=...`) writes
 * the pool file; its process may still be running. The recording has one snapshot, the last moment. Throws
 * TidemarkError if the file is not a pool, or nothing was sampled.
 */
export function importPool(
  poolPath: string,
  recordingPath: string,
  { only, withChildren }: PoolChoice,
): void {
  const descriptor = open(poolPath);
  const others = withChildren && only === null ? poolsBeside(poolPath) : [];
  try {
    const file = { descriptor, source: poolPath };
    const { header, processes, assembler, limits } = profilePool(file, only, others);
    const [first] = processes;
    const totals = assembler.totals();
    if (first === undefined || totals.samples === 0) {
      throw nothingThere(
        `${poolPath} contains no profile${only === null ? "" : ` of process ${only}`}`,
        "its process has no samples, or never started",
      );
    }
    const timeMs = Math.max(...processes.map(lastChangeMs));
    const writer = new RecordingWriter(FileSink.open(recordingPath));
    try {
      writer.begin({
        tidemarkVersion: TIDEMARK_VERSION,
        command: first.command,
        pid: first.pid,
        startedMs: first.startRealtimeMs,
        host: hostname(),
        kernel: release(),
        runId: header.runId,
        periodBytes: header.periodBytes,
        keeper: null,
        recorder: { pid: 0, startTicks: 0 },
      });
      writer.processes(
        timeMs,
        processes.map((process, series) => ({
          series,
          pid: process.pid,
          parentPid: process.parentPid,
          command: process.command,
          python: process.python,
          profiled: true,
          startedMs: process.startRealtimeMs,
          endedMs: process.state === "ended" ? lastChangeMs(process) : null,
        })),
      );
      const { tables, snapshot } = assembler.take(timeMs);
      const { samples, lost, cpuMs, periodBytes } = totals;
      writer.snapshot(tables, snapshot, {
        kind: "end",
        agent: { samples, lost, cpuMs, periodBytes },
      });
      writer.agentLimits(timeMs, limits);
      writer.limits(timeMs, [
        processes.length === 1
          ? "No recorder watched the process: its memory figures (RSS, PSS) and how it ended are unknown."
          : "No recorder watched the processes: their memory figures (RSS, PSS) and how they ended are unknown.",
      ]);
      writer.end({ timeMs, exitCode: null, signal: null, maxRssBytes: 0, userMs: 0, systemMs: 0 });
      if (writer.failure) {
        throw writer.failure;
      }
    } finally {
      writer.close();
    }
  } finally {
    for (const { descriptor: opened } of [{ descriptor }, ...others]) {
      closeSync(opened);
    }
  }
}

/** The other pool files of the folder, opened; none if the folder cannot be listed. */
function poolsBeside(poolPath: string): PoolFile[] {
  const folder = dirname(poolPath);
  return (orNull(() => readdirSync(folder)) ?? [])
    .filter((name) => POOL_NAME.test(name) && name !== basename(poolPath))
    .map((name) => join(folder, name))
    .map((source) => ({ source, changedMs: statSync(source, { throwIfNoEntry: false })?.mtimeMs }))
    .sort((a, b) => (b.changedMs ?? 0) - (a.changedMs ?? 0))
    .slice(0, MOST_POOLS)
    .flatMap(({ source }) => {
      try {
        return { source, descriptor: open(source) };
      } catch {
        return []; // it may not be read, or is gone
      }
    });
}

function lastChangeMs({ startRealtimeMs, startMonotonicMs, heartbeatMs }: SegmentHeader): TimeMs {
  return startRealtimeMs + Math.max(0, heartbeatMs - startMonotonicMs);
}

function open(path: string): number {
  let descriptor: number;
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const { code, message } = reasonOf(error);
    throw code === "ENOENT" ? fileNotFound(path, "pool file") : fileUnusable(path, "read", message);
  }
  if (!fstatSync(descriptor).isFile()) {
    closeSync(descriptor);
    throw fileUnusable(path, "read", "it is not a regular file");
  }
  return descriptor;
}
