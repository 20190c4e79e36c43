/** Where the frames of a recording go. */
import type { TidemarkError } from "../../model/errors/errors.js";

/**
 * Takes the bytes of a recording in order: a file ({@link FileSink}), a spool or a socket. A destination that fails
 * does not end the recording: the sink keeps everything in memory from then on, and `failure` gives the reason.
 */
export interface FrameSink {
  /** The destination's name, for messages. */
  readonly path: string;
  /** Why the destination takes no more bytes; null while it does. */
  readonly failure: TidemarkError | null;
  /** The whole recording if the destination does not hold it, else null. */
  readonly memory: Buffer | null;
  /** Removes the destination's earlier contents; called once, before the first {@link append}. */
  clear(): void;
  /** Appends whole frames. Never throws. */
  append(frames: Buffer): void;
  /** Tries to append the recording's last frames to a destination that has failed: a shorter frame may still fit. */
  appendAfterFailure(frames: Buffer): void;
  /** Nothing was recorded: closes the destination, and removes it if the sink made it. */
  discard(): void;
  close(): void;
}
