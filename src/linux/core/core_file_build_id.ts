/**
 * The build id of an ELF file or of its image in memory (the linker's --build-id): the note NT_GNU_BUILD_ID of
 * the owner "GNU", in hexadecimal. Two files with the same build id are the same.
 */
import type { ReadAt } from "../elf/elf_header.js";

const HEADER_BYTES = 64;
const PROGRAM_HEADER_BYTES = 56;
const LOAD = 1;
const NOTE = 4;
const NT_GNU_BUILD_ID = 3;
const MOST_HEADERS = 64;
const MOST_NOTE_BYTES = 4096;

/**
 * Returns null if it is not an ELF file, has no such note, or the note cannot be read.
 * @param readAt reads a file at its offset, or an image at the distance from the address of its first page.
 * These differ for notes: tools that change a library's headers (patchelf, and therefore most wheels) move the
 * notes.
 */
export function readBuildId(readAt: ReadAt, from: "file" | "image"): string | null {
  const all = headersOf(readAt) ?? Buffer.alloc(HEADER_BYTES);
  const headers = Array.from(
    { length: (all.length - HEADER_BYTES) / PROGRAM_HEADER_BYTES },
    (_, row) => all.subarray(HEADER_BYTES + row * PROGRAM_HEADER_BYTES),
  );
  const first = headers.find((header) => header.readUInt32LE(0) === LOAD);
  const base = first === undefined ? 0n : first.readBigUInt64LE(16) - first.readBigUInt64LE(8);
  for (const header of headers.filter((header) => header.readUInt32LE(0) === NOTE)) {
    const place = from === "file" ? header.readBigUInt64LE(8) : header.readBigUInt64LE(16) - base;
    const length = Math.min(Number(header.readBigUInt64LE(32)), MOST_NOTE_BYTES);
    const id = place < 0n ? null : idIn(readAt(Number(place), length));
    if (id !== null) {
      return id;
    }
  }
  return null;
}

/**
 * Whether an image was loaded from a file, according to the build id. If the image does not contain it, the
 * headers decide, because they include the sizes, offsets and addresses of all segments.
 */
export function isImageOf(image: ReadAt, file: ReadAt): boolean {
  const wanted = readBuildId(image, "image");
  if (wanted !== null) {
    return readBuildId(file, "file") === wanted;
  }
  const [ours, theirs] = [headersOf(image), headersOf(file)];
  return ours !== null && theirs !== null && ours.equals(theirs);
}

/** The ELF header and the program headers that follow it; null if it is not an ELF file or they cannot be read. */
function headersOf(readAt: ReadAt): Buffer | null {
  const head = readAt(0, HEADER_BYTES);
  if (head.length < HEADER_BYTES || head.readUInt32BE(0) !== 0x7f454c46 || head[4] !== 2) {
    return null;
  }
  const bytes = Math.min(head.readUInt16LE(56), MOST_HEADERS) * PROGRAM_HEADER_BYTES;
  const table = readAt(Number(head.readBigUInt64LE(32)), bytes);
  return table.length < bytes ? null : Buffer.concat([head, table]);
}

function idIn(notes: Buffer): string | null {
  for (let at = 0; at + 12 <= notes.length; ) {
    const nameBytes = notes.readUInt32LE(at);
    const dataBytes = notes.readUInt32LE(at + 4);
    const data = at + 12 + Math.ceil(nameBytes / 4) * 4;
    if (data + dataBytes > notes.length) {
      return null;
    }
    const owner = notes.toString("latin1", at + 12, at + 12 + nameBytes);
    if (notes.readUInt32LE(at + 8) === NT_GNU_BUILD_ID && owner === "GNU\0") {
      return notes.toString("hex", data, data + dataBytes);
    }
    at = data + Math.ceil(dataBytes / 4) * 4;
  }
  return null;
}
