import {
  closeSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  statSync,
} from "node:fs";
import type { Bytes } from "../../model/base/units.js";
import { reasonOf } from "../../model/errors/reason.js";

/** Why /proc did not answer: the process has ended, it belongs to another user, or a link is longer than a page. */
const EXPECTED = new Set([
  "ENOENT",
  "ESRCH",
  "EACCES",
  "EPERM",
  "EINVAL",
  "ENOTDIR",
  "EIO",
  "ENODEV",
  "ENAMETOOLONG",
]);

const PIECE_BYTES: Bytes = 65_536;

/** The file's text, or null if it has ended or is not readable. */
export function readText(path: string): string | null {
  return orNull(() => readFileSync(path, "utf8"));
}

/**
 * The start of a file that a program can make as long as it wants (its command line, its environment); null as for
 * {@link readText}.
 */
export function readTextStart(path: string, most: Bytes): string | null {
  return orNull(() => {
    const descriptor = openSync(path, "r");
    try {
      const pieces: Buffer[] = [];
      let length = 0;
      while (length < most) {
        const piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, most - length));
        const got = readSync(descriptor, piece, 0, piece.length, null);
        if (got === 0) {
          break;
        }
        pieces.push(piece.subarray(0, got));
        length += got;
      }
      return Buffer.concat(pieces).toString("utf8");
    } finally {
      closeSync(descriptor);
    }
  });
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

/** The result; null if the process has ended, or its files are not readable. */
export function orNull<Value>(read: () => Value): Value | null {
  try {
    return read();
  } catch (error) {
    if (EXPECTED.has(reasonOf(error).code)) {
      return null;
    }
    throw error;
  }
}
