/** A foreign file, read and unpacked in bounded memory. */
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { Decompress } from "fzstd";
import { fileNotFound, fileUnusable, tooLarge } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import {
  ForeignFault,
  type ForeignFile,
  MOST_CONTENT_BYTES,
  MOST_JSON_BYTES,
  type Packing,
} from "./importer.js";
import { decodeLz4 } from "./lz4.js";

const HEAD_BYTES = 1 << 16;
const PIECE_BYTES = 1 << 20;
/** A tool compresses its file once (memray, heaptrack, torch), and a user once more. An archive that contains itself has no end. */
const MOST_PACKINGS = 4;
/** A Zstandard frame announces a window that its reader allocates; the format's tools use at most 128 MiB. */
const LARGEST_WINDOW = 2 ** 27;

/** Throws TM-E003 and TM-E004 for the file, TM-E008 if it or its content is too large, ForeignFault if it is damaged. */
export function readForeignFile(path: string): ForeignFile {
  const { bytes, writtenMs } = readWhole(path);
  const packings: Packing[] = [];
  let content = bytes;
  for (let packing = packingOf(bytes); packing !== null; packing = packingOf(content)) {
    if (packings.length === MOST_PACKINGS) {
      throw new ForeignFault(`it is compressed more than ${MOST_PACKINGS} times`);
    }
    packings.push(packing);
    content = unpack(path, content, packing);
  }
  content = plainText(content);
  return {
    path,
    bytes: content,
    packings,
    head: content.toString("latin1", 0, HEAD_BYTES),
    writtenMs,
  };
}

function readWhole(path: string): { bytes: Buffer; writtenMs: number } {
  let descriptor: number;
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const { code, message } = reasonOf(error);
    throw code === "ENOENT" ? fileNotFound(path) : fileUnusable(path, "read", message);
  }
  try {
    const stats = fstatSync(descriptor);
    if (!stats.isFile()) {
      throw fileUnusable(path, "read", "it is not a regular file");
    }
    if (stats.size > MOST_CONTENT_BYTES) {
      throw tooMuch(path);
    }
    const bytes = Buffer.alloc(stats.size);
    let length = 0;
    for (let read = 1; read > 0 && length < bytes.length; length += read) {
      read = readSync(
        descriptor,
        bytes,
        length,
        Math.min(PIECE_BYTES, bytes.length - length),
        null,
      );
    }
    return { bytes: bytes.subarray(0, length), writtenMs: Math.round(stats.mtimeMs) };
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Text as the tools write it on Linux: UTF-8 without a byte order mark, lines that end in LF. A shell of Windows and some
 * editors store UTF-16, a mark, or CRLF. Other content stays as it is.
 */
function plainText(content: Buffer): Buffer {
  if (content.length > MOST_JSON_BYTES) {
    return content;
  }
  const isBigEndian = content[0] === 0xfe && content[1] === 0xff;
  if (isBigEndian || (content[0] === 0xff && content[1] === 0xfe)) {
    const encoding = isBigEndian ? "utf-16be" : "utf-16le";
    return withLineFeeds(Buffer.from(new TextDecoder(encoding).decode(content)));
  }
  const hasMark = content[0] === 0xef && content[1] === 0xbb && content[2] === 0xbf;
  return withLineFeeds(hasMark ? content.subarray(3) : content);
}

/** Only if every line of the first bytes ends in CRLF and they are text. */
function withLineFeeds(content: Buffer): Buffer {
  const head = content.toString("latin1", 0, HEAD_BYTES);
  return !head.includes("\r\n") || head.includes("\0") || /(?:^|[^\r])\n/.test(head)
    ? content
    : Buffer.from(content.toString("latin1").replaceAll("\r\n", "\n"), "latin1");
}

function packingOf(bytes: Buffer): Packing | null {
  const magic = bytes.length >= 4 ? bytes.readUInt32LE(0) : 0;
  if (bytes[0] === 0x1f && bytes[1] === 0x8b) {
    return "gzip";
  }
  return magic === 0xfd2fb528 ? "zstd" : magic === 0x184d2204 ? "lz4" : null;
}

/** First bytes of files that other compressors write, and the command that unpacks them. */
const OTHER_PACKINGS: Readonly<Record<string, string>> = {
  "\xfd7zXZ\0": "xz -dk",
  BZh: "bzip2 -dk",
  "PK\x03\x04": "unzip",
};

/** The command that unpacks a file whose compression is not read here; undefined for other files. */
export function unpackCommand({ head, packings }: ForeignFile): string | undefined {
  const mark = Object.keys(OTHER_PACKINGS).find((bytes) => head.startsWith(bytes));
  return mark === undefined || packings.length > 0 ? undefined : OTHER_PACKINGS[mark];
}

function unpack(path: string, bytes: Buffer, packing: Packing): Buffer {
  if (packing === "gzip") {
    try {
      return gunzipSync(bytes, { maxOutputLength: MOST_CONTENT_BYTES });
    } catch (error) {
      if (reasonOf(error).code === "ERR_BUFFER_TOO_LARGE") {
        throw tooMuch(path);
      }
      throw new ForeignFault("its gzip data is cut off or damaged");
    }
  }
  if (packing === "zstd") {
    return unpackZstandard(path, bytes);
  }
  return decodeLz4(bytes, () => tooMuch(path));
}

function unpackZstandard(path: string, bytes: Buffer): Buffer {
  if (windowOf(bytes) > LARGEST_WINDOW) {
    throw tooMuch(path);
  }
  const pieces: Uint8Array[] = [];
  let total = 0;
  let ended = false;
  const stream = new Decompress((piece, final) => {
    total += piece.length;
    if (total > MOST_CONTENT_BYTES) {
      throw tooMuch(path);
    }
    pieces.push(piece);
    ended ||= final === true;
  });
  try {
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
      stream.push(bytes.subarray(at, at + PIECE_BYTES), at + PIECE_BYTES >= bytes.length);
    }
  } catch (error) {
    if (error instanceof Error && error.name === "TidemarkError") {
      throw error;
    }
    throw new ForeignFault("its Zstandard data is cut off or damaged");
  }
  if (!ended) {
    throw new ForeignFault("its Zstandard data is cut off");
  }
  return Buffer.concat(pieces, total);
}

/** Window size that the first frame announces (RFC 8878, 3.1.1.1.2). */
function windowOf(bytes: Buffer): number {
  const flags = bytes[4] ?? 0;
  if ((flags & 0x20) !== 0) {
    const sizeCode = flags >> 6;
    const at = 5 + ([0, 1, 2, 4][flags & 3] ?? 0);
    const length = [1, 2, 4, 8][sizeCode] ?? 1;
    return bytes.length < at + length ? 0 : contentSize(bytes, at, length);
  }
  const code = bytes[5] ?? 0;
  const base = 2 ** (10 + (code >> 3));
  return base + (base / 8) * (code & 7);
}

function contentSize(bytes: Buffer, at: number, length: number): number {
  switch (length) {
    case 1:
      return bytes.readUInt8(at);
    case 2:
      return bytes.readUInt16LE(at) + 256;
    case 4:
      return bytes.readUInt32LE(at);
    default:
      return Number(bytes.readBigUInt64LE(at));
  }
}

function tooMuch(path: string): Error {
  return tooLarge(path, "1 GiB of unpacked content");
}
