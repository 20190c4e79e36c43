/** The second recorder of a run whose first one left the program to its guard (hand_over.ts). */
import { openRecording } from "../process/open_recording.js";
import { GuardClient } from "./guard.js";
import { finishOrphan } from "./orphan.js";
import { exitCodeOf, orphanPath } from "./run.js";
import type { RunResult } from "./run_options.js";

/** What tidemark-guard passes to the second recorder: the path of the ended program's pool. */
export function orphanToComplete(): string | null {
  return process.env.TIDEMARK_COMPLETES ?? null;
}

/** Adds the program's last moment and how it ended to its recording. Throws TidemarkError. */
export async function completeRun(orphan: string, guardDescriptor: number): Promise<RunResult> {
  const recordingPath = orphan.slice(0, orphan.length - orphanPath("").length);
  const guard = new GuardClient(guardDescriptor);
  const report = await guard.exited;
  finishOrphan(recordingPath, report);
  return {
    recordingPath,
    recorded: true,
    handedOver: false,
    exitCode: exitCodeOf(report),
    signal: report?.signal ?? null,
    startFailure: null,
    notes: [],
    recorderCpuMs: null,
    open: () => openRecording(recordingPath),
    leave: (exitCode) => guard.leave(exitCode),
  };
}
