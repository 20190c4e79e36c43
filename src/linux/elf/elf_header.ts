/**
 * The header of an ELF file (elf(5), System V ABI): the machine that it is for, and its loader.
 *
 *   0   7f 'E' 'L' 'F'   4 class (1: 32-bit, 2: 64-bit)   5 data (1: little-endian)
 *   16  u16 type   18 u16 machine   32 u64 program headers' offset   54 u16 their size   56 u16 their count
 *   program header: 0 u32 type (2 dynamic, 3 interpreter)   8 u64 offset   32 u64 bytes in the file
 */
import { itemAt } from "../../model/base/columns.js";

export interface ElfHeader {
  readonly bits: 32 | 64;
  readonly machine: number;
  /** Path of the dynamic loader; null for a static program. */
  readonly interpreter: string | null;
  /** Whether it has a dynamic section. A static-pie also has one, but no interpreter. */
  readonly dynamic: boolean;
}

export const MACHINE_X86_64 = 62;

const PROGRAM_HEADER_BYTES = 56;
const TYPE_DYNAMIC = 2;
const TYPE_INTERPRETER = 3;
const MOST_HEADERS = 1024;
const LONGEST_PATH = 4096;

/** Reads `length` bytes at `offset`; fewer at the end of the file. */
export type ReadAt = (offset: number, length: number) => Buffer;

/** null if it is not an ELF file or is truncated. */
export function parseElfHeader(readAt: ReadAt): ElfHeader | null {
  const head = readAt(0, 64);
  if (head.length < 20 || head.readUInt32BE(0) !== 0x7f454c46) {
    return null;
  }
  const bits = head[4] === 2 ? 64 : 32;
  const little = head[5] === 1;
  const machine = little ? head.readUInt16LE(18) : head.readUInt16BE(18);
  if (bits === 32 || !little) {
    return { bits, machine, interpreter: null, dynamic: false };
  }
  if (head.length < 64 || head.readUInt16LE(54) !== PROGRAM_HEADER_BYTES) {
    return null;
  }
  const count = head.readUInt16LE(56);
  const table = readAt(
    Number(head.readBigUInt64LE(32)),
    Math.min(count, MOST_HEADERS) * PROGRAM_HEADER_BYTES,
  );
  let interpreter: string | null = null;
  let dynamic = false;
  for (let at = 0; at + PROGRAM_HEADER_BYTES <= table.length; at += PROGRAM_HEADER_BYTES) {
    const type = table.readUInt32LE(at);
    if (type === TYPE_DYNAMIC) {
      dynamic = true;
    } else if (type === TYPE_INTERPRETER) {
      const length = Math.min(Number(table.readBigUInt64LE(at + 32)), LONGEST_PATH);
      const path = readAt(Number(table.readBigUInt64LE(at + 8)), length).toString("latin1");
      interpreter = itemAt(path.split("\0", 1), 0);
    }
  }
  return { bits, machine, interpreter, dynamic };
}
