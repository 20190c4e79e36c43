import { formatBytes } from "../../model/base/numbers.js";
import { shellWord } from "../../model/base/shell_word.js";
import type { Bytes, Millis } from "../../model/base/units.js";
import { oneLine } from "../../model/errors/errors.js";
import { FRAMES_PATH, type FramesAnswer, MOST_FRAMES_BYTES } from "../../model/wire/frames.js";
import { FILE_HEAD_BYTES, FRAME_HEAD_BYTES } from "../frames/frames.js";
import { type Destination, PostConnection } from "./post_connection.js";
import { namedBytes, streamName } from "./stream_name.js";

/** Frames of this period are sent together: a short period at first, because someone may be watching, then longer. */
const FIRST_DISTANCE_MS: Millis = 1_000;
const DISTANCE_MS: Millis = 5_000;
const FIRST_FOR_MS: Millis = 30_000;
/** Time between two attempts while the server is unreachable: doubled from the first value up to the second. */
const FIRST_RETRY_MS: Millis = 1_000;
const LAST_RETRY_MS: Millis = 60_000;
const CHUNK_BYTES: Bytes = 1 << 20;
/** At the end: how long to wait for a server that has answered before, and for one that has not. */
const PATIENCE_MS: Millis = 5_000;
const LITTLE_PATIENCE_MS: Millis = 1_000;
/** Limit on the whole of {@link StreamSender.finish}. */
const LONGEST_FINISH_MS: Millis = 60_000;
/** With an error of a Tidemark server: it will not take this recording later either. */
const REFUSALS: ReadonlySet<number> = new Set([400, 409, 413]);

type ReadAt = (offset: number, length: number) => Buffer;

/**
 * Sends a recording to a server while it grows. It keeps no frames: it reads them again from where they were recorded.
 * The server's answer names the offset that follows what it has stored, so a request that is repeated changes nothing.
 * Nothing here throws or waits for the server while the program runs; {@link finish} reports at the end if frames were
 * not sent.
 */
export class StreamSender {
  readonly #connection: PostConnection;
  readonly #url: string;
  #read: ReadAt | null = null;
  #name = "";
  #total: Bytes = 0;
  #acknowledged: Bytes = 0;
  /** End of the bytes that were sent so far, answered or not. */
  #attempted: Bytes = 0;
  /** The server has named the offset that follows what it has. */
  #isPlaced = false;
  #failures = 0;
  /** The reason why the server's last request failed; "" while it answers. */
  #reason = "";
  /** The server refuses the stream: nothing more is sent. */
  #isRefused = false;
  #timer: NodeJS.Timeout | null = null;
  #sending: Promise<void> | null = null;
  readonly #begunMs = Date.now();
  #release: () => void = () => {};

  constructor(destination: Destination) {
    this.#connection = new PostConnection(destination);
    this.#url = destination.url;
  }

  /** The recording begins; `read` returns its bytes. */
  begin(read: ReadAt): void {
    this.#read = read;
    this.#total = 0;
    this.#acknowledged = 0;
    this.#attempted = 0;
    this.#isPlaced = false;
  }

  /** So many bytes were appended. */
  grown(bytes: Bytes): void {
    this.#total += bytes;
    const isFirst = Date.now() - this.#begunMs < FIRST_FOR_MS;
    this.#plan(isFirst ? FIRST_DISTANCE_MS : DISTANCE_MS);
  }

  /** The recording is complete; `release` is called when it will not be read any more. */
  ended(release: () => void): void {
    this.#release = release;
  }

  /** Nothing was recorded, or the caller no longer waits. */
  stop(): void {
    this.#clearTimer();
    this.#isRefused = true;
    this.#connection.close();
    this.#release();
  }

  /** Sends the rest. @returns a sentence if the server does not have all of it, else null. */
  async finish(recordingPath: string): Promise<string | null> {
    const { missing, reason } = await this.sendRest();
    this.stop();
    return missing === 0
      ? null
      : `${this.#url} has not taken ${formatBytes(missing)} of ${formatBytes(this.#total)} of the recording (${reason}): load it there with: tidemark serve --load ${shellWord(recordingPath)}`;
  }

  /** Sends the rest, as far as the server takes it. `isRefused`: it will not take it later either. */
  async sendRest(): Promise<{
    readonly missing: Bytes;
    readonly reason: string;
    readonly isRefused: boolean;
  }> {
    const givesUpMs = Date.now() + LONGEST_FINISH_MS;
    this.#clearTimer();
    await this.#sending;
    const patience = this.#reason === "" ? PATIENCE_MS : LITTLE_PATIENCE_MS;
    let before = -1;
    while (this.#isBehind && this.#acknowledged > before && Date.now() < givesUpMs) {
      before = this.#acknowledged;
      await this.#sendChunk(patience);
    }
    const missing = this.#total - this.#acknowledged;
    return { missing, reason: this.#reason, isRefused: this.#isRefused && missing > 0 };
  }

  /**
   * The server has these bytes or fewer: what was sent without an answer counts. `earlier`: as far as was known before;
   * null: unknown, which it still is if the server has not answered.
   */
  mayHaveBytes<Earlier extends Bytes | null>(earlier: Earlier): Bytes | Earlier {
    if (this.#isPlaced) {
      return this.#attempted;
    }
    return earlier === null ? earlier : Math.max(earlier, this.#attempted);
  }

  get #isBehind(): boolean {
    return !this.#isRefused && this.#acknowledged < this.#total && this.#read !== null;
  }

  #clearTimer(): void {
    if (this.#timer !== null) {
      clearTimeout(this.#timer);
      this.#timer = null;
    }
  }

  #plan(distanceMs: Millis): void {
    if (this.#timer !== null || this.#sending !== null || !this.#isBehind) {
      return;
    }
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#sending = this.#sendAll().finally(() => {
        this.#sending = null;
        const retryMs = Math.min(FIRST_RETRY_MS * 2 ** (this.#failures - 1), LAST_RETRY_MS);
        if (this.#failures > 0) {
          // Senders that failed together do not try again together.
          this.#plan(retryMs * (0.5 + Math.random()));
        }
      });
    }, distanceMs);
    this.#timer.unref();
  }

  async #sendAll(): Promise<void> {
    do {
      await this.#sendChunk(PATIENCE_MS);
    } while (this.#isBehind && this.#failures === 0);
  }

  async #sendChunk(patienceMs: Millis): Promise<void> {
    const chunk = this.#chunk();
    if (chunk.length === 0) {
      this.#refuse("the recording cannot be read back");
      return;
    }
    this.#attempted = Math.max(this.#attempted, this.#acknowledged + chunk.length);
    const path = `${FRAMES_PATH}?stream=${this.#name}&offset=${this.#acknowledged}`;
    const answer = await this.#connection.post(path, chunk, patienceMs);
    if ("silence" in answer) {
      this.#failed(answer.silence);
      return;
    }
    const { nextOffset, error } = answer.body as FramesAnswer;
    const { status } = answer;
    const next = typeof nextOffset === "number" && nextOffset >= 0 ? nextOffset : null;
    if (next !== null && this.#isUsable(status, next)) {
      // It has more than this if the end of the file was lost here.
      this.#acknowledged = Math.min(next, this.#total);
      this.#attempted = Math.max(this.#attempted, next);
      this.#isPlaced = true;
      this.#failures = 0;
      this.#reason = "";
    } else if (REFUSALS.has(status) && typeof error === "string") {
      this.#refuse(oneLine(error));
    } else if (status === 409 && next !== null) {
      this.#refuse(`it names an offset, ${next}, that does not fit this recording`);
    } else {
      const said = typeof error === "string" ? ` (${oneLine(error)})` : "";
      this.#failed(`it answers with status ${status}${said}${remedyOf(status, this.#url)}`);
    }
  }

  /** The server continues the stream from this offset. */
  #isUsable(status: number, nextOffset: Bytes): boolean {
    return status === 200
      ? nextOffset > this.#acknowledged
      : status === 409 && nextOffset !== this.#acknowledged && nextOffset <= this.#total;
  }

  #failed(reason: string): void {
    this.#failures += 1;
    this.#reason = reason;
  }

  #refuse(reason: string): void {
    this.#reason = reason;
    this.#isRefused = true;
  }

  /**
   * Whole frames that are not acknowledged yet, about {@link CHUNK_BYTES} or one frame; empty if they cannot be read.
   */
  #chunk(): Buffer {
    const read = this.#read as ReadAt;
    const offset = this.#acknowledged;
    const left = Math.min(this.#total - offset, MOST_FRAMES_BYTES);
    let bytes = read(offset, Math.min(left, CHUNK_BYTES));
    let end = endOfFrames(bytes, offset === 0 ? FILE_HEAD_BYTES : 0);
    if (end === 0) {
      bytes = read(offset, left);
      end = endOfFrames(bytes, offset === 0 ? FILE_HEAD_BYTES : 0);
    }
    if (this.#name === "") {
      const start = offset === 0 ? bytes : read(0, CHUNK_BYTES);
      this.#name = namedBytes(start) === 0 ? "" : streamName(start);
    }
    return this.#name === "" ? Buffer.alloc(0) : bytes.subarray(0, end);
  }
}

/** Where the last whole frame of `bytes` ends; 0 if there is none. */
function endOfFrames(bytes: Buffer, start: number): number {
  let at = start;
  let end = 0;
  while (at + FRAME_HEAD_BYTES <= bytes.length) {
    at += FRAME_HEAD_BYTES + bytes.readUInt32LE(at);
    if (at <= bytes.length) {
      end = at;
    }
  }
  return end;
}

/** The next step after an answer whose cause is the token, the address or a proxy rather than the recording. */
function remedyOf(status: number, url: string): string {
  if (status >= 500 || status === 429 || status === 408) {
    return "";
  }
  if (status === 401) {
    return ": check the token (--token-file)";
  }
  if (status === 403) {
    return `: check the token (--token-file) and the address ${url}`;
  }
  return status === 413
    ? `: a proxy before ${url} limits the size of a request; allow ${MOST_FRAMES_BYTES >> 20} MiB there`
    : `, unlike a Tidemark server: check the address ${url}`;
}
