import type { Millis } from "../../model/base/units.js";
import type { ProcessEvents } from "../ends/process_events.js";
import type { Watched } from "./recorders.js";
import type { WatchEvent } from "./watch_event.js";

/** Shortest interval between two reports: short programs start and end all the time. */
const EVERY_MS: Millis = 60_000;
/** A program of this age is counted: it was recorded at the scan before, if at all. */
const LEAST_AGE_MS: Millis = 8_000;

/** Reports how many programs are watched, if that has changed. */
export class WatchCounts {
  readonly #events: Pick<ProcessEvents, "takeShortLived">;
  readonly #onEvent: (event: WatchEvent) => void;
  #reported = "";
  #dueMs: Millis = 0;
  #firstMs: Millis | null = null;

  constructor(events: Pick<ProcessEvents, "takeShortLived">, onEvent: (event: WatchEvent) => void) {
    this.#events = events;
    this.#onEvent = onEvent;
  }

  report(living: readonly Watched[], nowMs: Millis): void {
    if (nowMs < this.#dueMs) {
      return;
    }
    const all = living.filter(
      ({ program: { root } }) => Date.now() - root.startedMs >= LEAST_AGE_MS,
    );
    // The first report is of all programs that run at the start: none of them is too young for long.
    this.#firstMs ??= nowMs;
    const mayWait = this.#reported === "" && nowMs - this.#firstMs < LEAST_AGE_MS;
    if (mayWait && all.length < living.length) {
      return;
    }
    const withAgent = all.filter(({ growing }) => growing?.kind === "agent").length;
    const outside = all.filter(({ growing }) => growing?.kind === "outside").length;
    const counts = { withAgent, outside, not: all.length - withAgent - outside };
    const text = JSON.stringify(counts);
    if (text !== this.#reported) {
      this.#reported = text;
      this.#dueMs = nowMs + EVERY_MS;
      this.#onEvent({ kind: "watching", ...counts, shortLived: this.#events.takeShortLived() });
    }
  }
}
