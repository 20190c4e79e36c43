/**
 * Stops the process as soon as every thread of it can be stopped. One in an uninterruptible wait of the kernel
 * (state D) cannot: a parent of vfork, a reader of a dead network disk. The others are not made to wait for it.
 * Nor can what another tool traces: a sampling profiler (py-spy) does so for moments, a debugger for good.
 */
import { type Memory, ProcessHolder } from "../../linux/index.js";
import type { Millis, Pid } from "../../model/base/units.js";
import { targetBusy, targetTraced } from "../../model/errors/attach_errors.js";
import { TidemarkError } from "../../model/errors/errors.js";
import { describeHangingThread } from "./main_thread.js";

const LONGEST_HOLD_MS = 1_000;
/** Between two looks whether a thread is out of its uninterruptible wait. */
const HANG_CHECK_MS = 10;
/** Who traces it for longer is no sampling profiler. */
const LONGEST_TRACED_MS = 1_000;

interface Patience {
  /** Told once a stop, where it is late: what is in the way. */
  readonly onWaiting?: (doing: string) => void;
  /** Ends the waiting early. */
  readonly signal?: AbortSignal;
}

export class PatientHolder {
  #guard: ProcessHolder;
  /** What is in the way; "" where nothing was. */
  hanging = "";
  /** Since when every try found it traced. */
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

    this.#guard = new ProcessHolder(pid); // it starts while the process is looked into
  }

  /** False where the time was over, or the waiting ended early, before that. Throws as ProcessHolder does. */
  async hold(deadline: Millis): Promise<boolean> {
    const begun = performance.now();
    for (let told = false; !(await this.#tryHold()); ) {
      const now = performance.now();
      if (now >= deadline || this.#patience.signal?.aborted) {
        return false;
      }
      if (!told && now - begun > this.#lateMs) {
        told = true;
        this.#patience.onWaiting?.(this.hanging);
      }
      await new Promise((resolve) => setTimeout(resolve, HANG_CHECK_MS));
    }
    return true;
  }

  async #tryHold(): Promise<boolean> {
    this.#memory.refresh(); // before it stands: the maps of a large program take their time
    this.hanging = describeHangingThread(this.#pid, this.#memory);
    if (this.hanging !== "") {
      return false;
    }
    try {
      await this.#guard.hold(LONGEST_HOLD_MS);
      this.#tracedSince = null;
      return true;
    } catch (error) {
      if (!(error instanceof TidemarkError) || !this.#mayPass(error)) {
        throw error;
      }
      this.hanging = error.what;
      this.#guard.close(); // its end makes the kernel let go what did not stop
      await this.#guard.ended;
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
