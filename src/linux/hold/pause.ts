/** Gives a process that is being read some time to run. */
import type { Millis } from "../../model/base/units.js";

const sleeper = new Int32Array(new SharedArrayBuffer(4));
const PAUSE_MS: Millis = 1;

/** Sleeps briefly without running the event loop, because the caller expects reading to be one step. */
export function pause(ms: Millis = PAUSE_MS): void {
  Atomics.wait(sleeper, 0, 0, ms);
}
