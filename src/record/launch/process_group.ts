/**
 * Programs that Tidemark runs beside its agent, each ended with all that it started. A program is in a session of its
 * own, except one that uses our terminal: only in our session can it open /dev/tty, and be stopped by Ctrl-Z.
 */
import { type ChildProcess, type StdioOptions, spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { isatty } from "node:tty";
import { descendantsOf, listPids, readEnvironment } from "../../linux/index.js";
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
  /**
   * At an abort, the group gets SIGINT first and has this long to end by itself; without it, SIGKILL at once. After two
   * thirds of the time it gets a second one: Python notices a signal that arrives just before a blocking call only when
   * the call returns.
   */
  readonly graceMs?: Millis;
  /** After the program, what it left running has this long to end by itself, such as multiprocessing's tracker. */
  readonly lingerMs?: Millis;
  /** Whether the program's input and output are ours. */
  readonly isShown?: boolean;
  /** Whether daemons are ended, too: processes that left the session. A build may leave a cache server that is of use. */
  readonly endsDaemons: boolean;
}

export interface Group {
  readonly child: ChildProcess;
  readonly end: Promise<GroupEnd>;
}

/** A variable by which processes are found that outlive their parent. */
const MARK = "TIDEMARK_GROUP";
let marks = 0;
const POLL_MS = 100;

/**
 * Starts a program. When it has ended, or at an abort, what it left running is ended, too. The message of the
 * abort's reason is the name of the signal: on a terminal, Ctrl-C has reached the program already.
 */
export function startGroup(request: GroupRequest): Group {
  const {
    command,
    environment,
    stdio,
    cwd,
    until,
    graceMs = 0,
    lingerMs = 0,
    isShown = false,
    endsDaemons,
  } = request;
  const [program = "", ...words] = command;
  const isOnTerminal = isShown && [0, 1, 2].some(isatty);
  const mark = `${process.pid}.${++marks}`;
  const child = spawn(program, words, {
    env: { ...environment, [MARK]: mark },
    stdio,
    detached: !isOnTerminal,
    ...(cwd === undefined ? {} : { cwd }),
  });
  const { pid } = child;
  const marked = () => listPids().filter((other) => readEnvironment(other)[MARK] === mark);
  const stop = () => {
    if (pid !== undefined) {
      const others = endsDaemons || isOnTerminal ? marked() : [];
      const group = isOnTerminal ? [] : [-pid];
      for (const target of [...descendantsOf(pid).slice(1), ...group, ...others]) {
        signalTo(target, "SIGKILL");
      }
    }
  };
  const timers: NodeJS.Timeout[] = [];
  const interrupt = () => {
    if (graceMs === 0 || pid === undefined) {
      stop();
      return;
    }
    const target = isOnTerminal ? pid : -pid;
    if (!isOnTerminal || until.reason?.message !== "SIGINT") {
      signalTo(target, "SIGINT");
    }
    timers.push(
      setTimeout(() => signalTo(target, "SIGINT"), (graceMs * 2) / 3),
      setTimeout(stop, graceMs),
    );
  };
  until.addEventListener("abort", interrupt);
  if (until.aborted) {
    interrupt();
  }
  const stopFollowing = isOnTerminal ? followStops(marked) : () => {};
  const end = new Promise<GroupEnd>((settle) => {
    child.once("error", (error) =>
      settle({ exitCode: null, signal: null, startFailure: error.message }),
    );
    child.once("exit", (exitCode, signal) => settle({ exitCode, signal, startFailure: null }));
  }).finally(async () => {
    until.removeEventListener("abort", interrupt);
    stopFollowing();
    for (const timer of timers) {
      clearTimeout(timer);
    }
    const last = performance.now() + lingerMs;
    while (!until.aborted && performance.now() < last && marked().length > 0) {
      await sleep(POLL_MS);
    }
    stop();
  });
  return { child, end };
}

/**
 * From now on, Ctrl-Z also stops processes that ignore SIGTSTP, as those under Valgrind do. Returns a function that
 * ends this.
 */
function followStops(processes: () => Pid[]): () => void {
  const onStop = () => {
    const stopped = processes();
    for (const pid of stopped) {
      signalTo(pid, "SIGSTOP");
    }
    process.off("SIGTSTP", onStop);
    // Stops this process until the shell continues it. Without a shell that could, the kernel ignores the signal.
    signalTo(process.pid, "SIGTSTP");
    process.on("SIGTSTP", onStop);
    for (const pid of stopped) {
      signalTo(pid, "SIGCONT");
    }
  };
  process.on("SIGTSTP", onStop);
  return () => process.off("SIGTSTP", onStop);
}

/** `target` negative: to the process group. */
function signalTo(target: number, signal: NodeJS.Signals): void {
  try {
    process.kill(target, signal);
  } catch {
    // It has ended.
  }
}
