/** Time for a process that is read while it runs. */
import type { Millis } from "../../model/base/units.js";

const sleeper = new Int32Array(new SharedArrayBuffer(4));
const PAUSE_MS: Millis = 1;

/** Sleeps a moment without giving the event loop a turn: a look is one step for its caller. */
export function pause(): void {
  Atomics.wait(sleeper, 0, 0, PAUSE_MS);
}
