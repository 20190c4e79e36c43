/**
 * Sends what a server lacks of recordings that have ended: it was away, or an earlier collector was killed.
 *
 *     marked recording, oldest first ──the server names its offset──> rest sent ──> mark removed
 *
 * | what | outcome |
 * |---|---|
 * | the server is away, or its disk is full | tried again, at growing, random intervals; the recording stays, within the disk limit |
 * | the collector or the server is killed | the server names the offset from which the rest is sent |
 * | the server refuses the recording | a line gives the reason; it is not sent again |
 */
import { closeSync, openSync, readSync } from "node:fs";
import { monotonicMs } from "../../linux/this_process/clock.js";
import type { Millis } from "../../model/base/units.js";
import { oneLine } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import type { Destination } from "../../recording/sender/post_connection.js";
import { StreamSender } from "../../recording/sender/stream_sender.js";
import { wholeBytesOf } from "../../recording/thinned.js";
import type { KeptRecordings } from "./kept_recordings.js";

const FIRST_RETRY_MS: Millis = 2_000;
const LAST_RETRY_MS: Millis = 300_000;
/** Interval of the searches for more. */
const IDLE_MS: Millis = 10_000;

export type BacklogEvent =
  /** All of them; `recordings` since the server answers again. */
  | { readonly kind: "backlog-sent"; readonly recordings: number }
  | { readonly kind: "backlog-waits"; readonly recordings: number; readonly why: string }
  | { readonly kind: "not-sent"; readonly path: string; readonly why: string };

export class Backlog {
  readonly #server: Destination;
  readonly #kept: KeptRecordings;
  readonly #onEvent: (event: BacklogEvent) => void;
  #working: Promise<void> | null = null;
  #isClosed = false;
  #nextMs: Millis = 0;
  #retryMs = FIRST_RETRY_MS;
  #waits = false;
  #sent = 0;

  constructor(server: Destination, kept: KeptRecordings, onEvent: (event: BacklogEvent) => void) {
    this.#server = server;
    this.#kept = kept;
    this.#onEvent = onEvent;
  }

  /** Starts sending if there is something to send. */
  next(nowMs: Millis): void {
    if (this.#working === null && nowMs >= this.#nextMs && !this.#isClosed) {
      this.#nextMs = nowMs + IDLE_MS;
      this.#working = this.#sendAll().finally(() => {
        this.#working = null;
      });
    }
  }

  /** Waits for the recording that is being sent. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#working;
  }

  /** Never rejects. */
  async #sendAll(): Promise<void> {
    const paths = this.#kept.unsent();
    for (const [at, path] of paths.entries()) {
      if (this.#isClosed) {
        return;
      }
      const why = await this.#send(path);
      if (why !== null) {
        this.#nextMs = monotonicMs() + this.#retryMs * (0.5 + Math.random());
        this.#retryMs = Math.min(LAST_RETRY_MS, this.#retryMs * 2);
        if (!this.#waits) {
          this.#waits = true;
          this.#onEvent({ kind: "backlog-waits", recordings: paths.length - at, why });
        }
        return;
      }
    }
    this.#retryMs = FIRST_RETRY_MS;
    if (this.#sent > 0) {
      this.#onEvent({ kind: "backlog-sent", recordings: this.#sent });
      this.#sent = 0;
      this.#waits = false;
    }
  }

  /** null: the server has it or refuses it, or it is gone; otherwise why it is sent later. */
  async #send(path: string): Promise<string | null> {
    const sender = new StreamSender(this.#server);
    let descriptor: number | null = null;
    try {
      const wholeBytes = wholeBytesOf(path);
      const file = openSync(path, "r");
      descriptor = file;
      sender.begin((offset, length) => {
        const bytes = Buffer.alloc(Math.min(length, wholeBytes - offset));
        return bytes.subarray(0, readSync(file, bytes, 0, bytes.length, offset));
      });
      sender.grown(wholeBytes);
      const { missing, reason, isRefused } = await sender.sendRest();
      if (missing > 0 && !isRefused) {
        this.#kept.markUnsent(path, sender.mayHaveBytes);
        return reason;
      }
      if (isRefused) {
        this.#onEvent({ kind: "not-sent", path, why: `the server refuses it: ${reason}` });
      } else {
        this.#sent += 1;
      }
    } catch (error) {
      // It was removed in the meantime, or is not a recording: its first frame was never written.
      if (reasonOf(error).code !== "ENOENT") {
        this.#onEvent({ kind: "not-sent", path, why: oneLine(reasonOf(error).message) });
      }
    } finally {
      sender.stop();
      if (descriptor !== null) {
        closeSync(descriptor);
      }
    }
    this.#kept.markSent(path);
    return null;
  }
}
