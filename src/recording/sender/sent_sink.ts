import { closeSync, openSync, readSync } from "node:fs";
import type { TidemarkError } from "../../model/errors/errors.js";
import type { FrameSink } from "../frames/frame_sink.js";
import type { StreamSender } from "./stream_sender.js";

/**
 * A sink that also sends its frames to a server. The first sink, the recording's file, is the sender's spool: frames
 * that
the server has not acknowledged are read from there, so nothing is kept in memory while the server is unreachable.
 */
export class SentSink implements FrameSink {
  readonly #first: FrameSink;
  readonly #sender: StreamSender;
  /** Of the file, for reading; null before {@link clear} and if there is no file. */
  #descriptor: number | null = null;

  constructor(first: FrameSink, sender: StreamSender) {
    this.#first = first;
    this.#sender = sender;
  }

  get path(): string {
    return this.#first.path;
  }

  get failure(): TidemarkError | null {
    return this.#first.failure;
  }

  get memory(): Buffer | null {
    return this.#first.memory;
  }

  clear(): void {
    this.#first.clear();
    try {
      this.#descriptor = openSync(this.#first.path, "r");
    } catch {
      // A recording in memory, or a file without read permission: then only frames in memory are sent.
    }
    this.#sender.begin((offset, length) => this.#read(offset, length));
  }

  append(frames: Buffer): void {
    this.#first.append(frames);
    this.#sender.grown(frames.length);
  }

  appendAfterFailure(frames: Buffer): void {
    this.#first.appendAfterFailure(frames);
  }

  discard(): void {
    this.#sender.stop();
    this.#closeDescriptor();
    this.#first.discard();
  }

  /** The frames can still be read: {@link StreamSender.finish} sends the last of them. */
  close(): void {
    this.#first.close();
    this.#sender.ended(() => this.#closeDescriptor());
  }

  #closeDescriptor(): void {
    if (this.#descriptor !== null) {
      closeSync(this.#descriptor);
      this.#descriptor = null;
    }
  }

  /** The existing part of `length` bytes at `offset`. */
  #read(offset: number, length: number): Buffer {
    const { memory } = this.#first;
    if (memory !== null) {
      return memory.subarray(offset, offset + length);
    }
    const bytes = Buffer.alloc(this.#descriptor === null ? 0 : length);
    const got =
      this.#descriptor === null ? 0 : readSync(this.#descriptor, bytes, 0, length, offset);
    return bytes.subarray(0, got);
  }
}
