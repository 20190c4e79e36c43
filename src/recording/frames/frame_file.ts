import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { damagedInput, fileNotFound, fileUnusable, notOurs } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import {
  decodeFileHead,
  decodeFrameHead,
  decodePayload,
  FILE_HEAD_BYTES,
  FRAME_HEAD_BYTES,
  type FrameHead,
  frameIsWhole,
  MAX_PAYLOAD_BYTES,
} from "./frames.js";

/** A recording's bytes: those of the file, or those in memory if the file could not take all of them. */
interface RecordingSource {
  readonly path: string;
  readonly memory: Buffer | null;
}

/** The position of a whole frame in the file. */
export interface FramePlace {
  readonly offset: number;
  readonly head: FrameHead;
}

interface FrameScan {
  readonly version: number;
  /** Offset just after the last whole frame. */
  readonly endOffset: number;
  /** Why the scan stopped before the end of the file; null if it did not. */
  readonly stopped: { readonly kind: "cut" | "damaged"; readonly detail: string } | null;
}

/** Reads the file's whole frames in order. `visit` throws if a frame is invalid: the scan ends
 * before it, with what `refusal` makes of the error. Throws TidemarkError if the file is not a recording. */
export function scanFrames(
  source: RecordingSource,
  visit: (place: FramePlace, payload: Buffer, version: number) => void,
  refusal: (error: unknown) => string,
): FrameScan {
  return withBytes(source, (readAt, size) => {
    const version = decodeFileHead(readAt(0, FILE_HEAD_BYTES), source.path);
    let offset = FILE_HEAD_BYTES;
    const stop = (kind: "cut" | "damaged", detail: string): FrameScan => ({
      version,
      endOffset: offset,
      stopped: { kind, detail },
    });
    while (offset < size) {
      const headBytes = readAt(offset, FRAME_HEAD_BYTES);
      if (headBytes.length < FRAME_HEAD_BYTES) {
        return stop("cut", `the frame at byte ${offset} is truncated`);
      }
      const head = decodeFrameHead(headBytes);
      if (head.length > MAX_PAYLOAD_BYTES) {
        return stop("damaged", `the frame at byte ${offset} is garbage`);
      }
      const payload = readAt(offset + FRAME_HEAD_BYTES, head.length);
      if (payload.length < head.length) {
        return stop("cut", `the frame at byte ${offset} is truncated`);
      }
      if (!frameIsWhole(headBytes, payload)) {
        return stop("damaged", `the frame at byte ${offset} does not match its checksum`);
      }
      try {
        visit({ offset, head }, payload, version);
      } catch (error) {
        return stop("damaged", `the frame at byte ${offset} is invalid: ${refusal(error)}`);
      }
      offset += FRAME_HEAD_BYTES + head.length;
    }
    return { version, endOffset: offset, stopped: null };
  });
}

/** The batch of one frame, read again. Throws TidemarkError if the file has changed in the meantime. */
export function readFrame(source: RecordingSource, place: FramePlace): unknown {
  return withBytes(source, (readAt) => {
    const bytes = readAt(place.offset, FRAME_HEAD_BYTES + place.head.length);
    const whole =
      bytes.length === FRAME_HEAD_BYTES + place.head.length &&
      bytes.readUInt32LE(16) === place.head.checksum &&
      frameIsWhole(bytes.subarray(0, FRAME_HEAD_BYTES), bytes.subarray(FRAME_HEAD_BYTES));
    if (!whole) {
      throw damagedInput(source.path, "it changed while it was being read");
    }
    return decodePayload(place.head, bytes.subarray(FRAME_HEAD_BYTES), source.path);
  });
}

/** Returns the existing part of `length` bytes at `offset`. */
type ReadAt = (offset: number, length: number) => Buffer;

function withBytes<Result>(
  { path, memory }: RecordingSource,
  use: (readAt: ReadAt, size: number) => Result,
): Result {
  if (memory) {
    return use((offset, length) => memory.subarray(offset, offset + length), memory.length);
  }
  let descriptor: number;
  try {
    descriptor = openSync(path, "r");
  } catch (error) {
    const { code, message } = reasonOf(error);
    throw code === "ENOENT" ? fileNotFound(path, "recording") : fileUnusable(path, "read", message);
  }
  try {
    const stats = fstatSync(descriptor);
    if (!stats.isFile()) {
      throw notOurs(path, "a Tidemark recording");
    }
    return use((offset, length) => readFileAt(descriptor, offset, length), stats.size);
  } finally {
    closeSync(descriptor);
  }
}

function readFileAt(descriptor: number, offset: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  let got = 0;
  while (got < length) {
    const more = readSync(descriptor, bytes, got, length - got, offset + got);
    if (more === 0) {
      break;
    }
    got += more;
  }
  return bytes.subarray(0, got);
}
