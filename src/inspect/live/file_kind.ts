/** The kind of a file by its content, because names are unreliable and many tools write `.json` and `.gz`. */
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { gunzipSync, constants as zlib } from "node:zlib";
import { Decompress } from "fzstd";
import { fileNotFound, fileUnusable } from "../../model/errors/errors.js";

export type FileKind =
  /** `tidemark run`, `attach`, `import`. */
  | "recording"
  /** `tidemark heap --save`. */
  | "saved heap"
  /** A pool file that an agent writes without a recorder. */
  | "pool"
  /** An HTML page that Tidemark wrote. */
  | "page"
  /** A JSON document that Tidemark wrote. */
  | "document"
  | "core"
  | "program"
  /** A pickle: a snapshot of PyTorch's allocator, or any other. */
  | "pickle"
  | "pprof"
  | "speedscope"
  | "zip"
  | "DuckDB"
  | "Parquet"
  | "SQLite"
  | "Python"
  /** A log with a device out-of-memory message. */
  | "out-of-memory log"
  | "JSON"
  | "text"
  | "empty"
  | "cut off"
  | "folder"
  | "special"
  | "unknown";

const HEAD_BYTES = 1 << 16;
const TAIL_BYTES = 1 << 20;
/** Type of an ELF file (elf(5)). */
const ET_CORE = 4;
const OUT_OF_MEMORY = /out of memory|OutOfMemoryError|RESOURCE_EXHAUSTED|CUDA_ERROR_OUT_OF_MEMORY/i;

/** Reads the file's first bytes, also inside gzip and Zstandard. Throws TM-E003, TM-E004. */
export function identifyFile(path: string): FileKind {
  let descriptor: number;
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    // A socket cannot be opened.
    if (code === "ENXIO") {
      return "special";
    }
    throw code === "ENOENT" ? fileNotFound(path) : fileUnusable(path, "read", message);
  }
  try {
    const stats = fstatSync(descriptor);
    if (!stats.isFile()) {
      return stats.isDirectory() ? "folder" : "special";
    }
    const head = bytesAt(descriptor, 0, HEAD_BYTES);
    const tail = () => bytesAt(descriptor, Math.max(0, stats.size - TAIL_BYTES), TAIL_BYTES);
    return head.length === 0 ? "empty" : kindOf(head, path, tail);
  } catch (error) {
    throw fileUnusable(path, "read", (error as Error).message);
  } finally {
    closeSync(descriptor);
  }
}

function kindOf(head: Buffer, path: string, tail: () => Buffer): FileKind {
  const inner = decompressed(head);
  if (inner !== null) {
    return innerKind(inner);
  }
  const binary = binaryKind(head);
  return binary ?? textKind(head, path, tail);
}

/** Kinds of content in a compressed file. */
function innerKind(inner: Buffer): FileKind {
  return inner.length === 0 ? "cut off" : (binaryKind(inner) ?? textKind(inner, "", () => inner));
}

/** null: text. */
function binaryKind(head: Buffer): FileKind | null {
  const starts = (text: string, at = 0) =>
    head.subarray(at, at + text.length).equals(Buffer.from(text, "latin1"));
  if (starts("TIDEMARK")) {
    return "recording";
  }
  if (starts("TIDEHEAP")) {
    return "saved heap";
  }
  if (starts("TMRKPOOL")) {
    return "pool";
  }
  if (starts("\x7fELF")) {
    const type = head[5] === 2 ? head.readUInt16BE(16) : head.readUInt16LE(16);
    return type === ET_CORE ? "core" : "program";
  }
  if (head[0] === 0x80 && (head[1] as number) <= 5) {
    return "pickle";
  }
  if (starts("PK\x03\x04")) {
    return "zip";
  }
  if (starts("DUCK", 8)) {
    return "DuckDB";
  }
  if (starts("PAR1")) {
    return "Parquet";
  }
  if (starts("SQLite format 3\0")) {
    return "SQLite";
  }
  if (!head.includes(0)) {
    return null;
  }
  // It begins with field 1, a message with the types of its samples (google/pprof, proto/profile.proto).
  return head[0] === 0x0a ? "pprof" : "unknown";
}

function textKind(head: Buffer, path: string, tail: () => Buffer): FileKind {
  const text = head.toString("utf8");
  if (/^\s*<!doctype html/i.test(text)) {
    return /<meta name="generator" content="Tidemark"/.test(text) ? "page" : "text";
  }
  if (/^\s*[{[]/.test(text)) {
    const schema = /"(?:\$schema|schema)"\s*:\s*"([^"]*)"/.exec(text)?.[1] ?? "";
    if (schema.startsWith("tidemark.")) {
      return "document";
    }
    return schema.includes("speedscope") ? "speedscope" : "JSON";
  }
  if (/\.pyw?$/i.test(path) || /^#!.*\bpython/.test(text)) {
    return "Python";
  }
  return OUT_OF_MEMORY.test(text) || OUT_OF_MEMORY.test(tail().toString("utf8"))
    ? "out-of-memory log"
    : "text";
}

/** The start of a compressed file's content; null if it is compressed by neither. */
function decompressed(head: Buffer): Buffer | null {
  try {
    if (head[0] === 0x1f && head[1] === 0x8b) {
      return gunzipSync(head, { finishFlush: zlib.Z_SYNC_FLUSH });
    }
    if (head.length >= 4 && head.readUInt32LE(0) === 0xfd2fb528) {
      return unzstd(head);
    }
  } catch {
    return Buffer.alloc(0); // Damaged from its start.
  }
  return null;
}

function unzstd(head: Buffer): Buffer {
  const pieces: Uint8Array[] = [];
  const stream = new Decompress((piece) => pieces.push(piece));
  stream.push(head);
  return Buffer.concat(pieces);
}

function bytesAt(descriptor: number, offset: number, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  return bytes.subarray(0, readSync(descriptor, bytes, 0, length, offset));
}
