/** Cleans up a process whose recorder crashed or could not detach. */
import { basename } from "node:path";
import {
  hasEnded,
  readAttachPermission,
  readCommand,
  readStat,
  refusalOf,
} from "../../linux/index.js";
import type { Millis, Pid } from "../../model/base/units.js";
import { notAttached, recorderLives } from "../../model/errors/attach_errors.js";
import { processGone } from "../../model/errors/errors.js";
import { openRecording } from "../process/open_recording.js";
import { growingRecordingOf } from "../process/recording_in_progress.js";
import { disarmAgent } from "./attached_agent.js";

interface DetachAnswer {
  /** Whether it recorded until now; false: the agent was already disarmed. */
  readonly recorded: boolean;
  /** Whether all hooks are removed; the library stays mapped but inactive. */
  readonly inert: boolean;
  readonly pauseMs: Millis;
}

/** Throws TidemarkError: TM-E039 if the process has no agent, TM-E037 if a recorder is running. */
export async function detachAgent(
  pid: Pid,
  options: {
    readonly waitMs: Millis;
    readonly onWaiting?: (doing: string) => void;
    readonly until?: AbortSignal;
  },
): Promise<DetachAnswer> {
  if (hasEnded(readStat(pid))) {
    throw processGone(pid);
  }
  const permission = readAttachPermission(pid);
  if (!permission.ok) {
    throw refusalOf(pid, permission);
  }
  const growing = growingRecordingOf(pid);
  if (growing !== null) {
    const { meta } = openRecording(growing);
    const recorder = meta.recorder.pid;
    throw recorderLives(pid, { recorder, path: growing, isRun: startedBoth(meta.pid, recorder) });
  }
  const { onWaiting, until, waitMs } = options;
  const { status, was, entered } = await disarmAgent(pid, {
    waitMs,
    ...(onWaiting ? { onWaiting } : {}),
    ...(until ? { signal: until } : {}),
  });
  if (status === null) {
    throw notAttached(pid);
  }
  return {
    recorded: was === "armed",
    inert: status.state === "inert",
    pauseMs: entered.longestPauseMs,
  };
}

/** Whether one guard started the program and its recorder: `tidemark run`. */
function startedBoth(program: Pid, recorder: Pid): boolean {
  const parent = readStat(recorder)?.parentPid;
  return (
    parent !== undefined &&
    readStat(program)?.parentPid === parent &&
    basename(readCommand(parent)?.[0] ?? "") === "tidemark-guard"
  );
}
