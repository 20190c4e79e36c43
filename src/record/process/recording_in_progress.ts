/** Recordings that are being written right now. */
import { openFilesEnding, readStat } from "../../linux/index.js";
import type { Pid } from "../../model/base/units.js";
import { TidemarkError } from "../../model/errors/errors.js";
import { openRecording } from "./open_recording.js";

/** Path of the recording that grows with the process, as its root or as one of its children; null where
 * nobody records it. */
export function growingRecordingOf(pid: Pid): string | null {
  for (const { path, pid: holder } of openFilesEnding(".tidemark")) {
    try {
      const { complete, meta, processes } = openRecording(path);
      if (
        !complete &&
        // Others read it, too. A recorder in another pid namespace knows itself by another pid.
        readStat(holder)?.startTicks === meta.recorder.startTicks &&
        processes.some((process) => process.pid === pid && process.endedMs === null)
      ) {
        return path;
      }
    } catch (error) {
      // A file that only bears the name, or has no frame yet.
      if (!(error instanceof TidemarkError)) {
        throw error;
      }
    }
  }
  return null;
}
