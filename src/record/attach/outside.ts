/** Records a running program from outside: nothing is loaded into it. */
import { hasEnded, readStat, startTimeMs } from "../../linux/index.js";
import { MemoryRoom } from "../../linux/this_process/memory_room.js";
import type { Millis, Pid } from "../../model/base/units.js";
import { processGone } from "../../model/errors/errors.js";
import type { Destination } from "../../recording/sender/post_connection.js";
import type { CpuBudget } from "../budget/cpu_budget.js";
import { Recorder } from "../launch/recorder.js";
import { beginRecording } from "./begun_recording.js";

export interface OutsideOptions {
  readonly pid: Pid;
  readonly recordingPath: string;
  /** Record its child processes, too. */
  readonly follow: boolean;
  readonly to?: Destination;
  readonly budget: CpuBudget;
  /** Ends the recording. */
  readonly until: AbortSignal;
}

const CHECK_MS: Millis = 500;

/** Until the program ends or `until` is aborted. Throws TidemarkError if there is no such process. */
export async function recordFromOutside(options: OutsideOptions): Promise<void> {
  const { pid, follow, until } = options;
  const stat = readStat(pid);
  if (stat === null || hasEnded(stat)) {
    throw processGone(pid);
  }
  const recording = beginRecording(pid, options.recordingPath, null, options.to);
  const { writer, command, startedMs } = recording;
  writer.limits(startedMs, [
    "Recorded from outside: there are no allocation sites, because the program has no agent.",
  ]);
  const recorder = new Recorder({
    writer,
    pid,
    startTicks: stat.startTicks,
    command,
    startedMs,
    programStartedMs: Math.min(startedMs, startTimeMs(stat.startTicks)),
    follow,
    pool: null,
    devices: null,
    budget: options.budget,
    memory: new MemoryRoom(),
  });
  recorder.start();
  await ended(recorder, until);
  if (recorder.rootLives) {
    recorder.leave();
  } else {
    await recorder.finish(null);
  }
  writer.close();
  await recording.sendRest();
}

function ended(recorder: Recorder, until: AbortSignal): Promise<void> {
  return new Promise((resume) => {
    const timer = setInterval(check, CHECK_MS);
    until.addEventListener("abort", check);
    check();
    function check() {
      if (until.aborted || !recorder.rootLives) {
        clearInterval(timer);
        until.removeEventListener("abort", check);
        resume();
      }
    }
  });
}
