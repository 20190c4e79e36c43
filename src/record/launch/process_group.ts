/** Programs that Tidemark runs beside its agent: each in a process group of its own, ended with all that it started. */
import { type ChildProcess, type StdioOptions, spawn } from "node:child_process";
import { descendantsOf } from "../../linux/index.js";
import type { Millis, Pid } from "../../model/base/units.js";

export interface GroupEnd {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Why it could not be started. */
  readonly startFailure: string | null;
}

export interface GroupRequest {
  readonly command: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
  readonly stdio: StdioOptions;
  readonly cwd?: string;
  /** An abort ends every process of the program. */
  readonly until: AbortSignal;
  /** At an abort, the group gets SIGINT first and has this long to end by itself; without it, SIGKILL at once. */
  readonly graceMs?: Millis;
}

export interface Group {
  readonly child: ChildProcess;
  readonly end: Promise<GroupEnd>;
}

/** Starts a program. When it has ended, or at an abort, what it left running is ended, too. */
export function startGroup(request: GroupRequest): Group {
  const { command, environment, stdio, cwd, until, graceMs = 0 } = request;
  const [program = "", ...words] = command;
  const child = spawn(program, words, {
    env: environment,
    stdio,
    detached: true,
    ...(cwd === undefined ? {} : { cwd }),
  });
  const { pid } = child;
  const stop = () => {
    if (pid !== undefined) {
      endGroup(pid);
    }
  };
  let grace: NodeJS.Timeout | undefined;
  const interrupt = () => {
    if (graceMs === 0 || pid === undefined) {
      stop();
    } else {
      signalTo(-pid, "SIGINT");
      grace = setTimeout(stop, graceMs);
    }
  };
  until.addEventListener("abort", interrupt);
  if (until.aborted) {
    interrupt();
  }
  const end = new Promise<GroupEnd>((settle) => {
    child.once("error", (error) =>
      settle({ exitCode: null, signal: null, startFailure: error.message }),
    );
    child.once("exit", (exitCode, signal) => settle({ exitCode, signal, startFailure: null }));
  }).finally(() => {
    until.removeEventListener("abort", interrupt);
    clearTimeout(grace);
    stop();
  });
  return { child, end };
}

/** Ends the group of `pid`, and descendants that left it. */
function endGroup(pid: Pid): void {
  for (const target of [...descendantsOf(pid).slice(1), -pid]) {
    signalTo(target, "SIGKILL");
  }
}

/** `target` negative: to the process group. */
function signalTo(target: number, signal: NodeJS.Signals): void {
  try {
    process.kill(target, signal);
  } catch {
    // It has ended.
  }
}
