import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { filePieces, OVERLAP_BYTES } from "./file_pieces.js";

const PIECE = 256 << 10;
const WORD = "release version 2.36";

it.each([
  0,
  1,
  OVERLAP_BYTES,
  PIECE - OVERLAP_BYTES,
  PIECE - WORD.length + 1,
  PIECE - 1,
  PIECE,
  PIECE + 1,
])("finds a text at byte %i, whole in one piece, and reads every byte", (at) => {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-pieces-"));
  const file = Buffer.alloc(2 * PIECE + 7, "x");
  file.write(WORD, at, "latin1");
  const path = join(folder, "file");
  writeFileSync(path, file);
  const descriptor = openSync(path, "r");
  try {
    const pieces = Array.from(filePieces(descriptor), (piece) => Buffer.from(piece));
    expect(pieces.some((piece) => piece.includes(WORD))).toBe(true);
    const fresh = pieces.map((piece, n) => (n === 0 ? piece : piece.subarray(OVERLAP_BYTES)));
    expect(Buffer.concat(fresh).equals(file)).toBe(true);
  } finally {
    closeSync(descriptor);
    rmSync(folder, { recursive: true });
  }
});
