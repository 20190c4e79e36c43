import type { Millis } from "./units.js";

/** Longest time that one piece of work runs before other work gets a turn. */
const SLICE_MS: Millis = 15;

/** Lets other work of the event loop go on during a long loop: requests, timers. `await turns.next()` in each round. */
export class Turns {
  #since = performance.now();

  async next(): Promise<void> {
    if (this.#isOver) {
      await new Promise<void>((resume) => setImmediate(resume));
      this.#since = performance.now();
    }
  }

  /** As `items.map(work)`. */
  async map<Item, Result>(items: readonly Item[], work: (item: Item) => Result): Promise<Result[]> {
    const results: Result[] = [];
    for (const item of items) {
      if (this.#isOver) {
        await this.next();
      }
      results.push(work(item));
    }
    return results;
  }

  get #isOver(): boolean {
    return performance.now() - this.#since > SLICE_MS;
  }
}
