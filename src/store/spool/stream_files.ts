/**
 * The spool: one file per stream, which is a recording. Appended bytes are synced to disk before they are acknowledged.
 */
import {
  closeSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
  statSync,
} from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { Turns } from "../../model/base/turns.js";
import type { Bytes, TimeMs } from "../../model/base/units.js";
import { STREAM_NAME } from "../../model/wire/frames.js";
import { makeFolder } from "../../recording/frames/make_folder.js";
import { wholeFrames } from "../../recording/stream_reader.js";

const SUFFIX = ".tidemark";
const CHUNK_BYTES: Bytes = 4 << 20;
/** The largest frame. */
const LONGEST_FRAME: Bytes = 64 << 20;

export interface StreamFile {
  readonly stream: string;
  readonly bytes: Bytes;
  readonly changedMs: TimeMs;
}

export class StreamFiles {
  readonly #folder: string;
  readonly #lengths = new Map<string, Bytes>();

  /** Throws TidemarkError if the folder cannot be created. */
  constructor(folder: string) {
    this.#folder = folder;
    makeFolder(folder);
  }

  /** `stream` must match {@link STREAM_NAME}, so no other name reaches the file system. */
  pathOf(stream: string): string {
    if (!STREAM_NAME.test(stream)) {
      throw new Error("not the name of a stream");
    }
    return join(this.#folder, `${stream}${SUFFIX}`);
  }

  /** Files that are removed meanwhile may be missing. */
  async list(): Promise<StreamFile[]> {
    const all = await new Turns().map(readdirSync(this.#folder), (name): StreamFile[] => {
      const stream = name.slice(0, -SUFFIX.length);
      const isStream = name.endsWith(SUFFIX) && STREAM_NAME.test(stream);
      const about = isStream
        ? statSync(join(this.#folder, name), { throwIfNoEntry: false })
        : undefined;
      return about === undefined ? [] : [{ stream, bytes: about.size, changedMs: about.mtimeMs }];
    });
    return all.flat();
  }

  /** 0 if there is no such file. */
  lengthOf(stream: string): Bytes {
    let length = this.#lengths.get(stream);
    if (length === undefined) {
      length = statSync(this.pathOf(stream), { throwIfNoEntry: false })?.size ?? 0;
      this.#lengths.set(stream, length);
    }
    return length;
  }

  /** Appends and syncs. If that fails, the file is as before, and the error is thrown. */
  async append(stream: string, bytes: Buffer): Promise<void> {
    const before = this.lengthOf(stream);
    const file = await open(this.pathOf(stream), "a", 0o600);
    try {
      await file.appendFile(bytes);
      await file.sync();
      if (before === 0) {
        await this.#syncFolder();
      }
      this.#lengths.set(stream, before + bytes.length);
    } catch (error) {
      await file.truncate(before).catch(() => this.#lengths.delete(stream));
      throw error;
    } finally {
      await file.close();
    }
  }

  /** Syncs the folder, so that a new file's name is on disk as well. */
  async #syncFolder(): Promise<void> {
    const folder = await open(this.#folder, "r");
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  }

  /** The existing part of `length` bytes at `offset`. */
  read(stream: string, offset: Bytes, length: Bytes): Buffer {
    const descriptor = openSync(this.pathOf(stream), "r");
    try {
      const bytes = Buffer.alloc(
        Math.max(0, Math.min(length, fstatSync(descriptor).size - offset)),
      );
      readSync(descriptor, bytes, 0, bytes.length, offset);
      return bytes;
    } finally {
      closeSync(descriptor);
    }
  }

  /** The complete frames from `offset` on, a few MiB at a time. */
  *frames(stream: string, offset: Bytes): Generator<Buffer> {
    for (let at = offset; ; ) {
      let bytes = this.read(stream, at, CHUNK_BYTES);
      let whole = wholeFrames(bytes, at, stream);
      if (whole === 0 && bytes.length === CHUNK_BYTES) {
        bytes = this.read(stream, at, LONGEST_FRAME);
        whole = wholeFrames(bytes, at, stream);
      }
      if (whole === 0) {
        return;
      }
      yield bytes.subarray(0, whole);
      at += whole;
    }
  }

  /**
   * After a crash: cuts off everything after the last complete frame. `from`: everything before it is known to be
   * whole.
   * @returns how many bytes were cut. */
  cutTorn(stream: string, from: Bytes): Bytes {
    const length = this.lengthOf(stream);
    let end = Math.min(from, length);
    for (const chunk of this.frames(stream, end)) {
      end += chunk.length;
    }
    if (end < length) {
      const descriptor = openSync(this.pathOf(stream), "r+");
      try {
        ftruncateSync(descriptor, end);
      } finally {
        closeSync(descriptor);
      }
      this.#lengths.set(stream, end);
    }
    return length - end;
  }

  remove(stream: string): void {
    rmSync(this.pathOf(stream), { force: true });
    this.#lengths.delete(stream);
  }
}
