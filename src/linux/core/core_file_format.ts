/** The headers of core files; core_file.ts describes the layout. */
import { readSync } from "node:fs";
import type { Address, Bytes } from "../../model/base/units.js";
import { damagedInput, notOurs } from "../../model/errors/errors.js";

const HEADER_BYTES = 64;
const PROGRAM_HEADER_BYTES = 56;
const SECTION_HEADER_INFO = 44;
const TYPE_CORE = 4;
const MANY_HEADERS = 0xffff;
const MOST_HEADERS = 1 << 20;

interface ProgramHeader {
  readonly type: number;
  readonly flags: number;
  readonly offset: Bytes;
  readonly address: Address;
  readonly inFile: Bytes;
  readonly inMemory: Bytes;
}

export function readHeaders(descriptor: number, path: string, size: Bytes): ProgramHeader[] {
  const head = readAt(descriptor, 0, HEADER_BYTES);
  const isElf = head.length >= 20 && head.readUInt32BE(0) === 0x7f454c46;
  if (!isElf || head[4] !== 2 || head[5] !== 1 || head.readUInt16LE(16) !== TYPE_CORE) {
    throw notOurs(path, "a core file of a 64-bit program");
  }
  if (head.length < HEADER_BYTES || head.readUInt16LE(54) !== PROGRAM_HEADER_BYTES) {
    throw damagedInput(path, "it ends within its header");
  }
  const at = Number(head.readBigUInt64LE(32));
  let count = head.readUInt16LE(56);
  if (count === MANY_HEADERS) {
    // There are so many that the first section header holds the number.
    const section = readAt(descriptor, Number(head.readBigUInt64LE(40)), HEADER_BYTES);
    count = section.length < HEADER_BYTES ? 0 : section.readUInt32LE(SECTION_HEADER_INFO);
  }
  const table =
    count > 0 && count <= MOST_HEADERS && at < size
      ? readAt(descriptor, at, count * PROGRAM_HEADER_BYTES)
      : Buffer.alloc(0);
  if (table.length < count * PROGRAM_HEADER_BYTES || count === 0) {
    throw damagedInput(path, "its program headers are truncated");
  }
  return Array.from({ length: count }, (_, n) => {
    const from = n * PROGRAM_HEADER_BYTES;
    const word = (offset: Bytes) => Number(table.readBigUInt64LE(from + offset));
    return {
      type: table.readUInt32LE(from),
      flags: table.readUInt32LE(from + 4),
      offset: word(8),
      address: word(16),
      inFile: word(32),
      inMemory: word(40),
    };
  });
}

export function readAt(descriptor: number, offset: Bytes, length: Bytes): Buffer {
  const bytes = Buffer.alloc(length);
  return bytes.subarray(0, readFully(descriptor, bytes, offset));
}

export function readFully(descriptor: number, target: Uint8Array, offset: Bytes): Bytes {
  if (!Number.isSafeInteger(offset)) {
    return 0;
  }
  let done = 0;
  while (done < target.length) {
    const got = readSync(descriptor, target, done, target.length - done, offset + done);
    if (got === 0) {
      break;
    }
    done += got;
  }
  return done;
}
