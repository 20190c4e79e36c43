/** Recordings that a user names, by path or by the process that is being recorded. */
import { type Stats, statSync } from "node:fs";
import { hasEnded, readStat } from "../../linux/index.js";
import type { Bytes, Pid } from "../../model/base/units.js";
import { recorderDied } from "../../model/errors/attach_errors.js";
import { fileUnusable, nothingThere, processGone } from "../../model/errors/errors.js";
import {
  finishOrphan,
  growingRecordingOf,
  leftAgentOf,
  openRecording,
} from "../../record/index.js";
import type { Recording } from "../../recording/types.js";
import { type SiteMovement, siteMovement } from "../recorded/site_movement.js";

/** Opens a recording; if its recorder crashed, completes the recording first. Throws TidemarkError. */
export function openRecordingAt(path: string): Recording {
  const kind = statOf(path);
  if (kind?.isFIFO() || kind?.isSocket()) {
    // Opening a pipe would wait for a writer.
    throw fileUnusable(path, "read", "it is not a regular file");
  }
  if (kind?.isDirectory()) {
    throw fileUnusable(path, "read", "it is a directory, not a recording");
  }
  finishOrphan(path);
  return openRecording(path);
}

/** The path of the recording that is being written of a process. Throws TidemarkError (TM-E014) if there is none. */
export function recordingOfProcess(pid: Pid): string {
  const path = growingRecordingOf(pid);
  if (path === null && hasEnded(readStat(pid))) {
    throw processGone(pid);
  }
  if (path === null) {
    const left = leftAgentOf(pid);
    throw left === null
      ? nothingThere(
          `process ${pid} is not being recorded`,
          `record it with: tidemark attach ${pid}`,
        )
      : recorderDied(pid, left.guard);
  }
  return path;
}

/** What a live view shows of a recording. */
export interface RecordingProgress extends SiteMovement {
  readonly fileBytes: Bytes;
  readonly recording: Recording;
}

/** Reads a recording that may be growing; returns `before` if its file has the same size. Throws TidemarkError. */
export function recordingProgress(
  path: string,
  before: RecordingProgress | null,
): RecordingProgress {
  const fileBytes = statOf(path)?.size ?? 0;
  if (before !== null && before.fileBytes === fileBytes) {
    return before;
  }
  const recording = openRecordingAt(path);
  return { fileBytes, recording, ...siteMovement(recording) };
}

/** Undefined if there is no such file or it is not accessible; opening it reports the reason. */
function statOf(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}
