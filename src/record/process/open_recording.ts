/** Recordings of this machine, whose recorder may still be running. */
import { processLives } from "../../linux/process/process_identity.js";
import { OpenRecording, openRecording as open } from "../../recording/reader.js";
import type { Recording } from "../../recording/types.js";

const recorderLives = ({ pid, startTicks }: Recording["meta"]["recorder"]) =>
  processLives(pid, startTicks);

/** As in recording/reader.ts; a recording whose recorder is running is incomplete, not damaged. */
export function openRecording(path: string): Recording {
  return open(path, recorderLives);
}

/** For the recorder itself. `memory`: the whole recording, if its file contains only the start. */
export function reopenRecording(path: string, memory: Buffer | null = null): OpenRecording {
  return new OpenRecording(path, memory, recorderLives);
}
