import type { Context } from "hono";
import { streamSSE } from "hono/streaming";
import type { Millis } from "../../model/base/units.js";

/** A comment that keeps proxies from closing the connection. */
const HEARTBEAT_MS: Millis = 15_000;
const MOST_LISTENERS = 200;
/** Shortest interval between two events of one listener. */
const SHORTEST_DISTANCE_MS: Millis = 1_000;

/** Notifies open pages of changes by server-sent events; the pages then reload their data. */
export class Changes {
  readonly #listeners = new Set<() => void>();
  #isClosed = false;

  changed(): void {
    for (const listener of this.#listeners) {
      listener();
    }
  }

  close(): void {
    this.#isClosed = true;
    this.changed();
  }

  stream(context: Context): Response {
    if (this.#listeners.size >= MOST_LISTENERS) {
      return context.json({ error: "too many pages listen for changes" }, 503);
    }
    return streamSSE(context, async (stream) => {
      let hasChanged = false;
      let wake = () => {};
      const listener = () => {
        hasChanged = true;
        wake();
      };
      this.#listeners.add(listener);
      stream.onAbort(() => wake());
      try {
        await stream.writeSSE({ event: "open", data: "" });
        while (!stream.aborted && !this.#isClosed) {
          if (hasChanged) {
            hasChanged = false;
            await stream.writeSSE({ event: "changed", data: "" });
            await stream.sleep(SHORTEST_DISTANCE_MS);
            continue;
          }
          await new Promise<void>((resolve) => {
            const timer = setTimeout(resolve, HEARTBEAT_MS);
            wake = () => {
              clearTimeout(timer);
              resolve();
            };
          });
          if (!hasChanged && !stream.aborted) {
            await stream.write(": still here\n\n");
          }
        }
      } finally {
        this.#listeners.delete(listener);
      }
    });
  }
}
