/**
 * Stops the process as soon as all its threads can be stopped. A thread in an uninterruptible kernel wait
 * (state D) cannot: a parent of vfork, a reader of a dead network disk. The other threads are not stopped
 * meanwhile. A process traced by another tool cannot be stopped either: a sampling profiler (py-spy) traces it
 * for moments, a debugger permanently.
 */
import { type Memory, ProcessHolder, readStat } from "../../linux/index.js";
import type { Millis, Pid } from "../../model/base/units.js";
import { targetBusy, targetTraced } from "../../model/errors/attach_errors.js";
import { TidemarkError } from "../../model/errors/errors.js";
import { describeHangingThread } from "./main_thread.js";

const LONGEST_HOLD_MS = 1_000;
/** Interval of the checks whether a thread is still in its uninterruptible wait. */
const HANG_CHECK_MS = 10;
/** A tool that traces it for longer is not a sampling profiler. */
const LONGEST_TRACED_MS = 1_000;

interface Patience {
  /** Called once per stop if it is delayed, with the reason. */
  readonly onWaiting?: (doing: string) => void;
  /** Ends the wait early. */
  readonly signal?: AbortSignal;
}

export class PatientHolder {
  #guard: ProcessHolder;
  /** The reason for the delay; "" if there was none. */
  hanging = "";
  /** State of the main thread before the last attempt, as in /proc/PID/stat. */
  stateBefore = "R";
  /** Since when every attempt found it traced. */
  #tracedSince: Millis | null = null;

  readonly #pid: Pid;
  readonly #memory: Memory;
  readonly #patience: Patience;
  readonly #lateMs: Millis;

  constructor(pid: Pid, memory: Memory, patience: Patience, lateMs: Millis) {
    this.#pid = pid;
    this.#memory = memory;
    this.#patience = patience;
    this.#lateMs = lateMs;

    this.#guard = new ProcessHolder(pid); // it starts while the process is being read
  }

  /** False if the time was over or the wait ended early. Throws like ProcessHolder. */
  async hold(deadline: Millis): Promise<boolean> {
    const begun = performance.now();
    for (let isReported = false; !(await this.#tryHold()); ) {
      const now = performance.now();
      if (now >= deadline || this.#patience.signal?.aborted) {
        return false;
      }
      if (!isReported && now - begun > this.#lateMs) {
        isReported = true;
        this.#patience.onWaiting?.(this.hanging);
      }
      await new Promise((resolve) => setTimeout(resolve, HANG_CHECK_MS));
    }
    return true;
  }

  async #tryHold(): Promise<boolean> {
    this.#memory.refresh(); // before the pause, because reading the maps of a large program takes time
    this.hanging = describeHangingThread(this.#pid, this.#memory);
    if (this.hanging !== "") {
      return false;
    }
    this.stateBefore = readStat(this.#pid)?.state ?? "X";
    try {
      await this.#guard.hold(LONGEST_HOLD_MS);
      this.#tracedSince = null;
      return true;
    } catch (error) {
      if (!(error instanceof TidemarkError) || !this.#mayPass(error)) {
        throw error;
      }
      this.hanging = error.what;
      await this.#guard.end(); // then the kernel releases what did not stop
      this.#guard = new ProcessHolder(this.#pid);
      return false;
    }
  }

  #mayPass({ id }: TidemarkError): boolean {
    if (id !== targetTraced(this.#pid, 0, "").id) {
      this.#tracedSince = null;
      return id === targetBusy(this.#pid, "").id;
    }
    this.#tracedSince ??= performance.now();
    return performance.now() - this.#tracedSince < LONGEST_TRACED_MS;
  }

  layCall(...call: Parameters<ProcessHolder["layCall"]>): ReturnType<ProcessHolder["layCall"]> {
    return this.#guard.layCall(...call);
  }

  registers(): ReturnType<ProcessHolder["registers"]> {
    return this.#guard.registers();
  }

  release(): ReturnType<ProcessHolder["release"]> {
    return this.#guard.release();
  }

  close(): void {
    this.#guard.close();
  }
}
