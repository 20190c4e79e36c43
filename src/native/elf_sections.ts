/**
 * The sections of an ELF64 file. Source: elf(5); System V ABI, chapter 4.
 *
 *   file header, 64 bytes      40 u64 section headers' offset   58 u16 their size   60 u16 their count
 *                              62 u16 the section of their names
 *   section header, 64 bytes   0 u32 name   4 u32 type   24 u64 offset   32 u64 size   40 u32 link
 *
 * Every offset and size is checked against the file size, because a mapped path may lead to any bytes.
 */

import { readSync } from "node:fs";

const FILE_HEADER_BYTES = 64;
const SECTION_HEADER_BYTES = 64;
const MOST_NAMES_BYTES = 2 ** 24;

export interface Section {
  /** "" if unknown. */
  readonly name: string;
  readonly type: number;
  readonly offset: number;
  readonly size: number;
  readonly link: number;
}

/** Empty if it is not an ELF64 little-endian file, or if it is damaged. */
export function readSections(fd: number, fileSize: number): Section[] {
  const head = readRange(fd, fileSize, 0, FILE_HEADER_BYTES);
  // Magic, then 64-bit and little-endian.
  if (head === null || head.readUInt32BE(0) !== 0x7f454c46 || head[4] !== 2 || head[5] !== 1) {
    return [];
  }
  if (head.readUInt16LE(58) !== SECTION_HEADER_BYTES) {
    return [];
  }
  const offset = Number(head.readBigUInt64LE(40));
  // If there are more than 65279 sections, the first one's size holds their number.
  const first = readRange(fd, fileSize, offset, SECTION_HEADER_BYTES);
  const count = head.readUInt16LE(60) || Number(first?.readBigUInt64LE(32) ?? 0);
  const table = readRange(fd, fileSize, offset, count * SECTION_HEADER_BYTES);
  if (table === null) {
    return [];
  }
  const sections = Array.from({ length: count }, (_, index) => {
    const at = index * SECTION_HEADER_BYTES;
    return {
      nameAt: table.readUInt32LE(at),
      type: table.readUInt32LE(at + 4),
      offset: Number(table.readBigUInt64LE(at + 24)),
      size: Number(table.readBigUInt64LE(at + 32)),
      link: table.readUInt32LE(at + 40),
    };
  });
  const strings = sections[head.readUInt16LE(62)];
  const names =
    strings && strings.size <= MOST_NAMES_BYTES
      ? readRange(fd, fileSize, strings.offset, strings.size)
      : null;
  return sections.map(({ nameAt, ...section }) => ({ ...section, name: nameIn(names, nameAt) }));
}

function nameIn(names: Buffer | null, at: number): string {
  if (names === null) {
    return "";
  }
  const end = names.indexOf(0, at);
  return end > at ? names.toString("latin1", at, end) : "";
}

/** The bytes, or null if the file does not contain all of them. */
export function readRange(
  fd: number,
  fileSize: number,
  offset: number,
  length: number,
): Buffer | null {
  if (!(length > 0 && offset + length <= fileSize)) {
    return null;
  }
  const bytes = Buffer.alloc(length);
  let done = 0;
  while (done < length) {
    const count = readSync(fd, bytes, done, length - done, offset + done);
    if (count === 0) {
      return null; // it was truncated in the meantime
    }
    done += count;
  }
  return bytes;
}
