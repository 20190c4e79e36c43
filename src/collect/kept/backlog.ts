/**
 * Sends what a server lacks of recordings that have ended: it was away, or an earlier collector was killed.
 *
 *     marked recording, oldest first ──the server names its offset──> rest sent ──> mark removed
 *     its mark: what the server may have │ unknown                         ──failed──> what the server may have
 *
 * | what | outcome |
 * |---|---|
 * | the server is away, or its disk is full | tried again, at growing, random intervals; the recording stays, within the disk limit |
 * | the token is wrong, or another program answers | the same, with a line that names the token or the address |
 * | the collector or the server is killed | the server names the offset from which the rest is sent |
 * | the server refuses the recording | a line gives the reason; it is not sent again |
 */
import { closeSync, existsSync, openSync, readSync } from "node:fs";
import { monotonicMs } from "../../linux/this_process/clock.js";
import type { Bytes, Millis } from "../../model/base/units.js";
import { fileUnusable, oneLine, TidemarkError } from "../../model/errors/errors.js";
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
  /** Reasons given since recordings wait: each is one line, even if the server is away for a day. */
  readonly #said = new Set<string>();
  /** The server has taken or refused a recording since the last `backlog-sent`. */
  #hasAnswered = false;
  #sent = 0;
  /** The recording that failed last: the others come before it. */
  #failing = "";

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
    const oldestFirst = this.#kept.unsent();
    const first = oldestFirst.indexOf(this.#failing) + 1;
    const paths = [...oldestFirst.slice(first), ...oldestFirst.slice(0, first)];
    for (const [at, path] of paths.entries()) {
      if (this.#isClosed) {
        return;
      }
      const why = await this.#send(path);
      if (why !== null) {
        this.#nextMs = monotonicMs() + this.#retryMs * (0.5 + Math.random());
        this.#retryMs = Math.min(LAST_RETRY_MS, this.#retryMs * 2);
        this.#failing = path;
        if (!this.#said.has(why)) {
          this.#said.add(why);
          this.#onEvent({ kind: "backlog-waits", recordings: paths.length - at, why });
        }
        return;
      }
    }
    this.#retryMs = FIRST_RETRY_MS;
    if (this.#sent > 0) {
      this.#onEvent({ kind: "backlog-sent", recordings: this.#sent });
      this.#sent = 0;
    }
    if (this.#hasAnswered) {
      this.#said.clear();
      this.#hasAnswered = false;
    }
  }

  /** null: the server has it or refuses it, or it is gone; otherwise why it is sent later. */
  async #send(path: string): Promise<string | null> {
    const sender = new StreamSender(this.#server);
    let descriptor: number | null = null;
    let later: string | null = null;
    let mayHaveBytes: Bytes | null = null;
    try {
      const earlier = this.#kept.sending(path);
      const wholeBytes = wholeBytesOf(path);
      const file = openSync(path, "r");
      descriptor = file;
      sender.begin((offset, length) => {
        const bytes = Buffer.alloc(Math.min(length, wholeBytes - offset));
        return bytes.subarray(0, readSync(file, bytes, 0, bytes.length, offset));
      });
      sender.grown(wholeBytes);
      const { missing, reason, isRefused } = await sender.sendRest();
      mayHaveBytes = sender.mayHaveBytes(earlier);
      if (missing > 0 && !isRefused) {
        later = reason || "it has not taken all in time";
      } else {
        this.#hasAnswered = true;
        this.#sent += isRefused ? 0 : 1;
      }
      if (isRefused) {
        this.#onEvent({ kind: "not-sent", path, why: `the server refuses it: ${reason}` });
      }
    } catch (error) {
      const why = oneLine(reasonOf(error).message);
      if (existsSync(path) && isOfRecording(error)) {
        this.#onEvent({ kind: "not-sent", path, why });
      } else if (existsSync(path)) {
        later = why;
      }
    } finally {
      sender.stop();
      if (descriptor !== null) {
        closeSync(descriptor);
      }
    }
    if (later === null) {
      this.#kept.markSent(path);
    } else {
      this.#kept.markUnsent(path, mayHaveBytes);
    }
    this.#kept.closed(path);
    return later;
  }
}

/** The file is not a recording, or its first frame was never written. Other errors are those of the disk. */
function isOfRecording(error: unknown): boolean {
  return error instanceof TidemarkError && error.id !== fileUnusable("", "read", "").id;
}
