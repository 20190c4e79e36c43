/** The files of databases: how they are removed, synced and copied, and those that DuckDB cannot open. */
import { execFile } from "node:child_process";
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
} from "node:fs";
import { promisify } from "node:util";
import type { Bytes } from "../../model/base/units.js";
import { fileUnusable } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";

/** Of a DuckDB file. */
const HEADS_BYTES: Bytes = 3 * 4096;
const MAGIC_AT: Bytes = 8;

const execute = promisify(execFile);

/**
 * Whether DuckDB did not finish creating this file, for example on a full disk, so that it never held a row and cannot be
 * opened: without its three heads, or with empty ones, and without a log.
 *
 *     head 4 KiB: checksum (8), "DUCK" (4), ... | head 4 KiB | head 4 KiB | blocks
 */
export function isUnbegun(path: string): boolean {
  const size = (name: string) => statSync(name, { throwIfNoEntry: false })?.size ?? 0;
  if (size(path) > HEADS_BYTES || size(`${path}.wal`) > 0 || !existsSync(path)) {
    return false;
  }
  const bytes = readFileSync(path);
  return bytes.length < HEADS_BYTES || bytes.toString("latin1", MAGIC_AT, MAGIC_AT + 4) !== "DUCK";
}

/** Removes a database and its log. */
export function removeFile(path: string): void {
  for (const suffix of ["", ".wal"]) {
    rmSync(`${path}${suffix}`, { force: true });
  }
}

/** A file or a folder. */
export function syncFile(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Copies a database, and its log if it has one, into a folder. */
export async function copied(path: string, folder: string): Promise<void> {
  const log = sizeOf(`${path}.wal`) > 0 ? [`${path}.wal`] : [];
  try {
    await execute("cp", ["--", path, ...log, folder]);
  } catch (error) {
    const { code, message } = reasonOf(error);
    const why = message.trim().split("\n").at(-1) ?? message;
    throw fileUnusable(folder, "write", code === "ENOENT" ? "there is no program `cp`" : why);
  }
}

export function sizeOf(path: string): Bytes {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
