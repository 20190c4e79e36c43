/**
 * Ends of processes and starts of Python programs, as the kernel reports them to `tidemark-guard events`
 * (agent/guard/events.c). Without the privilege, programs are found by scanning alone, and how they ended is unknown.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { GUARD_PATH } from "../../linux/installation.js";
import type { Millis, Pid } from "../../model/base/units.js";

/** Ends that are remembered, for programs whose end is noticed later. */
const MOST_ENDS = 20_000;
const MOST_STARTS = 5_000;
const ERRNO_TEXT: Readonly<Record<string, string>> = {
  "1": "before Linux 6.6 they need the capability CAP_NET_ADMIN",
  "13": "before Linux 6.6 they need the capability CAP_NET_ADMIN",
  "93": "the kernel has no process connector",
  "111": "they are available only in the host's network namespace",
};

const SILENT = "they are available only in the host's pid and user namespaces";
/** The guard writes events after a fifth of a second, later on a busy host. */
export const EVENT_MS: Millis = 2_500;
/** Between two lookups of an end whose event has not arrived. */
const LOOKUP_MS: Millis = 100;
/** How long the kernel may take to answer; on a busy host, the guard starts late. */
const ANSWER_MS: Millis = 15_000;

/** How a process ended, from its wait status. */
export interface ProcessExit {
  /** null: by a signal. */
  readonly exitCode: number | null;
  readonly signal: number | null;
}

export interface ReportedEnd extends ProcessExit {
  /** When, by the kernel's monotonic clock. */
  readonly atMs: Millis;
}

export interface ProcessEventsOptions {
  readonly clock: () => Millis;
  /** Why there are no events; called once. */
  readonly onUnavailable: (why: string) => void;
  /** The kernel dropped events; called once. */
  readonly onLost: () => void;
  /** A process has become a Python program. */
  readonly onStarted?: (pid: Pid) => void;
  readonly onEnded?: (pid: Pid) => void;
  readonly guardPath?: string;
  /** Left out: {@link ANSWER_MS}. */
  readonly answerMs?: Millis;
}

export class ProcessEvents {
  readonly #options: ProcessEventsOptions;
  #guard: ChildProcess | null = null;
  #isReady = false;
  readonly #ends = new Map<Pid, ReportedEnd>();
  /** Python programs that started and have not ended. */
  readonly #starts = new Map<Pid, Millis>();
  #shortLived = 0;
  #hasLost = false;

  constructor(options: ProcessEventsOptions) {
    this.#options = options;
  }

  start(): void {
    const { guardPath = GUARD_PATH, answerMs = ANSWER_MS, onUnavailable } = this.#options;
    const guard = spawn(guardPath, ["events"], { stdio: ["pipe", "pipe", "ignore"] });
    this.#guard = guard;
    let why = "tidemark-guard has ended";
    const giveUp = () => {
      if (!this.#isReady) {
        why = SILENT; // the kernel does not answer there
        guard.stdin.end();
      }
    };
    // If this process was busy for so long, the answer has arrived but is read only after the timers.
    const late = setTimeout(() => setImmediate(giveUp), answerMs);
    late.unref();
    // A busy host reports hundreds of ends a second: readline would take as long as the rest of this process.
    let rest = "";
    guard.stdout.setEncoding("latin1").on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (line.startsWith("refused ")) {
          const errno = line.slice("refused ".length);
          why = ERRNO_TEXT[errno] ?? `error ${errno}`;
        }
        this.take(line);
      }
    });
    guard.stdin.on("error", () => {});
    guard.on("error", (error) => {
      why = error.message;
    });
    guard.on("close", () => {
      clearTimeout(late);
      this.#isReady = false;
      if (this.#guard === guard) {
        this.#guard = null;
        onUnavailable(why);
      }
    });
  }

  /** Whether the kernel reports all ends, and execs of Python, and has dropped none so far. */
  get isComplete(): boolean {
    return this.#isReady && !this.#hasLost;
  }

  /** Whether the ends of all processes are known from now on. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /** One line of the guard. @internal */
  take(line: string): void {
    const nowMs = this.#options.clock();
    const [verb = "", ...figures] = line.split(" ");
    const [pid = 0, status = 0, atMs = nowMs] = figures.map(Number);
    if (verb === "ready") {
      this.#isReady = true;
    } else if (verb === "lost" && !this.#hasLost) {
      this.#hasLost = true;
      this.#options.onLost();
    } else if (verb === "exec") {
      remember(this.#starts, pid, nowMs, MOST_STARTS);
      this.#ends.delete(pid); // the pid is used again
      this.#options.onStarted?.(pid);
    } else if (verb === "exit") {
      const startedMs = this.#starts.get(pid);
      this.#starts.delete(pid);
      if (startedMs !== undefined && nowMs - startedMs < SHORT_MS) {
        this.#shortLived += 1;
      }
      remember(this.#ends, pid, { ...exitOf(status), atMs: Math.min(atMs, nowMs) }, MOST_ENDS);
      this.#options.onEnded?.(pid);
    }
  }

  /** How a process ended; null if unknown, or if it ended before `sinceMs`: then it was another one with this pid. */
  endOf(pid: Pid, sinceMs: Millis): ReportedEnd | null {
    const end = this.#ends.get(pid);
    return end === undefined || end.atMs < sinceMs ? null : end;
  }

  /** The same, of a process that has ended; waits for its event. */
  async awaitedEndOf(pid: Pid, sinceMs: Millis): Promise<ProcessExit | null> {
    const untilMs = this.#options.clock() + EVENT_MS;
    for (;;) {
      const end = this.endOf(pid, sinceMs);
      if (end !== null || !this.#isReady || this.#options.clock() >= untilMs) {
        return end;
      }
      await sleep(LOOKUP_MS);
    }
  }

  /** Python programs that ended within {@link SHORT_MS} since the last call: they are not recorded. */
  takeShortLived(): number {
    const count = this.#shortLived;
    this.#shortLived = 0;
    return count;
  }

  close(): void {
    const guard = this.#guard;
    this.#guard = null;
    guard?.stdin?.end();
  }
}

/** Programs that live shorter are not recorded. */
export const SHORT_MS: Millis = 5_000;

/** As wait(2) describes a status. */
function exitOf(status: number): ProcessExit {
  const signal = status & 0x7f;
  return signal === 0
    ? { exitCode: (status >> 8) & 0xff, signal: null }
    : { exitCode: null, signal };
}

function remember<Value>(map: Map<Pid, Value>, pid: Pid, value: Value, most: number): void {
  map.delete(pid);
  map.set(pid, value);
  if (map.size > most) {
    const [oldest] = map.keys();
    map.delete(oldest as Pid);
  }
}
