/**
 * The build id of an ELF file or of its image in memory (the linker's --build-id): the note NT_GNU_BUILD_ID
 * of the owner "GNU", in hexadecimal. Two files with one id are the same.
 */
import type { ReadAt } from "./elf_header.js";

const PROGRAM_HEADER_BYTES = 56;
const NOTE = 4;
const NT_GNU_BUILD_ID = 3;
const MOST_HEADERS = 64;
const MOST_NOTE_BYTES = 4096;

/** null: no ELF file, no such note, or it is not there to read. Offsets are the file's: notes lie in the
 * first page, which is mapped as it stands in the file. */
export function readBuildId(readAt: ReadAt): string | null {
  const head = readAt(0, 64);
  if (head.length < 64 || head.readUInt32BE(0) !== 0x7f454c46 || head[4] !== 2) {
    return null;
  }
  const count = Math.min(head.readUInt16LE(56), MOST_HEADERS);
  const table = readAt(Number(head.readBigUInt64LE(32)), count * PROGRAM_HEADER_BYTES);
  for (let at = 0; at + PROGRAM_HEADER_BYTES <= table.length; at += PROGRAM_HEADER_BYTES) {
    if (table.readUInt32LE(at) !== NOTE) {
      continue;
    }
    const length = Math.min(Number(table.readBigUInt64LE(at + 32)), MOST_NOTE_BYTES);
    const id = idIn(readAt(Number(table.readBigUInt64LE(at + 8)), length));
    if (id !== null) {
      return id;
    }
  }
  return null;
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
