/** Errors of attaching to a live process. */

import type { Millis, Pid } from "../base/units.js";
import { oneLine, TidemarkError } from "./errors.js";

/** TM-E032: another tool traces the process, and the kernel allows only one tracer. */
export function targetTraced(pid: Pid, tracer: Pid, tracerName: string): TidemarkError {
  return new TidemarkError(
    "TM-E032",
    4,
    `process ${pid} is traced by ${oneLine(tracerName) || "another tool"} (${tracer})`,
    "the kernel allows one tracer at a time",
    "stop that tool, then try again",
  );
}

/** TM-E033: the process cannot be paused now; nothing was changed. */
export function targetBusy(pid: Pid, reason: string): TidemarkError {
  return new TidemarkError(
    "TM-E033",
    4,
    `process ${pid} cannot be paused: ${oneLine(reason)}`,
    "",
    "try again later",
  );
}

/** TM-E034: the interpreter's structures are unknown or unexpected; nothing was written. */
export function targetUnknown(pid: Pid, reason: string): TidemarkError {
  return new TidemarkError(
    "TM-E034",
    4,
    `cannot attach to process ${pid} safely: ${oneLine(reason)}`,
    "a write at a wrong address would crash it, so nothing was written",
    "start it under: tidemark run",
  );
}

/** TM-E035: the process ran no Python code in time, so Tidemark could not attach; everything was undone. */
export function targetNotEntered(pid: Pid, waitedMs: Millis, doing: string): TidemarkError {
  return new TidemarkError(
    "TM-E035",
    4,
    `could not attach to process ${pid} in ${Math.round(waitedMs / 1000)} s: ${oneLine(doing)}`,
    "Tidemark's code runs only when the main thread runs Python code",
    "try again when it does, or wait longer with --wait",
  );
}

/** TM-E041: Ctrl-C before there was a result; everything that was put into the process was removed. */
export function entryInterrupted(pid: Pid): TidemarkError {
  return new TidemarkError(
    "TM-E041",
    130,
    `interrupted: there is no result, and process ${pid} is as it was before`,
    "",
    "",
  );
}

/** TM-E036: the code that ran in the process raised an exception; `exception` is its last line. */
export function targetRaised(pid: Pid, exception: string): TidemarkError {
  return new TidemarkError(
    "TM-E036",
    4,
    `code in process ${pid} raised an exception: ${oneLine(exception)}`,
    "the process's own interpreter raised it",
    "",
  );
}

/** TM-E037: a recorder is already attached. */
export function alreadyAttached(pid: Pid, holder: string, next: string): TidemarkError {
  return new TidemarkError(
    "TM-E037",
    4,
    `process ${pid} is already being recorded by ${oneLine(holder)}`,
    "two recorders of one process would each get half of the samples",
    next,
  );
}

/**
 * Also TM-E037: `detach` does not remove the agent of a running recorder. `isRun`: the recorder started the
 * program.
 */
export function recorderLives(
  pid: Pid,
  {
    recorder,
    path,
    isRun,
  }: { readonly recorder: Pid; readonly path: string; readonly isRun: boolean },
): TidemarkError {
  return new TidemarkError(
    "TM-E037",
    4,
    `process ${pid} is being recorded by process ${recorder}, to ${oneLine(path)}`,
    "detach cleans up after a recorder that crashed, and this one is alive",
    isRun
      ? "tidemark run records until the program ends"
      : `to end its recording: kill -INT ${recorder}`,
  );
}

/**
 * Also TM-E037: the recorder has ended, but its agent still records. `guard` saves that profile; null if no
 * guard runs.
 */
export function recorderDied(pid: Pid, guard: Pid | null): TidemarkError {
  return new TidemarkError(
    "TM-E037",
    4,
    `the recorder of process ${pid} has ended, and its agent is still in the process`,
    guard === null
      ? ""
      : `its guard (process ${guard}) adds the profile to the recording when the program ends`,
    `to record it again, remove the agent first: tidemark detach ${pid}`,
  );
}

/** TM-E038: the agent is loaded in the process but does not start. */
export function agentRefused(pid: Pid, reason: string): TidemarkError {
  return new TidemarkError(
    "TM-E038",
    4,
    `the agent in process ${pid} does not start: ${oneLine(reason)}`,
    "",
    "",
  );
}

/** TM-E039: Tidemark is not in the process. */
export function notAttached(pid: Pid): TidemarkError {
  return new TidemarkError(
    "TM-E039",
    2,
    `Tidemark is not attached to process ${pid}`,
    "",
    `attach with: tidemark attach ${pid}`,
  );
}
