/** Which files a command may overwrite: those of the kind that it writes, made by Tidemark. */
import { closeSync, openSync, readFileSync, readSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import type { FormatMark } from "../../formats/format.js";
import { type FileKind, identifyFile } from "../../inspect/index.js";
import { fileExists } from "../../model/errors/file_errors.js";
import { statOf } from "./files.js";

/** What may be overwritten. */
export interface Replacing {
  /** `--force`: whatever is there. */
  readonly force?: boolean | undefined;
  /** Whether a file is of the kind that is to be written, and Tidemark's. */
  readonly isOwn: (path: string) => boolean;
}

/** Of the kinds of file that hold their maker's name. */
export function ownKind(kind: FileKind): Replacing["isOwn"] {
  return (path) => identifyFile(path) === kind;
}

/** Of an export; `mark` null: a format that nobody's name fits in. */
export function ownExport(mark: FormatMark | null): Replacing["isOwn"] {
  return (path) => mark !== null && holdsMark(path, mark);
}

/** Throws TM-E017 where something is at `path` that may not be overwritten. An empty file may: nothing is lost. */
export function requireReplaceable(path: string, { force, isOwn }: Replacing): void {
  const existing = statOf(path);
  if (force === true || !existing?.isFile() || existing.size === 0) {
    return;
  }
  let own = false;
  try {
    own = isOwn(path);
  } catch {
    // What cannot be read, or decompressed, is not known to be Tidemark's.
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
    // A piece begins with the end of the one before: the text may lie across both.
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
