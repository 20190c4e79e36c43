import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { damagedInput, fileNotFound, fileUnusable } from "../model/errors/errors.js";
import { reasonOf } from "../model/errors/reason.js";
import { namedBytes, streamName } from "../recording/sender/stream_name.js";
import { wholeFrames } from "../recording/stream_reader.js";
import type { Ingest } from "./ingest/ingest.js";

const CHUNK_BYTES = 4 << 20;
const LONGEST_FRAME = 64 << 20;

/** Passes a recording's file to the server as if its recorder had sent it. @returns its stream, and how many bytes were
 * new. Throws TidemarkError. */
export async function loadRecording(
  path: string,
  ingest: Ingest,
): Promise<{ stream: string; bytes: number }> {
  let descriptor: number;
  try {
    descriptor = openSync(path, "r");
  } catch (error) {
    const { code, message } = reasonOf(error);
    throw code === "ENOENT" ? fileNotFound(path, "recording") : fileUnusable(path, "read", message);
  }
  try {
    if (!fstatSync(descriptor).isFile()) {
      throw fileUnusable(path, "read", "it is not a regular file");
    }
    const read = (offset: number, length: number) => readAt(descriptor, offset, length);
    const start = read(0, CHUNK_BYTES);
    wholeFrames(start, 0, path);
    if (namedBytes(start) === 0) {
      throw damagedInput(path, "it ends before its first frame");
    }
    const stream = streamName(start);
    let bytes = 0;
    for (let offset = 0; ; ) {
      let chunk = read(offset, CHUNK_BYTES);
      let whole = wholeFrames(chunk, offset, path);
      if (whole === 0 && chunk.length === CHUNK_BYTES) {
        chunk = read(offset, LONGEST_FRAME);
        whole = wholeFrames(chunk, offset, path);
      }
      if (whole === 0) {
        return { stream, bytes };
      }
      const { status, answer } = await ingest.accept(stream, offset, chunk.subarray(0, whole));
      if (status !== 200) {
        throw damagedInput(path, answer.error ?? `the server answers with status ${status}`);
      }
      bytes += whole;
      offset += whole;
    }
  } finally {
    closeSync(descriptor);
  }
}

function readAt(descriptor: number, offset: number, length: number): Buffer {
  const size = Math.max(0, Math.min(length, fstatSync(descriptor).size - offset));
  const bytes = Buffer.alloc(size);
  return bytes.subarray(0, readSync(descriptor, bytes, 0, size, offset));
}
