/**
 * Runs a Python source in a live CPython 3.9 to 3.15 from outside, without a debugger.
 *
 *   find the entry point, check all of it                    no pause, no writes
 *   stop ── check again ── write the request ── go           a pause of about a millisecond
 *   wait: the main thread executes it                        most programs: at once
 *   stop ── withdraw the request ── inject a call ── go      if it sleeps in the kernel instead
 *   wait for the answer; otherwise withdraw the request, and report what the main thread is doing
 *
 * A thread in an uninterruptible wait (D: a parent of vfork, a dead network disk) cannot be stopped; the others
 * keep running until the wait is over.
 *
 * A call is injected only if the main thread waits in the kernel without the interpreter's lock and there is
 * one interpreter. A signal handler could run there as well, and Python's own callbacks from C make the same
 * three calls. If it holds the lock or runs C code, only waiting helps.
 */
import {
  isLeaving,
  type Memory,
  openProcessMemory,
  readStat,
  type ThreadUnwinder,
} from "../../linux/index.js";
import type { Millis, Pid } from "../../model/base/units.js";
import {
  entryInterrupted,
  targetNotEntered,
  targetRaised,
  targetUnknown,
} from "../../model/errors/attach_errors.js";
import { processGone } from "../../model/errors/errors.js";
import { checkStanding, type EntryPoint, findEntryPoint, type Standing } from "./entry_point.js";
import { Exchange } from "./exchange.js";
import { LateMainThread } from "./late_main_thread.js";
import { PatientHolder } from "./patient_holder.js";
import { type Request, writeRequest } from "./pending_call.js";

/** How long a request is pending before the main thread is checked. */
const TICK_MS = 150;
/** How long to wait for a process that cannot be stopped, to withdraw a request. */
const LONGEST_UNDO_MS = 1_000;
/** How long to wait once the process has begun to execute it; an import from a slow disk is not a refusal. */
const LONGEST_WORK_MS = 60_000;
/** How long to wait for the process to close the answer it gave; someone may have stopped it right then. */
const LONGEST_CLOSING_MS = 10_000;

/** Begins the guard's refusals about the main thread's state (agent/guard/hold_call.c). */
const OF_MOMENT = "its main thread";

export interface RemoteExecOptions {
  /** How long the process may take to begin. */
  readonly waitMs: Millis;
  /** Called once if it did not begin at once, with what its main thread is doing. */
  readonly onWaiting?: (doing: string) => void;
  /** Ends the wait early; everything is undone. */
  readonly signal?: AbortSignal;
  /** Finds the native frame of the main thread if it does not begin. */
  readonly openUnwinder?: (memory: Memory) => ThreadUnwinder;
}

export interface RemoteAnswer {
  readonly text: string;
  /** How the process was entered. */
  readonly way: "pending-call" | "debugger-call" | "laid-call";
  /** The longest pause of the process, and the total. */
  readonly longestPauseMs: Millis;
  readonly pauseMs: Millis;
  readonly version: string;
}

/**
 * `work` is the body of a Python function whose returned text is the answer. Throws TidemarkError: ended, not
 * permitted, traced, unknown (TM-E034, before any write), not executed in time (TM-E035, everything undone), or
 * the exception that it raised (TM-E036).
 */
export async function remoteExec(
  pid: Pid,
  work: string,
  options: RemoteExecOptions,
): Promise<RemoteAnswer> {
  const memory = openProcessMemory(pid);
  const holder = new PatientHolder(pid, memory, options, TICK_MS);
  let exchange: Exchange | null = null;
  try {
    const point = findEntryPoint(memory, pid);
    exchange = Exchange.open(pid, work);
    return await new RemoteExec(point, memory, holder, exchange, options).run();
  } finally {
    exchange?.close();
    holder.close();
    memory.close();
  }
}

class RemoteExec {
  #request: Request | null = null;
  readonly #pauses: Millis[] = [];
  #way: RemoteAnswer["way"];
  #obstacle = "";
  /** Whether the main thread held the interpreter's lock during the last pause. */
  #holdsLock = false;
  readonly #begun = performance.now();
  readonly #deadline: Millis;
  readonly #late: LateMainThread;

  readonly #point: EntryPoint;
  readonly #memory: Memory;
  readonly #holder: PatientHolder;
  readonly #exchange: Exchange;
  readonly #options: RemoteExecOptions;

  constructor(
    point: EntryPoint,
    memory: Memory,
    holder: PatientHolder,
    exchange: Exchange,
    options: RemoteExecOptions,
  ) {
    this.#point = point;
    this.#memory = memory;
    this.#holder = holder;
    this.#exchange = exchange;
    this.#options = options;

    this.#way = point.debugger === null ? "pending-call" : "debugger-call";
    this.#deadline = this.#begun + options.waitMs;
    this.#late = new LateMainThread(point.pid, memory, options.openUnwinder);
  }

  async run(): Promise<RemoteAnswer> {
    const begun = this.#begun;
    const deadline = this.#deadline;
    try {
      await this.#ask();
      let taken = await this.#taken(Math.min(begun + TICK_MS, deadline));
      if (!taken) {
        taken = (await this.#layCall()) && (await this.#taken(deadline));
      }
      while (!taken && performance.now() < deadline && !this.#options.signal?.aborted) {
        // It was neither running Python code nor waiting in the kernel; write the request and wait again.
        this.#options.onWaiting?.(this.#doing(0));
        await this.#ask();
        taken = await this.#taken(Math.min(performance.now() + 1_000, deadline));
        taken ||= (await this.#layCall()) && (await this.#taken(deadline));
      }
      if (!taken && !(await this.#withdrawRequest())) {
        taken = await this.#taken(performance.now() + 1_000); // it began at the last moment
      }
      if (!taken && this.#exchange.withdraw()) {
        if (this.#options.signal?.aborted) {
          throw entryInterrupted(this.#point.pid);
        }
        const waitedMs = performance.now() - begun;
        throw targetNotEntered(this.#point.pid, waitedMs, this.#doing(waitedMs));
      }
      return this.#answer(await this.#ended());
    } catch (error) {
      await this.#withdrawRequest().catch(() => {}); // the process has ended, or is traced by another tool
      this.#exchange.withdraw();
      throw error;
    }
  }

  /** `elapsedMs`: for how long it has been doing this; 0 to omit it. */
  #doing(elapsedMs: Millis): string {
    if (this.#holder.hanging !== "") {
      return this.#holder.hanging;
    }
    const doing = this.#late.describe(elapsedMs, this.#holder.stateBefore);
    const obstacle = this.#holdsLock ? "it holds the interpreter's lock" : this.#obstacle;
    return obstacle === "" ? doing : `${doing}; ${obstacle}`;
  }

  /** Writes the request, unless it is already pending. */
  async #ask(): Promise<void> {
    if (this.#request !== null) {
      return;
    }
    await this.#standing((standing) => {
      const written = writeRequest(
        this.#point,
        standing,
        this.#exchange.source,
        this.#exchange.scriptPath,
      );
      if (typeof written === "string") {
        this.#obstacle = written;
      } else {
        this.#request = written;
      }
      return false;
    });
  }

  /** Withdraws the request and injects a call instead. True if our code is running or will run at once. */
  async #layCall(): Promise<boolean> {
    const { call } = this.#point;
    let laid = false;
    await this.#standing(async (standing) => {
      if (call === null || standing.mainHoldsLock || standing.interpreters > 1) {
        this.#obstacle = standing.mainHoldsLock
          ? ""
          : standing.interpreters > 1
            ? "it runs several interpreters"
            : "its C library is not glibc";
        return false;
      }
      if (this.#exchange.read().state !== "waiting") {
        return true;
      }
      if (this.#request !== null && !this.#request.undo(standing)) {
        this.#request = null; // executed just now
        laid = true;
        return true;
      }
      this.#request = null;
      const refusal = await this.#holder.layCall(
        {
          restorer: call.restorer,
          acquire: call.acquire,
          run: this.#point.run,
          release: call.release,
        },
        this.#exchange.source,
      );
      laid = refusal === null;
      if (refusal === null) {
        this.#way = "laid-call";
      } else {
        // What the thread was doing then: it may do something else by the time of the message.
        this.#obstacle = refusal.startsWith(OF_MOMENT) ? "" : refusal;
      }
      return laid;
    });
    return laid || this.#exchange.read().state !== "waiting";
  }

  /** True if nothing is left in the process; false if it was executed in the meantime. */
  async #withdrawRequest(): Promise<boolean> {
    const request = this.#request;
    if (request === null) {
      return this.#exchange.read().state === "waiting";
    }
    let undone = true; // if it can no longer be stopped, a later execution finds no file
    const until = performance.now() + LONGEST_UNDO_MS;
    await this.#standing((standing) => {
      undone = request.undo(standing);
      return false;
    }, until);
    this.#request = null;
    return undone;
  }

  /**
   * Does something while the process is paused, or nothing if it could not be stopped in time. `work`: true if the process
   * runs our code now, so that nothing has to be described.
   */
  async #standing(
    work: (standing: Standing) => boolean | Promise<boolean>,
    until = this.#deadline,
  ): Promise<void> {
    const isLate = performance.now() - this.#begun > TICK_MS;
    if (isLate) {
      this.#late.prepare();
    }
    if (!(await this.#holder.hold(until))) {
      return;
    }
    try {
      const standing = this.#check();
      this.#holdsLock = standing.mainHoldsLock;
      const isEntered = await work(standing);
      if (isLate && !isEntered) {
        await this.#late.copy(this.#holder); // it may have to be described
      }
    } finally {
      this.#pauses.push((await this.#holder.release()).pauseMs);
    }
  }

  /** A thread that started since the maps were read may be in a new mapping. */
  #check(): Standing {
    try {
      return checkStanding(this.#point);
    } catch {
      if (!this.#memory.refresh()) {
        this.#requireAlive(); // a paused process can be killed
        throw targetUnknown(this.#point.pid, "it has become another program (exec)");
      }
      return checkStanding(this.#point);
    }
  }

  /** Whether execution began before the deadline. */
  async #taken(deadline: Millis): Promise<boolean> {
    let wait = 1;
    for (;;) {
      if (this.#exchange.read().state !== "waiting") {
        this.#request = null;
        return true;
      }
      this.#requireAlive();
      if (performance.now() >= deadline || this.#options.signal?.aborted) {
        return false;
      }
      await new Promise((resolve) => setTimeout(resolve, wait));
      wait = Math.min(wait * 1.2, 50);
    }
  }

  async #ended(): Promise<string> {
    const deadline = performance.now() + LONGEST_WORK_MS;
    let answered: Millis | null = null;
    for (;;) {
      const answer = this.#exchange.read();
      if (answer.state === "done" || answer.state === "raised") {
        answered ??= performance.now();
        if (answer.closed || performance.now() - answered > LONGEST_CLOSING_MS) {
          if (answer.state === "raised") {
            throw targetRaised(this.#point.pid, answer.text);
          }
          return answer.text;
        }
      }
      this.#requireAlive();
      if (performance.now() > deadline) {
        throw targetNotEntered(
          this.#point.pid,
          LONGEST_WORK_MS,
          `it began but did not finish: ${this.#doing(0)}`,
        );
      }
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }

  #requireAlive(): void {
    if (isLeaving(readStat(this.#point.pid))) {
      throw processGone(this.#point.pid);
    }
  }

  #answer(text: string): RemoteAnswer {
    return {
      text,
      way: this.#way,
      longestPauseMs: Math.max(0, ...this.#pauses),
      pauseMs: this.#pauses.reduce((sum, pause) => sum + pause, 0),
      version: this.#point.version,
    };
  }
}
