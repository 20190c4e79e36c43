/**
 * The notes of a core file:
 *
 *   { name bytes u32, data bytes u32, type u32, name, data }, each padded to 4
 *     NT_PRSTATUS 1    of a thread: its id at 32, general registers from 112 on (rsp is the 20th)
 *     NT_PRPSINFO 3    of the process: its id at 24
 *     NT_AUXV     6    pairs of words, as the program was given them by the kernel
 *     NT_FILE "FILE"   u64 count  u64 page size  count * { start, end, offset / page size }  names
 *
 * The names "CORE" and "LINUX" are not distinguished, because each of these types occurs under only one of
 * them. Invalid notes are ignored, because the memory can be read without them. Sources: elf(5),
 * include/uapi/linux/elfcore.h.
 */
import type { Address, Bytes, Pid } from "../../model/base/units.js";
import type { AddressRange } from "../memory/memory.js";

const NT_PRSTATUS = 1;
const NT_PRPSINFO = 3;
const NT_AUXV = 6;
const NT_FILE = 0x46494c45;
const STACK_POINTER = 112 + 19 * 8;
/**
 * Types in the auxiliary vector: end, program headers, 16 random bytes on the main thread's stack, the kernel's
 * own library (vDSO).
 */
const AT_NULL = 0;
const AT_PHDR = 3;
const AT_RANDOM = 25;
const AT_SYSINFO_EHDR = 33;
const DELETED = " (deleted)";

export interface MappedFile extends AddressRange {
  readonly offset: Bytes;
  /** Without " (deleted)". */
  readonly path: string;
  readonly deleted: boolean;
}

export class CoreNotes {
  readonly files: MappedFile[] = [];
  /** 0 if no note contains it. */
  leftBy: Pid = 0;
  readonly stackPointers: Address[] = [];
  /** Addresses in the program's file, on the main thread's stack, and in the vDSO; 0 if unknown. */
  inProgram: Address = 0;
  onStack: Address = 0;
  inKernelCode: Address = 0;

  add(notes: Buffer): void {
    for (const { type, data } of walkNotes(notes)) {
      if (type === NT_FILE) {
        this.files.push(...parseFiles(data));
      } else if (type === NT_PRSTATUS && data.length >= STACK_POINTER + 8) {
        this.leftBy ||= data.readUInt32LE(32);
        this.stackPointers.push(Number(data.readBigUInt64LE(STACK_POINTER)));
      } else if (type === NT_PRPSINFO && data.length >= 28) {
        this.leftBy = data.readUInt32LE(24);
      } else if (type === NT_AUXV) {
        this.#addVector(data);
      }
    }
  }

  #addVector(data: Buffer): void {
    for (let at = 0; at + 16 <= data.length; at += 16) {
      const [kind, value] = [data.readBigUInt64LE(at), Number(data.readBigUInt64LE(at + 8))];
      switch (Number(kind)) {
        case AT_NULL:
          return;
        case AT_PHDR:
          this.inProgram = value;
          break;
        case AT_RANDOM:
          this.onStack = value;
          break;
        case AT_SYSINFO_EHDR:
          this.inKernelCode = value;
          break;
      }
    }
  }
}

function* walkNotes(notes: Buffer): Generator<{ readonly type: number; readonly data: Buffer }> {
  for (let at = 0; at + 12 <= notes.length; ) {
    const nameBytes = notes.readUInt32LE(at);
    const dataBytes = notes.readUInt32LE(at + 4);
    const data = at + 12 + align(nameBytes);
    if (data + dataBytes > notes.length) {
      return;
    }
    yield { type: notes.readUInt32LE(at + 8), data: notes.subarray(data, data + dataBytes) };
    at = data + align(dataBytes);
  }
}

function align(bytes: Bytes): Bytes {
  return Math.ceil(bytes / 4) * 4;
}

function parseFiles(data: Buffer): MappedFile[] {
  if (data.length < 16) {
    return [];
  }
  const count = Number(data.readBigUInt64LE(0));
  const pageBytes = Number(data.readBigUInt64LE(8));
  const namesAt = 16 + count * 24;
  if (!(namesAt <= data.length)) {
    return [];
  }
  const names = data.toString("utf8", namesAt).split("\0");
  return Array.from({ length: count }, (_, n) => {
    const name = names[n] ?? "";
    const deleted = name.endsWith(DELETED);
    return {
      start: Number(data.readBigUInt64LE(16 + n * 24)),
      end: Number(data.readBigUInt64LE(24 + n * 24)),
      offset: Number(data.readBigUInt64LE(32 + n * 24)) * pageBytes,
      path: deleted ? name.slice(0, -DELETED.length) : name,
      deleted,
    };
  });
}
