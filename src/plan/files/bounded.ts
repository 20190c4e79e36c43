/** Reads untrusted files: never more than a limit, and never a pipe. */
import { closeSync, openSync, readFileSync, readSync, type Stats, statSync } from "node:fs";
import { formatBytes } from "../../model/base/numbers.js";
import { fileNotFound, fileUnusable, tooLarge } from "../../model/errors/errors.js";
import { notAModel } from "../../model/errors/plan_errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import type { JsonObject } from "../shape/config.js";

/** Largest configuration that is read: real ones have less than 1 MiB, an index of shards a few. */
const LARGEST_CONFIG = 64 * 2 ** 20;

/** @param kind what the user named, for the error. @throws TidemarkError TM-E003, TM-E004 */
export function statOf(path: string, kind = "file"): Stats {
  try {
    return statSync(path);
  } catch (error) {
    const { code, message } = reasonOf(error);
    throw code === "ENOENT" || code === "ENOTDIR" || path === ""
      ? fileNotFound(path, kind)
      : fileUnusable(path, "read", message);
  }
}

/** @throws TidemarkError TM-E004, TM-E008, TM-E085 */
export function readJson(path: string): JsonObject {
  const text = readBounded(path, LARGEST_CONFIG).toString("utf8");
  let value: unknown;
  try {
    value = parsed(text);
  } catch {
    throw notAModel(path, "it is not JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw notAModel(path, "it is not a JSON object");
  }
  return value as JsonObject;
}

const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?Infinity|NaN/g;

/** JSON as Python writes it: `Infinity` and `NaN` (Mamba 2's time_step_limit) are values, here null. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return JSON.parse(
      text.replace(STRING_OR_NUMBER, (word) => (word.startsWith('"') ? word : "null")),
    );
  }
}

/** The whole file, of at most `limit` bytes. Only regular files: a pipe would never end. */
export function readBounded(path: string, limit: number): Buffer {
  const stat = statOf(path);
  if (!stat.isFile()) {
    throw notAModel(path, "it is not a regular file");
  }
  if (stat.size > limit) {
    throw tooLarge(path, `${limit / 2 ** 20} MiB`);
  }
  try {
    return readFileSync(path);
  } catch (error) {
    throw fileUnusable(path, "read", reasonOf(error).message);
  }
}

/**
 * Tensors follow the header. A header alone is enough for a plan; a part of the tensors is a download that did not end.
 * @param dataBytes what the header names. @throws TidemarkError TM-E085
 */
export function requireWhole(path: string, headerBytes: number, dataBytes: number): void {
  const { size } = statOf(path);
  if (size > headerBytes && size < headerBytes + dataBytes) {
    throw notAModel(
      path,
      `it is cut off: its header names ${formatBytes(dataBytes)} of tensors, and ${formatBytes(size - headerBytes)} follow`,
    );
  }
}

/** `length` bytes from `offset`, or fewer where the file ends. */
export function readPiece(path: string, offset: number, length: number): Buffer {
  let descriptor: number;
  try {
    descriptor = openSync(path, "r");
  } catch (error) {
    throw fileUnusable(path, "read", reasonOf(error).message);
  }
  try {
    const piece = Buffer.alloc(length);
    let done = 0;
    while (done < length) {
      const count = readSync(descriptor, piece, done, length - done, offset + done);
      if (count === 0) {
        break;
      }
      done += count;
    }
    return piece.subarray(0, done);
  } catch (error) {
    throw fileUnusable(path, "read", reasonOf(error).message);
  } finally {
    closeSync(descriptor);
  }
}
