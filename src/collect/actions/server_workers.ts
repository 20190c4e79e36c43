/**
 * Replaces the workers of a web or task server by the server's own signals:
 *
 *     gunicorn   SIGTERM to the largest worker, which ends its requests; the master starts another
 *     uvicorn    the same, from version 0.30: its master then handles SIGHUP, too
 *     celery     SIGHUP to the worker's main process, which ends its tasks and starts itself again
 *
 * A signal is sent only to a process that has a handler for it, because any other would be killed by it.
 */
import { basename } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  catchesSignal,
  descendantsOf,
  hasEnded,
  readCommand,
  readStat,
} from "../../linux/index.js";
import { monotonicMs } from "../../linux/this_process/clock.js";
import { formatBytes, formatDuration } from "../../model/base/numbers.js";
import type { Millis, Pid } from "../../model/base/units.js";
import { pythonSource } from "../../model/profile/python_command.js";
import { rssOfProcess } from "../captures/triggers.js";
import { ActionFailed } from "./action_failed.js";

const SERVERS = ["gunicorn", "uvicorn", "celery"] as const;
type ServerName = (typeof SERVERS)[number];

/** A process as far as this file needs it. */
export interface ServerProcess {
  readonly pid: Pid;
  readonly parentPid: Pid;
  readonly startTicks: number;
  readonly command: readonly string[];
}

const SIGHUP = 1;
const SIGTERM = 15;
/** How long a master may take to start another worker. */
const REPLACED_MS: Millis = 30_000;
const LOOK_MS: Millis = 100;
const NO_WORKERS = /resource_tracker|forkserver/;

/** @internal The server that a command line starts; null: none of these. */
export function serverOf(command: readonly string[]): ServerName | null {
  const [title = ""] = command;
  if (/^gunicorn: (?:master|arbiter)/.test(title)) {
    return "gunicorn";
  }
  const name = basename(startedBy(command));
  const found = SERVERS.find((server) => server === name);
  return found === undefined || (found === "celery" && !command.includes("worker")) ? null : found;
}

/** The script or the module that Python runs; if the first word is no Python, that. */
function startedBy(command: readonly string[]): string {
  const source = pythonSource(command);
  if (source === null) {
    return command[0] ?? "";
  }
  return "name" in source ? source.name : "";
}

/** The master and its workers; null: no server that is known here, or it has no workers. @internal */
export function serverIn(processes: readonly ServerProcess[]): {
  readonly name: ServerName;
  readonly master: ServerProcess;
  readonly workers: readonly ServerProcess[];
} | null {
  for (const master of processes) {
    const name = serverOf(master.command);
    const parent = processes.find(({ pid }) => pid === master.parentPid);
    if (parent !== undefined && serverOf(parent.command) === name) {
      continue; // a worker, which has its master's command line
    }
    const workers = processes.filter(
      ({ parentPid, command }) => parentPid === master.pid && !NO_WORKERS.test(command.join(" ")),
    );
    if (name !== null && (workers.length > 0 || name === "celery")) {
      return { name, master, workers };
    }
  }
  return null;
}

/** @returns what was done. Throws ActionFailed. */
export async function recycleWorker(
  processes: readonly ServerProcess[],
  graceMs: Millis,
  until: AbortSignal,
): Promise<string> {
  const server = serverIn(processes);
  if (server === null) {
    throw new ActionFailed("it is no gunicorn, uvicorn or celery with workers", true);
  }
  const { name, master, workers } = server;
  if (name === "celery") {
    return await restartCelery(master, graceMs, until);
  }
  if (name === "uvicorn" && !catchesSignal(master.pid, SIGHUP)) {
    throw new ActionFailed("uvicorn starts no other worker before version 0.30", true);
  }
  const [worker] = workers
    .map((process) => ({ ...process, bytes: rssOfProcess(process.pid) }))
    .sort((a, b) => b.bytes - a.bytes);
  if (worker === undefined || !catchesSignal(worker.pid, SIGTERM)) {
    throw new ActionFailed(`${name}'s largest worker does not handle SIGTERM`, true);
  }
  const before = new Set(descendantsOf(master.pid));
  const begunMs = monotonicMs();
  send(worker, "SIGTERM");
  const isOver = await comesTrue(() => !lives(worker), graceMs, until);
  if (!isOver) {
    throw new ActionFailed(
      `${name}'s worker ${worker.pid} has not ended ${formatDuration(graceMs)} after SIGTERM`,
      false,
    );
  }
  const took = formatDuration(monotonicMs() - begunMs);
  let next: Pid | undefined;
  await comesTrue(
    () => {
      next = descendantsOf(master.pid).find(
        (pid) =>
          !before.has(pid) &&
          readStat(pid)?.parentPid === master.pid &&
          !NO_WORKERS.test((readCommand(pid) ?? []).join(" ")),
      );
      return next !== undefined;
    },
    REPLACED_MS,
    until,
  );
  if (next === undefined) {
    throw new ActionFailed(`${name}'s worker ${worker.pid} ended, and no other was started`, true);
  }
  return `${name}'s largest worker ${worker.pid} (${formatBytes(worker.bytes)}) ended after ${took}; worker ${next} replaced it`;
}

async function restartCelery(
  master: ServerProcess,
  graceMs: Millis,
  until: AbortSignal,
): Promise<string> {
  if (!catchesSignal(master.pid, SIGHUP)) {
    throw new ActionFailed(
      "this celery worker does not restart on SIGHUP: it has a terminal",
      true,
    );
  }
  const before = readStat(master.pid)?.stackStart;
  const begunMs = monotonicMs();
  send(master, "SIGHUP");
  // It executes itself again, with the same pid.
  const isDone = await comesTrue(
    () => !lives(master) || readStat(master.pid)?.stackStart !== before,
    graceMs,
    until,
  );
  if (!isDone) {
    throw new ActionFailed(
      `celery has not started again ${formatDuration(graceMs)} after SIGHUP: it may wait for a task`,
      false,
    );
  }
  if (!lives(master)) {
    throw new ActionFailed("celery ended on SIGHUP and has not started again", true);
  }
  return `celery ended its tasks and started again after ${formatDuration(monotonicMs() - begunMs)}`;
}

/** Sends SIGTERM and waits until the process has ended. Throws ActionFailed. */
export async function endProcess(
  process: ServerProcess,
  graceMs: Millis,
  until: AbortSignal,
): Promise<string> {
  send(process, "SIGTERM");
  return await hasEndedAfter("SIGTERM", process, graceMs, until);
}

/** Waits until the process has ended. `what` caused that. @returns this in words. Throws ActionFailed. */
export async function hasEndedAfter(
  what: string,
  process: ServerProcess,
  graceMs: Millis,
  until: AbortSignal,
): Promise<string> {
  const begunMs = monotonicMs();
  if (!(await comesTrue(() => !lives(process), graceMs, until))) {
    throw new ActionFailed(
      `process ${process.pid} has not ended ${formatDuration(graceMs)} after ${what}`,
      false,
    );
  }
  return `process ${process.pid} ended ${formatDuration(monotonicMs() - begunMs)} after ${what}`;
}

/** Not to another process that has the pid now. */
function send(target: ServerProcess, signal: "SIGTERM" | "SIGHUP"): void {
  try {
    if (lives(target)) {
      process.kill(target.pid, signal);
      return;
    }
  } catch (error) {
    throw new ActionFailed(`${signal} to process ${target.pid}: ${(error as Error).message}`, true);
  }
  throw new ActionFailed(`process ${target.pid} has ended`, false);
}

function lives({ pid, startTicks }: ServerProcess): boolean {
  const stat = readStat(pid);
  return stat !== null && !hasEnded(stat) && stat.startTicks === startTicks;
}

/** False if it does not within the time, or `until` is aborted. */
export async function comesTrue(
  condition: () => boolean,
  patienceMs: Millis,
  until: AbortSignal,
): Promise<boolean> {
  const endMs = monotonicMs() + patienceMs;
  while (!condition()) {
    if (monotonicMs() >= endMs || until.aborted) {
      return false;
    }
    await sleep(LOOK_MS);
  }
  return true;
}
