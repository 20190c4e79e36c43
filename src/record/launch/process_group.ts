/** Programs that Tidemark runs beside its agent: each in a process group of its own, ended with all that it started. */
import { type ChildProcess, type StdioOptions, spawn } from "node:child_process";
import { descendantsOf } from "../../linux/index.js";
import type { Pid } from "../../model/base/units.js";

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
}

export interface Group {
  readonly child: ChildProcess;
  readonly end: Promise<GroupEnd>;
}

/** Starts a program. When it has ended, or at an abort, what it left running is ended, too. */
export function startGroup({ command, environment, stdio, cwd, until }: GroupRequest): Group {
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
  until.addEventListener("abort", stop);
  if (until.aborted) {
    stop();
  }
  const end = new Promise<GroupEnd>((settle) => {
    child.once("error", (error) =>
      settle({ exitCode: null, signal: null, startFailure: error.message }),
    );
    child.once("exit", (exitCode, signal) => settle({ exitCode, signal, startFailure: null }));
  }).finally(() => {
    until.removeEventListener("abort", stop);
    stop();
  });
  return { child, end };
}

/** Ends the group of `pid`, and descendants that left it. */
function endGroup(pid: Pid): void {
  for (const target of [...descendantsOf(pid).slice(1), -pid]) {
    try {
      process.kill(target, "SIGKILL");
    } catch {
      // It has ended.
    }
  }
}
