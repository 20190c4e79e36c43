/** What arrives, for the page Ingest: bytes by stream, and refused requests. In memory, since the server's start. */
import type { Bytes, Millis, TimeMs } from "../../model/base/units.js";
import { oneLine } from "../../model/errors/errors.js";

const MINUTE_MS: Millis = 60_000;
const MINUTES = 5;
/** Streams and addresses that are remembered. */
const MOST = 5_000;
const LONGEST_ERROR = 300;

interface Delivery {
  /** By minute since 1970, of the last few. */
  minutes: Map<number, Bytes>;
  refused: number;
  lastError: string | undefined;
}

interface Refusals {
  requests: number;
  lastMs: TimeMs;
  lastError: string;
}

export class Deliveries {
  readonly #streams = new Map<string, Delivery>();
  readonly #refused = new Map<string, Refusals>();
  readonly #startedMs = Date.now();

  /** `error`: why it was refused; undefined: it was taken. */
  received(stream: string, bytes: Bytes, error: string | undefined, nowMs: TimeMs): void {
    const found = this.#streams.get(stream);
    const delivery = found ?? { minutes: new Map(), refused: 0, lastError: undefined };
    // The last ones to send are remembered.
    this.#streams.delete(stream);
    this.#streams.set(stream, delivery);
    dropOldest(this.#streams);
    if (error !== undefined) {
      delivery.refused += 1;
      delivery.lastError = oneLine(error, LONGEST_ERROR);
      return;
    }
    const minute = Math.floor(nowMs / MINUTE_MS);
    delivery.minutes.set(minute, (delivery.minutes.get(minute) ?? 0) + bytes);
    for (const old of delivery.minutes.keys()) {
      if (old <= minute - MINUTES) {
        delivery.minutes.delete(old);
      }
    }
  }

  /** `path`: of a route. */
  refused(path: string, error: string, nowMs: TimeMs): void {
    const requests = (this.#refused.get(path)?.requests ?? 0) + 1;
    this.#refused.delete(path);
    this.#refused.set(path, { requests, lastMs: nowMs, lastError: oneLine(error, LONGEST_ERROR) });
    dropOldest(this.#refused);
  }

  of(
    stream: string,
    nowMs: TimeMs,
  ): { bytesPerMinute: number; refused: number; lastError?: string } {
    const { minutes, refused = 0, lastError } = this.#streams.get(stream) ?? {};
    const first = Math.floor(nowMs / MINUTE_MS) - MINUTES;
    const bytes = [...(minutes ?? [])].reduce(
      (sum, [minute, amount]) => sum + (minute > first ? amount : 0),
      0,
    );
    // The current minute has only begun, and so may the server have.
    const sinceMs = Math.max((first + 1) * MINUTE_MS, this.#startedMs);
    return {
      bytesPerMinute: (bytes / Math.max(1_000, nowMs - sinceMs)) * MINUTE_MS,
      refused,
      ...(lastError === undefined ? {} : { lastError }),
    };
  }

  get refusals(): (Refusals & { path: string })[] {
    return [...this.#refused]
      .map(([path, about]) => ({ path, ...about }))
      .sort((a, b) => b.lastMs - a.lastMs);
  }
}

function dropOldest(map: Map<string, unknown>): void {
  const [oldest] = map.keys();
  if (map.size > MOST && oldest !== undefined) {
    map.delete(oldest);
  }
}
