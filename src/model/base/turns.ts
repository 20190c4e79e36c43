import type { Millis } from "./units.js";

/** Longest time that one piece of work runs before other work gets a turn. */
const SLICE_MS: Millis = 15;

/** Lets other work of the event loop go on during a long loop: requests, timers. `await turns.next()` in each round. */
export class Turns {
  #since = performance.now();

  async next(): Promise<void> {
    if (performance.now() - this.#since > SLICE_MS) {
      await new Promise<void>((resume) => setImmediate(resume));
      this.#since = performance.now();
    }
  }
}
