/** What may go wrong between Tidemark and a live process. */

import type { Millis, Pid } from "../base/units.js";
import { oneLine, TidemarkError } from "./errors.js";

/** TM-E032: another tool traces the process, and the kernel allows one. */
export function targetTraced(pid: Pid, tracer: Pid, tracerName: string): TidemarkError {
  return new TidemarkError(
    "TM-E032",
    4,
    `process ${pid} is traced by ${oneLine(tracerName) || "another tool"} (${tracer})`,
    "the kernel allows one tracer at a time",
    "end that one, then try again",
  );
}

/** TM-E033: the process cannot be stopped for a moment now; nothing was changed. */
export function targetBusy(pid: Pid, reason: string): TidemarkError {
  return new TidemarkError(
    "TM-E033",
    4,
    `process ${pid} cannot be stopped: ${oneLine(reason)}`,
    "",
    "try again later",
  );
}

/** TM-E034: an interpreter whose structures are not known, or not as they should be; nothing was written. */
export function targetUnknown(pid: Pid, reason: string): TidemarkError {
  return new TidemarkError(
    "TM-E034",
    4,
    `process ${pid} is not entered: ${oneLine(reason)}`,
    "a write at a wrong place would end it, so nothing was written",
    "start it under: tidemark run",
  );
}

/** TM-E035: the process ran no Python code in time, so nothing was taken; all was undone. */
export function targetNotEntered(pid: Pid, waitedMs: Millis, doing: string): TidemarkError {
  return new TidemarkError(
    "TM-E035",
    4,
    `process ${pid} took nothing in ${Math.round(waitedMs / 1000)} s: ${oneLine(doing)}`,
    "it runs what Tidemark hands it when its main thread runs Python code",
    "try again when it does, or wait longer with --wait",
  );
}

/** TM-E041: Ctrl-C before there was a result; what was put into the process was taken back. */
export function entryInterrupted(pid: Pid): TidemarkError {
  return new TidemarkError(
    "TM-E041",
    130,
    `interrupted: process ${pid} is left as it was, without a result`,
    "",
    "",
  );
}

/** TM-E036: what ran in the process raised; `exception` is its last line there. */
export function targetRaised(pid: Pid, exception: string): TidemarkError {
  return new TidemarkError(
    "TM-E036",
    4,
    `process ${pid} refused: ${oneLine(exception)}`,
    "this is the exception that its own interpreter raised",
    "",
  );
}

/** TM-E037: a recorder is attached already. */
export function alreadyAttached(pid: Pid, holder: string, next: string): TidemarkError {
  return new TidemarkError(
    "TM-E037",
    4,
    `process ${pid} is recorded already, by ${oneLine(holder)}`,
    "two recorders of one process would halve each other's samples",
    next,
  );
}

/** TM-E037, too: `detach` does not take the agent from a recorder that is alive. `isRun`: it started the program. */
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

/** TM-E037, too: the agent of a recorder that died still records; `guard` keeps that, or nobody. */
export function recorderDied(pid: Pid, guard: Pid | null): TidemarkError {
  return new TidemarkError(
    "TM-E037",
    4,
    `the recorder of process ${pid} has ended, and its agent is still in the process`,
    guard === null
      ? ""
      : `its guard (process ${guard}) adds the profile to the recording when the program ends`,
    `to record it anew, take the agent out first: tidemark detach ${pid}`,
  );
}

/** TM-E038: the agent is in the process and does not come on. */
export function agentRefused(pid: Pid, reason: string): TidemarkError {
  return new TidemarkError(
    "TM-E038",
    4,
    `the agent in process ${pid} does not come on: ${oneLine(reason)}`,
    "",
    "",
  );
}

/** TM-E039: nothing of Tidemark's is in the process. */
export function notAttached(pid: Pid): TidemarkError {
  return new TidemarkError(
    "TM-E039",
    2,
    `nothing is attached to process ${pid}`,
    "",
    `attach with: tidemark attach ${pid}`,
  );
}
