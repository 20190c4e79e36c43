/**
 * Receives streams: they are checked, made durable, acknowledged, and written to the store in the background.
 *
 *     accept ── one stream at a time ── StreamReader (checks) ── StreamFiles (fsync) ── answer
 *                                                                    └── pending ── every second ── Store.write
 */
import type { Bytes, Millis, TimeMs } from "../../model/base/units.js";
import { TidemarkError } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import type { ProfileTables } from "../../model/profile/profile.js";
import type { FramesAnswer } from "../../model/wire/frames.js";
import { streamName } from "../../recording/sender/stream_name.js";
import { type StreamItem, type StreamLimits, StreamReader } from "../../recording/stream_reader.js";
import type { Store, StreamFiles, StreamPart } from "../../store/index.js";
import { implausibleTime } from "./plausible_times.js";
import type { SteadyClock } from "./steady_clock.js";

const FLUSH_MS: Millis = 1_000;
/** Limit on decoded frames that wait for the store; beyond it, senders wait. */
const MOST_PENDING: Bytes = 64 << 20;
const MOST_STREAM_BYTES: Bytes = 1 << 30;
const LIMITS: StreamLimits = { frameBytes: 64 << 20, callBytes: 128 << 20 };
/** Limit on the dictionaries of streams in memory, and how long they are kept after the stream's last frame. */
const MOST_OPEN_BYTES: Bytes = 448 << 20;
/** Memory of a stream whose dictionary is empty. */
const OPEN_BYTES: Bytes = 16 << 10;
/** Memory of a site in the store: of profiles of other profilers, which send differences, none is kept. */
const SITE_BYTES: Bytes = 120;
const RECEIVED_SITE_BYTES: Bytes = 40;
const IDLE_MS: Millis = 600_000;
const RETRY_MS: Millis = 5_000;
const MOST_FAILURES = 5;
/** How long streams that the store refused repeatedly are left alone. */
const ASIDE_MS: Millis = 600_000;

export const NOT_WRITABLE = "the server's database cannot be written";

interface OpenStream {
  readonly reader: StreamReader;
  /** About how much memory it takes, here and in the store. */
  bytes: Bytes;
  usedMs: TimeMs;
}

export interface Accepted {
  readonly status: 200 | 400 | 409 | 413 | 503;
  readonly answer: FramesAnswer;
}

export interface IngestOptions {
  readonly store: Store;
  readonly files: StreamFiles;
  /** Rows older than this are left out of the store. */
  readonly oldestMs: () => TimeMs;
  readonly clock: Pick<SteadyClock, "latestMs">;
  /** Limit on the dictionaries of streams in memory; left out: {@link MOST_OPEN_BYTES}. */
  readonly openBytes?: Bytes;
  readonly warn: (text: string) => void;
  /** Called after each request. `error`: why it was refused. */
  readonly received: (stream: string, bytes: Bytes, error: string | undefined) => void;
  /** Called after frames are in the store. */
  readonly written: (parts: readonly StreamPart[]) => void;
}

export class Ingest {
  readonly #options: IngestOptions;
  readonly #open = new Map<string, OpenStream>();
  /** By stream: the request in progress. */
  readonly #turns = new Map<string, Promise<unknown>>();
  #pending = new Map<string, StreamPart>();
  #pendingBytes: Bytes = 0;
  /** Those that the store writes now. */
  #writing: ReadonlyMap<string, StreamPart> = new Map();
  #timer: NodeJS.Timeout | null = null;
  #flushing: Promise<void> = Promise.resolve();
  /** Streams that the store could not write: read again from their files. */
  readonly #behind = new Set<string>();
  /** Number of failed attempts. */
  readonly #failures = new Map<string, number>();
  /** Streams that the store refused repeatedly: their files are complete, but not their rows. */
  readonly #setAside = new Set<string>();
  #isStopping = false;

  constructor(options: IngestOptions) {
    this.#options = options;
  }

  /**
   * After a start: cuts torn frames, and reads the frames that the store does not have yet. @returns lines about this
   *
   */
  async recover(): Promise<string[]> {
    const { files, store } = this.#options;
    const written = await store.writtenOffsets();
    const lines: string[] = [];
    let behind = 0;
    for (const { stream, bytes } of await files.list()) {
      const known = written.get(stream) ?? 0;
      if (bytes <= known) {
        continue;
      }
      const cut = files.cutTorn(stream, known);
      if (cut > 0) {
        lines.push(`cut ${cut} bytes of a frame that was not acknowledged from stream ${stream}`);
      }
      if (files.lengthOf(stream) > known) {
        behind += 1;
        await this.#inTurn(stream, () => this.#reader(stream)).catch((error: unknown) => {
          this.#behind.add(stream);
          lines.push(`stream ${stream} is not in the database yet: ${reasonOf(error).message}`);
        });
      }
    }
    void this.#catchUp();
    return behind === 0
      ? lines
      : [...lines, `wrote the frames of ${behind} streams that were acknowledged before the end`];
  }

  /** Accepts frames of a stream from an offset. `stream` has the form of a stream's name. */
  async accept(stream: string, offset: Bytes, body: Buffer): Promise<Accepted> {
    const accepted = await this.#inTurn(stream, () => this.#accept(stream, offset, body));
    this.#options.received(stream, body.length, accepted.answer.error);
    return accepted;
  }

  /** Removes a stream's file. A sender that goes on is asked for the stream from its start. */
  remove(stream: string): Promise<void> {
    const { files, store } = this.#options;
    return this.#inTurn(stream, async () => {
      files.remove(stream);
      this.#open.delete(stream);
      store.forget(stream);
    });
  }

  /** The dictionaries of a stream, as of its last accepted frame; null: it cannot be read again. */
  tables(stream: string): Promise<ProfileTables | null> {
    return this.#inTurn(
      stream,
      async () => (await this.#readerOrNull(stream))?.reader.tables ?? null,
    );
  }

  async #accept(stream: string, offset: Bytes, body: Buffer): Promise<Accepted> {
    const { files } = this.#options;
    const length = files.lengthOf(stream);
    if (this.#isStopping) {
      return { status: 503, answer: { error: "the server is stopping" } };
    }
    if (offset > length) {
      return { status: 409, answer: { nextOffset: length } };
    }
    const repeated = Math.min(length - offset, body.length);
    if (repeated > 0 && !files.read(stream, offset, repeated).equals(body.subarray(0, repeated))) {
      const error = "other bytes are stored at this offset of the stream";
      return { status: 409, answer: { error } };
    }
    const fresh = body.subarray(repeated);
    if (fresh.length === 0) {
      return { status: 200, answer: { nextOffset: length } };
    }
    if (length + fresh.length > MOST_STREAM_BYTES) {
      const error = `the stream is too large: the limit stream-bytes is ${MOST_STREAM_BYTES >> 20} MiB`;
      return { status: 413, answer: { error } };
    }
    if (length === 0 && streamName(fresh) !== stream) {
      return { status: 400, answer: { error: "the stream's name does not fit its beginning" } };
    }
    while (this.#pendingBytes > MOST_PENDING) {
      await this.flush();
    }
    return this.#take(stream, fresh);
  }

  async #take(stream: string, fresh: Buffer): Promise<Accepted> {
    const { files, warn } = this.#options;
    let items: StreamItem[];
    let end: Bytes;
    try {
      const opened = await this.#readerOrNull(stream);
      if (opened === null) {
        return { status: 503, answer: { error: NOT_WRITABLE } };
      }
      items = opened.reader.take(fresh);
      opened.bytes = bytesOf(opened.reader);
      end = opened.reader.offset;
      const implausible = implausibleTime(items, this.#options.clock.latestMs());
      if (implausible !== null) {
        this.#open.delete(stream);
        return { status: 400, answer: { error: implausible } };
      }
    } catch (error) {
      this.#open.delete(stream);
      if (!(error instanceof TidemarkError)) {
        throw error;
      }
      return { status: error.id === "TM-E008" ? 413 : 400, answer: { error: error.message } };
    }
    try {
      await files.append(stream, fresh);
    } catch (error) {
      this.#open.delete(stream);
      const { message } = reasonOf(error);
      warn(`stream ${stream} is not stored: ${message}`);
      return { status: 503, answer: { error: `the server cannot store it: ${message}` } };
    }
    this.#addPending({ stream, items, endOffset: end });
    return { status: 200, answer: { nextOffset: end } };
  }

  async #readerOrNull(stream: string): Promise<OpenStream | null> {
    try {
      return await this.#reader(stream);
    } catch (error) {
      this.#behind.add(stream);
      this.#options.warn(`stream ${stream} cannot be read again: ${reasonOf(error).message}`);
      setTimeout(() => void this.#catchUp(), RETRY_MS).unref();
      return null;
    }
  }

  /**
   * A stream's reader, up to date with its file. If the store does not know the stream, it is written again from its
   * start. Throws TidemarkError if the store cannot write it.
   */
  async #reader(stream: string): Promise<OpenStream> {
    const { store, files, oldestMs } = this.#options;
    const found = this.#open.get(stream);
    if (found !== undefined) {
      found.usedMs = Date.now();
      return found;
    }
    this.#makeRoom();
    const reader = new StreamReader("the stream", LIMITS);
    const isWritten =
      store.knows(stream) || this.#pending.has(stream) || this.#setAside.has(stream);
    for (const chunk of files.lengthOf(stream) === 0 ? [] : files.frames(stream, 0)) {
      const items = reader.take(chunk);
      if (!isWritten) {
        const part = { stream, items, endOffset: reader.offset };
        await store.write([part], oldestMs());
        this.#options.written([part]);
      }
    }
    const opened = { reader, bytes: bytesOf(reader), usedMs: Date.now() };
    this.#open.set(stream, opened);
    return opened;
  }

  /**
   * Closes streams that have sent nothing for a long time: they are read again from their files when they send. If the rest
   * still exceeds the limit, streams are closed at random. Closing the one that sent least recently would be worse: where all
   * streams send in turn, each would be closed shortly before it sends again.
   */
  #makeRoom(): void {
    const idleMs = Date.now() - IDLE_MS;
    const free = [...this.#open].filter(
      ([stream]) =>
        !this.#pending.has(stream) && !this.#writing.has(stream) && !this.#turns.has(stream),
    );
    const close = (stream: string) => {
      this.#open.delete(stream);
      this.#options.store.forget(stream);
    };
    const used = free.filter(([stream, { usedMs }]) => {
      const isIdle = usedMs < idleMs;
      if (isIdle) {
        close(stream);
      }
      return !isIdle;
    });
    let bytes = 0;
    for (const opened of this.#open.values()) {
      bytes += opened.bytes;
    }
    const { openBytes = MOST_OPEN_BYTES } = this.#options;
    while (bytes > openBytes && used.length > 0) {
      const at = Math.floor(Math.random() * used.length);
      const [stream, opened] = used[at] as [string, OpenStream];
      used[at] = used.at(-1) as [string, OpenStream];
      used.pop();
      bytes -= opened.bytes;
      close(stream);
    }
  }

  #addPending(part: StreamPart): void {
    if (this.#setAside.has(part.stream)) {
      return;
    }
    const before = this.#pending.get(part.stream);
    const items = before === undefined ? part.items : [...before.items, ...part.items];
    this.#pending.set(part.stream, { ...part, items });
    this.#pendingBytes += part.items.reduce((sum, { bytes }) => sum + bytes, 0);
    this.#timer ??= setTimeout(() => void this.flush(), FLUSH_MS);
  }

  /** Writes pending frames. Never throws; frames that the store cannot write are read again later. */
  flush(): Promise<void> {
    if (this.#timer !== null) {
      clearTimeout(this.#timer);
      this.#timer = null;
    }
    this.#flushing = this.#flushing.then(() => this.#write());
    return this.#flushing;
  }

  async #write(): Promise<void> {
    const { store, warn, written, oldestMs } = this.#options;
    const pending = this.#pending;
    const parts = [...pending.values()];
    this.#pending = new Map();
    this.#pendingBytes = 0;
    if (parts.length === 0) {
      return;
    }
    this.#writing = pending;
    try {
      await store.write(parts, oldestMs());
      written(parts);
    } catch (error) {
      warn(`frames are stored but not in the database: ${reasonOf(error).message}`);
      for (const { stream } of parts) {
        this.#behind.add(stream);
        this.#open.delete(stream);
        store.forget(stream);
      }
      setTimeout(() => void this.#catchUp(), RETRY_MS).unref();
    } finally {
      this.#writing = new Map();
      this.#makeRoom();
    }
  }

  /** One stream at a time, so that one that the store cannot write does not block others. */
  async #catchUp(): Promise<void> {
    const streams = [...this.#behind];
    this.#behind.clear();
    for (const stream of this.#isStopping ? [] : streams) {
      await this.#inTurn(stream, async () => {
        await this.#reader(stream);
        this.#failures.delete(stream);
      }).catch((error: unknown) => {
        const failures = (this.#failures.get(stream) ?? 0) + 1;
        this.#failures.set(stream, failures);
        if (failures < MOST_FAILURES) {
          this.#behind.add(stream);
        } else {
          this.#putAside(stream, reasonOf(error).message);
        }
      });
    }
    if (this.#behind.size > 0) {
      setTimeout(() => void this.#catchUp(), RETRY_MS).unref();
    }
  }

  /** The cause may be one that passes, such as a full disk. */
  #putAside(stream: string, message: string): void {
    this.#setAside.add(stream);
    this.#options.warn(
      `stream ${stream} is kept only as a file; its rows are tried again in ${ASIDE_MS / 60_000} min: ${message}`,
    );
    const tryAgain = async () => {
      this.#setAside.delete(stream);
      this.#open.delete(stream);
      this.#behind.add(stream);
    };
    setTimeout(() => {
      void this.#inTurn(stream, tryAgain).then(() => this.#catchUp());
    }, ASIDE_MS).unref();
  }

  /** Stops accepting frames, and writes those that were acknowledged. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.allSettled(this.#turns.values());
    await this.flush();
  }

  #inTurn<Result>(stream: string, work: () => Promise<Result>): Promise<Result> {
    const before = this.#turns.get(stream) ?? Promise.resolve();
    const result = before.catch(() => {}).then(work);
    const turn = result
      .catch(() => {})
      .finally(() => {
        if (this.#turns.get(stream) === turn) {
          this.#turns.delete(stream);
        }
      });
    this.#turns.set(stream, turn);
    return result;
  }
}

/** With the memory of the store: it has the id of each stack with samples, and compares profiles with the last one. */
function bytesOf(reader: StreamReader): Bytes {
  const isReceived = reader.meta?.sender !== undefined;
  const siteBytes = isReceived ? RECEIVED_SITE_BYTES : SITE_BYTES;
  return reader.bytes + siteBytes * reader.mostSites + OPEN_BYTES;
}
