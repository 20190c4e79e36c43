import { readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { reasonOf } from "../../model/errors/reason.js";

/** Why /proc did not answer: the process has ended, or it belongs to another user. */
const EXPECTED = new Set([
  "ENOENT",
  "ESRCH",
  "EACCES",
  "EPERM",
  "EINVAL",
  "ENOTDIR",
  "EIO",
  "ENODEV",
]);

/** The file's text, or null if it has ended or is not readable. */
export function readText(path: string): string | null {
  return orNull(() => readFileSync(path, "utf8"));
}

/** The directory's names, or null if it has ended or is not readable. */
export function readNames(path: string): string[] | null {
  return orNull(() => readdirSync(path));
}

/** Names of the folders in a directory; empty if it has ended or is not readable. */
export function readFolders(path: string): string[] {
  const entries = orNull(() => readdirSync(path, { withFileTypes: true })) ?? [];
  return entries.flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
}

/** The link's target, or null if it has ended or is not readable. */
export function readLink(path: string): string | null {
  return orNull(() => readlinkSync(path));
}

/** The size that the kernel reports; null if the file is gone or hidden. */
export function readSize(path: string): number | null {
  return orNull(() => statSync(path).size);
}

/** The inode; null if the file is gone or hidden. */
export function readInode(path: string): number | null {
  return orNull(() => statSync(path).ino);
}

function orNull<Value>(read: () => Value): Value | null {
  try {
    return read();
  } catch (error) {
    if (EXPECTED.has(reasonOf(error).code)) {
      return null;
    }
    throw error;
  }
}
