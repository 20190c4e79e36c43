/** Options and result of `runUnderAgent`. */
import type { Bytes, Millis } from "../../model/base/units.js";
import type { Destination } from "../../recording/sender/post_connection.js";
import type { Recording } from "../../recording/types.js";
import type { CpuBudget } from "../budget/cpu_budget.js";
import type { DeviceWatchOptions } from "../devices/device_watch.js";

export interface RunOptions {
  /** The program and its arguments; at least one. */
  readonly command: readonly string[];
  /** Path of the recording; if it exists it must be a regular file, which is replaced. */
  readonly recordingPath: string;
  /** Mean bytes between samples; the default is 64 KiB. */
  readonly periodBytes?: Bytes;
  /** Variables that the program gets besides this process's own; its LD_PRELOAD comes after the agent. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Also record native frames. */
  readonly native?: boolean;
  /** Also count the bytes that memcpy and memmove copy. */
  readonly copies?: boolean;
  /** Also profile child processes; default true. */
  readonly follow?: boolean;
  /** Watch the devices of its processes; if absent, no process is entered for this. */
  readonly devices?: DeviceWatchOptions;
  /** Shared with the other recorders of this Node process; the default is a budget of its own. */
  readonly budget?: CpuBudget;
  /** A server to send the recording to while it grows; absent: none. */
  readonly to?: Destination;
  /** Descriptor from TIDEMARK_GUARD_FD, set by tidemark-guard. */
  readonly guardDescriptor: number;
}

export interface RunResult {
  readonly recordingPath: string;
  /** False if the recording could not be written completely; `notes` gives the reason. */
  readonly recorded: boolean;
  /**
   * True if memory is short: the program continues, and its guard has the recording completed and summarized at
   * the end. The caller exits without output.
   */
  readonly handedOver: boolean;
  /** The exit code for the caller: the program's exit code, or 128 + signal; 126/127 if it could not be started. */
  readonly exitCode: number;
  /** Signal that ended the program, or null. */
  readonly signal: number | null;
  /** Why the program could not be started (one line), in which case nothing was recorded; otherwise null. */
  readonly startFailure: string | null;
  /** Notes for the user: why the agent was not preloaded, limits of the run. */
  readonly notes: readonly string[];
  /** CPU time of the recorder itself while the program ran. */
  readonly recorderCpuMs: Millis | null;
  /** The recording from the file, or from memory if the file is incomplete. Throws TidemarkError if nothing ran. */
  open(): Recording;
  /**
   * Asks the guard to exit with `exitCode` once this process has ended (or to end by the program's signal if
   * it is 128 + signal). Call it last, after everything was printed.
   */
  leave(exitCode: number): void;
}
