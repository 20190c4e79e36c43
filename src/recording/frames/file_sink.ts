import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { present } from "../../model/base/present.js";
import { fileUnusable, type TidemarkError } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import type { FrameSink } from "./frame_sink.js";

/** Bound of a recording that is kept in memory because its file failed: enough for the summary of a very long run. */
const MOST_IN_MEMORY = 128 << 20;

/**
 * A recording's file. The sink only appends, and never rewrites. If a write fails (full disk, limit of a file's
 * size), the
 * file ends with its last whole frame, and the recording continues in memory for the summary at its end.
 */
export class FileSink implements FrameSink {
  #failure: TidemarkError | null = null;
  /** Bytes of whole frames in the file. */
  #wholeBytes = 0;
  /** All frames, from the first one that the file did not take. */
  #kept: Buffer[] = [];
  #keptBytes = 0;
  /** null if there is no file. */
  #descriptor: number | null;
  /** Whether opening the file created it. */
  readonly #made: boolean;

  private constructor(
    readonly path: string,
    descriptor: number | null,
    made: boolean,
  ) {
    this.#descriptor = descriptor;
    this.#made = made;
  }

  /** A recording without a file; `failure` gives the reason. */
  static inMemory(path: string, failure: TidemarkError): FileSink {
    const sink = new FileSink(path, null, false);
    sink.#failure = failure;
    return sink;
  }

  /** Opens the file. Its contents stay until {@link clear}. Throws TidemarkError if it cannot be opened. */
  static open(path: string): FileSink {
    return FileSink.#openFile(path, constants.O_CREAT);
  }

  /** Continues a file of which the first `keepBytes` bytes are whole frames. */
  static resume(path: string, keepBytes: number): FileSink {
    const sink = FileSink.#openFile(path, constants.O_APPEND);
    ftruncateSync(present(sink.#descriptor), keepBytes);
    sink.#wholeBytes = keepBytes;
    return sink;
  }

  static #openFile(path: string, flags: number): FileSink {
    try {
      const made = !existsSync(path);
      // Without O_NONBLOCK, a FIFO of that name would wait for a reader.
      const descriptor = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK | flags, 0o600);
      if (!fstatSync(descriptor).isFile()) {
        closeSync(descriptor);
        throw new Error("it is not a regular file");
      }
      return new FileSink(path, descriptor, made);
    } catch (error) {
      throw fileUnusable(path, "write", reasonOf(error).message);
    }
  }

  get failure(): TidemarkError | null {
    return this.#failure;
  }

  get memory(): Buffer | null {
    return this.#failure ? Buffer.concat(this.#kept) : null;
  }

  /**
   * Starts over. A new file takes the name of an existing one, so processes that still read or write the old file keep
   * it.
   */
  clear(): void {
    if (this.#descriptor === null) {
      return;
    }
    const fresh = this.#made ? null : replaceFile(this.path);
    if (fresh === null) {
      ftruncateSync(this.#descriptor, 0);
    } else {
      closeSync(this.#descriptor);
      this.#descriptor = fresh;
    }
  }

  append(frames: Buffer): void {
    if (this.#descriptor === null || this.#failure) {
      this.#keep(frames);
      return;
    }
    try {
      for (let sent = 0; sent < frames.length; ) {
        sent += writeSync(this.#descriptor, frames, sent);
      }
      this.#wholeBytes += frames.length;
    } catch (error) {
      this.#failure = fileUnusable(this.path, "write", reasonOf(error).message);
      ftruncateSync(this.#descriptor, this.#wholeBytes);
      this.#keep(readWhole(this.#descriptor, this.#wholeBytes));
      this.#keep(frames);
    }
  }

  appendAfterFailure(frames: Buffer): void {
    if (this.#descriptor === null || this.#wholeBytes === 0) {
      return;
    }
    let sent = 0;
    try {
      sent = writeSync(this.#descriptor, frames, 0, frames.length, this.#wholeBytes);
    } catch {
      // No room for these either: readers report that the end was not seen.
    }
    if (sent < frames.length) {
      ftruncateSync(this.#descriptor, this.#wholeBytes);
    }
  }

  discard(): void {
    this.close();
    if (this.#made) {
      rmSync(this.path, { force: true });
    }
  }

  close(): void {
    if (this.#descriptor !== null) {
      closeSync(this.#descriptor);
    }
  }

  /** Beyond the bound a recording in memory is cut, like one on a full disk. */
  #keep(frames: Buffer): void {
    this.#keptBytes += frames.length;
    if (this.#keptBytes <= MOST_IN_MEMORY) {
      this.#kept.push(frames);
    }
  }
}

/** An empty file of the same name and mode in place of the existing one; null if its folder allows no new file. */
function replaceFile(path: string): number | null {
  const place = realpathSync(path);
  const beside = `${place}.${process.pid}.part`;
  try {
    const descriptor = openSync(beside, "wx", statSync(place).mode & 0o777);
    renameSync(beside, place);
    return descriptor;
  } catch {
    rmSync(beside, { force: true });
    return null;
  }
}

/** Reads back the data that was written through a write-only descriptor; the path may name another file by now. */
function readWhole(descriptor: number, length: number): Buffer {
  try {
    return readFileSync(`/proc/self/fd/${descriptor}`).subarray(0, length);
  } catch {
    return Buffer.alloc(0); // not readable for this user: the summary will report that it is not a recording
  }
}
