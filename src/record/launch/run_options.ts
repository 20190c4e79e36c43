/** What `runUnderAgent` takes and returns. */
import type { Bytes, Millis } from "../../model/base/units.js";
import type { Destination } from "../../recording/sender/post_connection.js";
import type { Recording } from "../../recording/types.js";
import type { CpuBudget } from "../budget/cpu_budget.js";
import type { DeviceWatchOptions } from "../devices/device_watch.js";

export interface RunOptions {
  /** The program and its arguments; at least one. */
  readonly command: readonly string[];
  /** Where the recording goes; must not exist as anything but a regular file (it is replaced). */
  readonly recordingPath: string;
  /** Mean bytes between samples; the default is 64 KiB. */
  readonly periodBytes?: Bytes;
  /** Native frames too. */
  readonly native?: boolean;
  /** Profile child processes too; default true. */
  readonly follow?: boolean;
  /** Watch the devices of its processes; left out: no process is asked. */
  readonly devices?: DeviceWatchOptions;
  /** Shared with the other recorders of this Node process; the default is a budget of its own. */
  readonly budget?: CpuBudget;
  /** A server that the recording is sent to while it grows; left out: none. */
  readonly to?: Destination;
  /** Descriptor that tidemark-guard left in TIDEMARK_GUARD_FD. */
  readonly guardDescriptor: number;
}

export interface RunResult {
  readonly recordingPath: string;
  /** False where the recording could not be written to its end: `notes` says why. */
  readonly recorded: boolean;
  /** Memory is short: the program runs on, and its guard has the recording completed and summed up at its end. The
   * caller ends without a word. */
  readonly handedOver: boolean;
  /** What the caller must leave with: the program's exit code, or 128 + signal; 126/127 where it could not start. */
  readonly exitCode: number;
  /** Signal that ended the program, else null. */
  readonly signal: number | null;
  /** Why the program could not be started (one line), else null: nothing ran, nothing was recorded. */
  readonly startFailure: string | null;
  /** Lines for people: preload left out and why, limits of the run. */
  readonly notes: readonly string[];
  /** CPU time of the recorder itself while the program ran. */
  readonly recorderCpuMs: Millis | null;
  /** What was recorded: the file's, or where it could not take all, what is in memory. Throws TidemarkError
   * where nothing ran. */
  open(): Recording;
  /** Tells the guard to leave with `exitCode` once this process has ended (it dies of the program's
   * signal where that is 128 + signal). To be called last, after everything was printed. */
  leave(exitCode: number): void;
}
