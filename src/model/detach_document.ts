import type { Millis, Pid } from "./units.js";

/** `tidemark detach --json`. */
export interface DetachJson {
  readonly schema: "tidemark.detach/1";
  readonly pid: Pid;
  /** The agent recorded until now; false: it had ended before. */
  readonly recorded: boolean;
  /** Every hook was taken back; false: the interpreter's go when a thread next runs Python code. */
  readonly inert: boolean;
  /** How long the process stood. */
  readonly pauseMs: Millis;
}
