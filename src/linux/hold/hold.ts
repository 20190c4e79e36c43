/**
 * Pauses a process while it is read or written: the client of `tidemark-guard hold`
 * (agent/guard/hold.c), which stops every task without a signal and without touching a register. It continues
 * when it is released, when the time is over, or when this process or the guard dies.
 */

import { type ChildProcess, spawn } from "node:child_process";
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

/** Functions of the program, for {@link ProcessHolder.layCall}. */
interface CallAddresses {
  /** `mov $15, %rax; syscall` in its C library: the return path of signal handlers. */
  readonly restorer: Address;
  /** PyGILState_Ensure, PyRun_SimpleString, PyGILState_Release. */
  readonly acquire: Address;
  readonly run: Address;
  readonly release: Address;
}

/** Of one thread that stands. */
export interface ThreadRegisters {
  /** As our pid namespace has it. */
  readonly tid: number;
  /** By DWARF's numbers (System V ABI for x86-64, figure 3.36): rax rdx rcx rbx rsi rdi rbp rsp r8-r15, and
   * rip as 16. What exceeds 2^53 is rounded, and is no address. */
  readonly values: Float64Array;
}

const REGISTERS = 17;

export interface Held {
  /** Of every thread, while it stands; empty where the time was over before. */
  registers(): Promise<ThreadRegisters[]>;
  /**
   * Releases the process. Returns the pause in ms. `lapsed` is true if the process ran again earlier because
   * the time given to {@link holdProcess} was over.
   */
  release(): Promise<{ readonly pauseMs: Millis; readonly lapsed: boolean }>;
}

/**
 * Stops every thread of a process for at most `longestMs`. What is read between this and `release` is one
 * moment, as long as `lapsed` is false. Throws TidemarkError: gone, not permitted, traced by another tool, or
 * a thread that cannot be stopped now.
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

/** One guard for several stops of the same process. Starting it costs some ms, a stop some tenths. */
export class ProcessHolder {
  /** The guard has ended: another may hold the process from now on. */
  readonly ended: Promise<void>;
  readonly #guard: ChildProcess;
  #received = "";
  readonly #answers: string[][] = [];
  #wake: (() => void) | null = null;
  #failure: Error | null = null;
  #lapse: Millis | null = null;
  /** Of this process before it held. */
  #priority: number | null = null;

  readonly #pid: Pid;

  constructor(pid: Pid) {
    this.#pid = pid;

    // In a session of its own: a terminal's Ctrl-C is for this process, which lets the other go in order.
    this.#guard = spawn(GUARD_PATH, ["hold", String(pid)], {
      stdio: ["pipe", "pipe", "ignore"],
      detached: true,
    });
    this.#guard.stdout?.setEncoding("latin1");
    this.#guard.stdout?.on("data", (text: string) => this.#hear(text));
    this.#guard.stdin?.on("error", () => {}); // its end says it
    this.ended = new Promise((resolve) => {
      this.#guard.on("close", resolve).on("error", resolve);
    });
    this.#guard.on("error", (cause) => this.#fail(guardMissing(cause)));
    this.#guard.on("close", () => this.#fail(internalError(new Error("the guard has ended"))));
  }

  /** Throws as {@link holdProcess} does. */
  async hold(longestMs: Millis): Promise<void> {
    this.#lapse = null;
    this.#hurry();
    this.#say("hold", String(Math.ceil(longestMs)));
    const answer = await this.#answer();
    if (answer[0] !== "held") {
      this.#unhurry();
      throw this.#refusal(answer);
    }
  }

  /**
   * Lays a call of PyRun_SimpleString(source) into the main thread, which must stand in a wait and not hold
   * the interpreter's lock (the guard checks the first; the second is the caller's to know). It runs once the
   * process is released, whatever becomes of this one. Answers why not, or null. Only while held.
   */
  async layCall(addresses: CallAddresses, source: string): Promise<string | null> {
    const hex = (address: Address) => address.toString(16);
    const { restorer, acquire, run, release } = addresses;
    this.#say("call", hex(restorer), hex(acquire), hex(run), hex(release), source);
    const answer = await this.#answer();
    return answer[0] === "calling" ? null : (answer[1] ?? "it is already running again");
  }

  /** Only while held. */
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
    if (this.#lapse === null) {
      this.#say("go");
      const [verb, microseconds] = await this.#answer();
      this.#unhurry();
      return { pauseMs: Number(microseconds) / 1000, lapsed: verb === "lapsed" };
    }
    this.#unhurry();
    return { pauseMs: this.#lapse, lapsed: true };
  }

  /** What stands waits for this process, too: it goes first meanwhile, where it may. */
  #hurry(): void {
    try {
      const before = getPriority();
      setPriority(constants.priority.PRIORITY_HIGHEST);
      this.#priority = before;
    } catch {
      // Only root and who has CAP_SYS_NICE.
    }
  }

  #unhurry(): void {
    if (this.#priority !== null) {
      setPriority(this.#priority);
      this.#priority = null;
    }
  }

  /** Releases the process if it is still paused. */
  close(): void {
    this.#unhurry();
    this.#failure ??= internalError(new Error("the guard was closed"));
    this.#guard.stdin?.end();
    this.#guard.unref();
  }

  #say(...fields: string[]): void {
    const escaped = fields.map((field) =>
      Buffer.from(field)
        .toString("latin1")
        .replace(/[\\\t\n]/g, (c) => (c === "\t" ? "\\t" : c === "\n" ? "\\n" : "\\\\")),
    );
    this.#guard.stdin?.write(Buffer.from(`${escaped.join("\t")}\n`, "latin1"));
  }

  async #answer(): Promise<string[]> {
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

  #hear(text: string): void {
    this.#received += text;
    const lines = this.#received.split("\n");
    this.#received = lines.pop() as string;
    for (const line of lines) {
      const fields = line.split("\t");
      if (fields[0] === "lapsed") {
        this.#lapse = Number(fields[1]) / 1000; // unasked: whatever is asked next is answered by it
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

function guardMissing(cause: Error): Error {
  return (cause as NodeJS.ErrnoException).code === "ENOENT"
    ? notInstalled(`${GUARD_PATH} is missing`)
    : internalError(cause);
}
