/** A model's folder, or one file of it, as a shape. Nothing is downloaded, and weights are not read: headers alone. */
import { closeSync, openSync, readFileSync, readSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileNotFound, fileUnusable, tooLarge } from "../../model/errors/errors.js";
import { notAModel } from "../../model/errors/plan_errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import type { JsonObject } from "../shape/config.js";
import type { ModelShape } from "../shape/model_shape.js";
import { readShape } from "../shape/read_shape.js";

/** Largest configuration that is read: real ones have less than 1 MiB. */
const LARGEST_CONFIG = 16 * 2 ** 20;

/** @throws TidemarkError TM-E003, TM-E004, TM-E008, TM-E085 */
export function readModel(path: string): ModelShape {
  const stat = statOf(path);
  const isFolder = stat.isDirectory();
  const file = isFolder ? configIn(path) : path;
  const name = basename(resolve(isFolder ? path : dirname(path)));
  return readShape(readJson(file), name, file);
}

function statOf(path: string) {
  try {
    return statSync(path);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    throw code === "ENOENT" || code === "ENOTDIR"
      ? fileNotFound(path, "model folder")
      : fileUnusable(path, "read", reasonOf(error).message);
  }
}

function configIn(folder: string): string {
  const file = join(folder, "config.json");
  try {
    statSync(file);
    return file;
  } catch {
    throw notAModel(folder, "it holds no config.json");
  }
}

/** @throws TidemarkError TM-E004, TM-E008, TM-E085 */
export function readJson(path: string): JsonObject {
  const text = readBounded(path, LARGEST_CONFIG).toString("utf8");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw notAModel(path, "it is not JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw notAModel(path, "it holds no JSON object");
  }
  return value as JsonObject;
}

/** The whole file, of at most `limit` bytes. Only regular files: a pipe would never end. */
export function readBounded(path: string, limit: number): Buffer {
  const stat = statOf(path);
  if (!stat.isFile()) {
    throw notAModel(path, "it is no regular file");
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
