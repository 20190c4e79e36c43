/** Recordings of this machine: a recorder of one may still run. */
import { processLives } from "../../linux/process/process_identity.js";
import { OpenRecording, openRecording as open } from "../../recording/reader.js";
import type { Recording } from "../../recording/types.js";

const recorderLives = ({ pid, startTicks }: Recording["meta"]["recorder"]) =>
  processLives(pid, startTicks);

/** As in recording/reader.ts; a recording whose recorder runs is growing, not damaged. */
export function openRecording(path: string): Recording {
  return open(path, recorderLives);
}

/** For the recorder itself. `memory`: the whole recording, if its file holds only the start of it. */
export function reopenRecording(path: string, memory: Buffer | null = null): OpenRecording {
  return new OpenRecording(path, memory, recorderLives);
}
