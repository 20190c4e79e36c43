/** Which files a command may overwrite: those of the kind that it writes, if Tidemark wrote them. */
import { closeSync, openSync, readFileSync, readSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import type { FormatMark } from "../../formats/format.js";
import { type FileKind, identifyFile } from "../../inspect/index.js";
import { fileExists } from "../../model/errors/file_errors.js";
import { statOf } from "./files.js";

/** What may be overwritten. */
export interface Replacing {
  /** `--force`: any file. */
  readonly force?: boolean | undefined;
  /** Whether a file is of the kind to be written, and was written by Tidemark. */
  readonly isOwn: (path: string) => boolean;
}

/** Checks for file kinds that contain the name of the program that wrote them. */
export function ownKind(kind: FileKind): Replacing["isOwn"] {
  return (path) => identifyFile(path) === kind;
}

/** Checks for an export; `mark` is null if the format cannot contain a program's name. */
export function ownExport(mark: FormatMark | null): Replacing["isOwn"] {
  return (path) => mark !== null && holdsMark(path, mark);
}

/**
 * Throws TM-E017 if `path` exists and may not be overwritten. An empty file may be overwritten, because nothing
 * is lost.
 */
export function requireReplaceable(path: string, { force, isOwn }: Replacing): void {
  const existing = statOf(path);
  if (force === true || !existing?.isFile() || existing.size === 0) {
    return;
  }
  let own = false;
  try {
    own = isOwn(path);
  } catch {
    // An unreadable file cannot be recognized as Tidemark's.
  }
  if (!own) {
    throw fileExists(path);
  }
}

const PIECE_BYTES = 1 << 20;
const HEAD_BYTES = 1024;
const LARGEST_UNPACKED = 1 << 30;

function holdsMark(path: string, { head, text }: FormatMark): boolean {
  const descriptor = openSync(path, "r");
  try {
    const piece = Buffer.alloc(PIECE_BYTES);
    const first = piece.subarray(0, readSync(descriptor, piece));
    if (first[0] === 0x1f && first[1] === 0x8b) {
      const content = gunzipSync(readFileSync(path), { maxOutputLength: LARGEST_UNPACKED });
      return head.test(content.toString("latin1", 0, HEAD_BYTES)) && content.includes(text);
    }
    if (!head.test(first.toString("latin1", 0, HEAD_BYTES))) {
      return false;
    }
    // Each piece begins with the end of the previous one, since the text may span both.
    let before: Buffer = Buffer.alloc(0);
    for (let length = first.length; length > 0; length = readSync(descriptor, piece)) {
      const joined = Buffer.concat([before, piece.subarray(0, length)]);
      if (joined.includes(text)) {
        return true;
      }
      before = joined.subarray(Math.max(0, joined.length - text.length));
    }
    return false;
  } finally {
    closeSync(descriptor);
  }
}
