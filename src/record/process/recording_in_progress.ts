/** Recordings in progress. */
import { openFilesEnding, readStat } from "../../linux/index.js";
import type { Pid } from "../../model/base/units.js";
import { TidemarkError } from "../../model/errors/errors.js";
import { openRecording } from "./open_recording.js";

/**
 * Path of the recording in progress that includes the process as its root or a child; null if it is not being
 * recorded.
 */
export function growingRecordingOf(pid: Pid): string | null {
  for (const { path, pid: holder } of openFilesEnding(".tidemark")) {
    try {
      const { complete, meta, processes } = openRecording(path);
      if (
        !complete &&
        // Other processes may also read it. A recorder in another pid namespace has a different pid for itself.
        readStat(holder)?.startTicks === meta.recorder.startTicks &&
        processes.some((process) => process.pid === pid && process.endedMs === null)
      ) {
        return path;
      }
    } catch (error) {
      // A file that only has the name, or has no frame yet.
      if (!(error instanceof TidemarkError)) {
        throw error;
      }
    }
  }
  return null;
}
