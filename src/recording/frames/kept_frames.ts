import type { FrameSink } from "./frame_sink.js";

/** Frames that were written and not yet taken. */
export class KeptFrames implements FrameSink {
  readonly path = "a stream in memory";
  readonly failure = null;
  readonly memory = null;
  #frames: Buffer[] = [];

  clear(): void {
    this.#frames = [];
  }

  append(frames: Buffer): void {
    this.#frames.push(frames);
  }

  appendAfterFailure(): void {}

  discard(): void {}

  close(): void {}

  peek(): Buffer {
    return Buffer.concat(this.#frames);
  }

  take(): Buffer {
    const all = this.peek();
    this.#frames = [];
    return all;
  }
}
