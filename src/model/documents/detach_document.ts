import type { Millis, Pid } from "../base/units.js";

/** `tidemark detach --json`. */
export interface DetachJson {
  schema: "tidemark.detach/1";
  pid: Pid;
  /** The agent recorded until now; false: it had ended before. */
  recorded: boolean;
  /** Every hook was taken back; false: the interpreter's go when a thread next runs Python code. */
  inert: boolean;
  /** How long the process stood. */
  pauseMs: Millis;
}
