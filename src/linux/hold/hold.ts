/**
 * Pauses a process while it is read or written. This is the client of `tidemark-guard hold`
 * (agent/guard/hold.c), which stops every thread without a signal and without changing a register. The process
 * continues when it is released, when the time limit has passed, or when this process or the guard ends.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { readSync } from "node:fs";
import { constants, getPriority, setPriority } from "node:os";
import type { Address, Millis, Pid } from "../../model/base/units.js";
import { targetBusy, targetTraced } from "../../model/errors/attach_errors.js";
import {
  internalError,
  notInstalled,
  notPermitted,
  processGone,
  type TidemarkError,
} from "../../model/errors/errors.js";
import { GUARD_PATH } from "../installation.js";
import { explainPtraceBarred, readAttachPermission } from "../process/permission.js";
import { readStat } from "../process/process.js";
import { pause } from "./pause.js";

/** Functions of the program for {@link ProcessHolder.layCall}. */
interface CallAddresses {
  /** `mov $15, %rax; syscall` in the program's C library: the return path of signal handlers. */
  readonly restorer: Address;
  /** PyGILState_Ensure, PyRun_SimpleString, PyGILState_Release. */
  readonly acquire: Address;
  readonly run: Address;
  readonly release: Address;
}

/** Registers of one paused thread. */
export interface ThreadRegisters {
  /** Thread id in our pid namespace. */
  readonly tid: number;
  /**
   * Indexed by DWARF register number (System V ABI for x86-64, figure 3.36): rax rdx rcx rbx rsi rdi rbp rsp
   * r8-r15, and rip at 16. Values above 2^53 are rounded; they are not addresses.
   */
  readonly values: Float64Array;
}

const REGISTERS = 17;
/** How long this process may do nothing but wait for an answer; the guard pauses no thread for longer while others run. */
const LONGEST_BLOCKED_MS: Millis = 700;
const BLOCKED_STEP_MS: Millis = 0.1;

export interface Held {
  /** The registers of every thread while the process is paused; empty if the time limit has passed. */
  registers(): Promise<ThreadRegisters[]>;
  /**
   * Releases the process and returns the length of the pause in ms. `lapsed` is true if the process continued
   * earlier because the time limit given to {@link holdProcess} had passed.
   */
  release(): Promise<{ readonly pauseMs: Millis; readonly lapsed: boolean }>;
}

/**
 * Stops every thread of a process for at most `longestMs`. Everything that is read before `release` is from one
 * moment, unless `lapsed` is true. Throws TidemarkError if the process has ended, may not be accessed, is
 * traced by another tool, or has a thread that cannot be stopped now.
 */
export async function holdProcess(pid: Pid, longestMs: Millis): Promise<Held> {
  const holder = new ProcessHolder(pid);
  try {
    await holder.hold(longestMs);
  } catch (error) {
    holder.close();
    throw error;
  }
  return {
    registers: () => holder.registers(),
    async release() {
      try {
        return await holder.release();
      } finally {
        holder.close();
      }
    },
  };
}

/** Resolves when the newest pause of this process is over. */
let turns: Promise<void> = Promise.resolve();

/**
 * One guard for several pauses of the same process. Starting the guard takes a few ms, and each pause a few
 * tenths of a ms.
 */
export class ProcessHolder {
  readonly #ended: Promise<void>;
  readonly #guard: ChildProcess;
  #received = "";
  readonly #answers: string[][] = [];
  #wake: (() => void) | null = null;
  #failure: Error | null = null;
  #lapse: Millis | null = null;
  /** Priority of this process before the pause. */
  #priority: number | null = null;
  #endTurn: (() => void) | null = null;
  #isStarted = false;

  readonly #pid: Pid;

  constructor(pid: Pid) {
    this.#pid = pid;

    // In a new session, because Ctrl-C in a terminal is meant for this process, which then releases the other
    // one properly.
    this.#guard = spawn(GUARD_PATH, ["hold", String(pid)], {
      stdio: ["pipe", "pipe", "ignore"],
      detached: true,
    });
    this.#guard.stdout?.setEncoding("latin1");
    this.#guard.stdout?.on("data", (text: string) => this.#receive(text));
    this.#guard.stdin?.on("error", () => {}); // the exit event reports it
    this.#ended = new Promise((resolve) => {
      this.#guard.on("close", resolve).on("error", resolve);
    });
    this.#guard.on("error", (cause) => this.#fail(guardMissing(cause)));
    this.#guard.on("close", () => this.#fail(internalError(new Error("the guard has ended"))));
  }

  /** Throws the same errors as {@link holdProcess}. Waits until this process pauses no other one. */
  async hold(longestMs: Millis): Promise<void> {
    this.#lapse = null;
    if (!this.#isStarted) {
      await this.#nextAnswer(); // "ready"
      this.#isStarted = true;
    }
    await this.#takeTurn();
    this.#raisePriority();
    try {
      this.#say("hold", String(Math.ceil(longestMs)));
      const answer = await this.#answer();
      if (answer[0] !== "held") {
        throw this.#refusal(answer);
      }
    } catch (error) {
      this.#isOver();
      throw error;
    }
  }

  /** One process is paused at a time, because work for another one would make its pause longer. */
  async #takeTurn(): Promise<void> {
    const before = turns;
    let end = () => {};
    turns = new Promise((resolve) => {
      end = resolve;
    });
    await before;
    this.#endTurn = end;
  }

  #isOver(): void {
    this.#restorePriority();
    this.#endTurn?.();
    this.#endTurn = null;
  }

  /**
   * Makes the main thread call PyRun_SimpleString(source) once the process is released, even if this process
   * ends. The thread must be waiting in a system call and must not hold the GIL: the guard checks the former,
   * the caller must know the latter. Returns the reason for a refusal, or null. Only while the process is
   * paused.
   */
  async layCall(addresses: CallAddresses, source: string): Promise<string | null> {
    const hex = (address: Address) => address.toString(16);
    const { restorer, acquire, run, release } = addresses;
    this.#say("call", hex(restorer), hex(acquire), hex(run), hex(release), source);
    const answer = await this.#answer();
    return answer[0] === "calling" ? null : (answer[1] ?? "it is already running again");
  }

  /** Only while the process is paused. */
  async registers(): Promise<ThreadRegisters[]> {
    this.#say("registers");
    const [verb, ...fields] = await this.#answer();
    if (verb !== "registers") {
      return [];
    }
    const threads: ThreadRegisters[] = [];
    for (let at = 0; at + REGISTERS < fields.length; at += REGISTERS + 1) {
      const words = fields.slice(at + 1, at + 1 + REGISTERS);
      threads.push({
        tid: Number(fields[at]),
        values: Float64Array.from(words, (word) => Number.parseInt(word, 16)),
      });
    }
    return threads;
  }

  async release(): Promise<{ readonly pauseMs: Millis; readonly lapsed: boolean }> {
    try {
      if (this.#lapse === null) {
        this.#say("go");
        const [verb, microseconds] = await this.#answer();
        return { pauseMs: Number(microseconds) / 1000, lapsed: verb === "lapsed" };
      }
      return { pauseMs: this.#lapse, lapsed: true };
    } finally {
      this.#isOver();
    }
  }

  /** Gives this process a higher priority during the pause, if permitted, because the paused process waits for it. */
  #raisePriority(): void {
    try {
      const before = getPriority();
      setPriority(constants.priority.PRIORITY_HIGHEST);
      this.#priority = before;
    } catch {
      // Needs root or CAP_SYS_NICE.
    }
  }

  #restorePriority(): void {
    if (this.#priority !== null) {
      setPriority(this.#priority);
      this.#priority = null;
    }
  }

  /** Releases the process if it is still paused. */
  close(): void {
    this.#isOver();
    this.#failure ??= internalError(new Error("the guard was closed"));
    this.#guard.stdin?.end();
    this.#guard.unref();
  }

  /** Closes it, and waits until another one can hold the process. */
  async end(): Promise<void> {
    this.close();
    this.#guard.ref(); // a program that waits for nothing else would end now
    await this.#ended;
  }

  #say(...fields: string[]): void {
    const escaped = fields.map((field) =>
      Buffer.from(field)
        .toString("latin1")
        .replace(/[\\\t\n]/g, (c) => (c === "\t" ? "\\t" : c === "\n" ? "\\n" : "\\\\")),
    );
    this.#guard.stdin?.write(Buffer.from(`${escaped.join("\t")}\n`, "latin1"));
  }

  /**
   * First waits without giving other work of this process a turn: the paused process would wait for that work, too, such
   * as for the reading of another program's large profile.
   */
  async #answer(): Promise<string[]> {
    this.#receiveNow();
    return await this.#nextAnswer();
  }

  async #nextAnswer(): Promise<string[]> {
    for (;;) {
      const answer = this.#answers.shift();
      if (answer) {
        return answer;
      }
      if (this.#lapse !== null) {
        return ["lapsed", String(this.#lapse * 1000)];
      }
      if (this.#failure) {
        throw this.#failure;
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  #receiveNow(): void {
    const descriptor = descriptorOf(this.#guard.stdout);
    const bytes = Buffer.alloc(1 << 16);
    const until = performance.now() + LONGEST_BLOCKED_MS;
    while (descriptor !== null && this.#answers.length === 0 && this.#lapse === null) {
      const length = readAvailable(descriptor, bytes);
      if (length !== null && length > 0) {
        this.#receive(bytes.toString("latin1", 0, length));
      } else if (length === null && performance.now() < until) {
        pause(BLOCKED_STEP_MS);
      } else {
        return; // if the guard has ended, an event reports it
      }
    }
  }

  #receive(text: string): void {
    this.#received += text;
    const lines = this.#received.split("\n");
    this.#received = lines.pop() as string;
    for (const line of lines) {
      const fields = line.split("\t");
      if (fields[0] === "lapsed") {
        this.#lapse = Number(fields[1]) / 1000; // an unsolicited message: it also answers the next request
      } else {
        this.#answers.push(fields);
      }
    }
    this.#wake?.();
  }

  #fail(failure: Error): void {
    this.#failure ??= failure;
    this.#wake?.();
  }

  /** `failed KIND ERRNO TEXT`. */
  #refusal(answer: readonly string[]): TidemarkError {
    const [, kind, , text = ""] = answer;
    switch (kind) {
      case "gone":
      case "ended":
        return processGone(this.#pid);
      case "traced":
        return targetTraced(this.#pid, Number(text), readStat(Number(text))?.name ?? "");
      case "busy":
        return targetBusy(this.#pid, `thread ${text} is in an uninterruptible wait in the kernel`);
      case "permission": {
        const permission = readAttachPermission(this.#pid);
        const { reason, remedy } = permission.ok ? explainPtraceBarred(this.#pid) : permission;
        return notPermitted(this.#pid, reason, remedy);
      }
      default:
        return targetBusy(this.#pid, text);
    }
  }
}

/** Of a pipe to a child process, which does not block; null if it is closed. Node publishes no other way to read from it now. */
function descriptorOf(stream: object | null): number | null {
  const { _handle: handle } = (stream ?? {}) as { readonly _handle?: { readonly fd?: number } };
  return handle?.fd !== undefined && handle.fd >= 0 ? handle.fd : null;
}

/** null if nothing is there yet, 0 at the end. */
function readAvailable(descriptor: number, bytes: Buffer): number | null {
  try {
    return readSync(descriptor, bytes);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EAGAIN") {
      return null;
    }
    return 0;
  }
}

function guardMissing(cause: Error): Error {
  return (cause as NodeJS.ErrnoException).code === "ENOENT"
    ? notInstalled(`${GUARD_PATH} is missing`)
    : internalError(cause);
}
