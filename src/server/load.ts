import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import type { Bytes, Millis } from "../model/base/units.js";
import { damagedInput, fileNotFound, fileUnusable } from "../model/errors/errors.js";
import { reasonOf } from "../model/errors/reason.js";
import { namedBytes, streamName } from "../recording/sender/stream_name.js";
import { wholeFrames } from "../recording/stream_reader.js";
import type { Ingest } from "./ingest/ingest.js";

const CHUNK_BYTES = 4 << 20;
const LONGEST_FRAME = 64 << 20;
const FOLLOW_MS: Millis = 1_000;

/** What the server has of a recording's file. */
export interface Loaded {
  readonly stream: string;
  readonly bytes: Bytes;
  /** Bytes after these that do not form whole frames. */
  readonly otherBytes: Bytes;
}

/**
 * Passes a recording's file to the server as if its recorder had sent it. `before`: what was loaded of it, if it has grown
 * since. Throws TidemarkError.
 */
export async function loadRecording(
  path: string,
  ingest: Ingest,
  before?: Loaded,
): Promise<Loaded> {
  let descriptor: number;
  try {
    descriptor = openSync(path, "r");
  } catch (error) {
    const { code, message } = reasonOf(error);
    throw code === "ENOENT" ? fileNotFound(path, "recording") : fileUnusable(path, "read", message);
  }
  try {
    const file = fstatSync(descriptor);
    if (!file.isFile()) {
      throw fileUnusable(path, "read", "it is not a regular file");
    }
    if (before !== undefined && file.size === before.bytes + before.otherBytes) {
      return before;
    }
    const read = (offset: number, length: number) => readAt(descriptor, offset, length);
    const stream = streamOf(read(0, CHUNK_BYTES), path);
    if (before !== undefined && (stream !== before.stream || file.size < before.bytes)) {
      throw fileUnusable(
        path,
        "read",
        "another file took its place; open it again to see that one",
      );
    }
    for (let offset = before?.bytes ?? 0; ; ) {
      let chunk = read(offset, CHUNK_BYTES);
      let whole = wholeFrames(chunk, offset, path);
      if (whole === 0 && chunk.length === CHUNK_BYTES) {
        chunk = read(offset, LONGEST_FRAME);
        whole = wholeFrames(chunk, offset, path);
      }
      if (whole === 0) {
        return { stream, bytes: offset, otherBytes: Math.max(0, file.size - offset) };
      }
      const { status, answer } = await ingest.accept(stream, offset, chunk.subarray(0, whole));
      if (status !== 200) {
        throw damagedInput(path, answer.error ?? `the server answers with status ${status}`);
      }
      offset += whole;
    }
  } finally {
    closeSync(descriptor);
  }
}

function streamOf(start: Buffer, path: string): string {
  wholeFrames(start, 0, path);
  if (namedBytes(start) === 0) {
    throw damagedInput(path, "it ends before its first frame");
  }
  return streamName(start);
}

/**
 * Loads what is added to recordings, by path. One that can no longer be read is not followed any further. The returned
 * function ends it, and resolves once nothing is being loaded.
 */
export function followRecordings(
  recordings: ReadonlyMap<string, Loaded>,
  ingest: Ingest,
  warn: (text: string) => void,
): () => Promise<void> {
  const followed = new Map(recordings);
  const stopped = new AbortController();
  const follow = async () => {
    while (await pause(FOLLOW_MS, true, { signal: stopped.signal }).catch(() => false)) {
      for (const [path, before] of followed) {
        try {
          followed.set(path, await loadRecording(path, ingest, before));
        } catch (error) {
          followed.delete(path);
          warn(`what follows in a recording is not shown: ${reasonOf(error).message}`);
        }
      }
    }
  };
  const following = follow();
  return () => {
    stopped.abort();
    return following;
  };
}

function readAt(descriptor: number, offset: number, length: number): Buffer {
  const size = Math.max(0, Math.min(length, fstatSync(descriptor).size - offset));
  const bytes = Buffer.alloc(size);
  return bytes.subarray(0, readSync(descriptor, bytes, 0, size, offset));
}
