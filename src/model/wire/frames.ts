/**
 * How a recording is sent to a server while it grows.
 *
 *     POST /api/v1/frames?stream=STREAM&offset=N     application/octet-stream: the recording's bytes from N on
 *     200 {"nextOffset": M}                          everything below M is stored and synced to disk
 *     409 {"nextOffset": M}                          the stream is shorter than N: continue from M
 *     409 {"error": ...}                             these bytes differ from what is stored
 *     400, 413, 401, 503 {"error": ...}
 *
 * A body holds whole frames; at offset 0 the file's head comes first.
 */

/** Answers of `POST /api/v1/frames`. */
export interface FramesAnswer {
  /** The offset from which the sender continues; absent if it must not continue. */
  readonly nextOffset?: number;
  /** One line for people. */
  readonly error?: string;
}

export const FRAMES_PATH = "/api/v1/frames";
/** Name of a stream: hex digits of a SHA-256 of the recording's beginning. */
export const STREAM_NAME = /^[0-9a-f]{32}$/;
/** Bytes of one request. */
export const MOST_FRAMES_BYTES = 32 << 20;
