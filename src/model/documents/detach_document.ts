import type { Millis, Pid } from "../base/units.js";

/** `tidemark detach --json`. */
export interface DetachJson {
  schema: "tidemark.detach/1";
  pid: Pid;
  /** Whether the agent recorded until now; false: it had already stopped. */
  recorded: boolean;
  /** Whether every hook was removed; false: the interpreter's hooks are removed when a thread next runs Python code. */
  inert: boolean;
  /** Pause of the process. */
  pauseMs: Millis;
}
