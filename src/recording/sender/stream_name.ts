import { createHash } from "node:crypto";
import { FILE_HEAD_BYTES, FRAME_HEAD_BYTES } from "../frames/frames.js";

/** Hex digits of a name. */
const DIGITS = 32;

/**
 * The number of bytes at a recording's start from which its name is computed: its header and first frame. 0: `bytes`
 * has fewer.
 */
export function namedBytes(bytes: Buffer): number {
  if (bytes.length < FILE_HEAD_BYTES + FRAME_HEAD_BYTES) {
    return 0;
  }
  const end = FILE_HEAD_BYTES + FRAME_HEAD_BYTES + bytes.readUInt32LE(FILE_HEAD_BYTES);
  return end <= bytes.length ? end : 0;
}

/** The name of the stream that begins with `bytes`: the same for a recording that is sent and for its file. */
export function streamName(bytes: Buffer): string {
  return createHash("sha256")
    .update(bytes.subarray(0, namedBytes(bytes)))
    .digest("hex")
    .slice(0, DIGITS);
}
