/**
 * The memory of a program as a core file keeps it: written by the kernel, by gcore, or cut off half way.
 *
 *   ELF header, type 4 (core)
 *   program headers   LOAD: address, bytes in memory, bytes in the file (fewer: not dumped)
 *                     NOTE: NT_PRSTATUS 1 (a thread's registers; its pid at 32)
 *                           NT_PRPSINFO 3 (the name at 40)
 *                           NT_FILE "FILE" (which file was mapped where)
 *                             u64 count  u64 page size  count * { start, end, offset / page size }  names
 *
 * What was not dumped of a mapped file is read from that file when it is here and its build id is the one
 * in the core. What is missing is counted, and told: nothing is read by guess.
 *
 * Sources: elf(5), Linux fs/binfmt_elf.c, include/uapi/linux/elf.h.
 */
import { closeSync, fstatSync, openSync } from "node:fs";
import { basename } from "node:path";
import { damagedInput, fileNotFound, fileUnusable, notOurs } from "../model/errors.js";
import type { Address, Bytes, Pid } from "../model/units.js";
import { readBuildId } from "./core_file_build_id.js";
import {
  type MappedFile,
  parseFiles,
  readAt,
  readFully,
  readHeaders,
  walkNotes,
} from "./core_file_format.js";
import type { AddressRange, Mapping, Memory } from "./memory.js";

const LOAD = 1;
const NOTE = 4;
const MOST_NOTE_BYTES = 64 * 2 ** 20;
const NT_PRSTATUS = 1;
const NT_PRPSINFO = 3;
const NT_FILE = 0x46494c45;
const PAGE = 4096;

interface Segment extends AddressRange {
  readonly offset: Bytes;
  /** Bytes of it that the file holds, from its start on. */
  readonly held: Bytes;
  readonly flags: number;
}

/** What a core does not hold. */
export interface CoreGaps {
  /** Bytes that its headers promise behind its end. */
  readonly truncatedBytes: Bytes;
  /** Mapped files that are not here, or not with the same build id. */
  readonly missingFiles: readonly string[];
}

export interface CoreMemory extends Memory {
  readonly gaps: CoreGaps;
  /** The process that left it; 0 where the core does not say. */
  readonly leftBy: Pid;
}

/** Throws TM-E003, TM-E004 (no such file, not readable), TM-E005 (damaged), TM-E007 (no core file). */
export function openCoreFile(path: string): CoreMemory {
  let descriptor: number;
  try {
    descriptor = openSync(path, "r");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw code === "ENOENT"
      ? fileNotFound(path, "process or core file")
      : fileUnusable(path, "read", message);
  }
  try {
    if (!fstatSync(descriptor).isFile()) {
      throw notOurs(path, "a core file");
    }
    return new CoreFile(path, descriptor);
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
}

class CoreFile implements CoreMemory {
  readonly pid = null;
  readonly name: string;
  readonly mappings: readonly Mapping[];
  readonly leftBy: Pid;
  readonly #segments: readonly Segment[];
  readonly #files = new Map<string, number | null>();
  #truncated = 0;

  constructor(
    path: string,
    readonly descriptor: number,
  ) {
    this.name = basename(path);
    const size = fstatSync(descriptor).size;
    const headers = readHeaders(descriptor, path, size);
    const segments: Segment[] = [];
    const files: MappedFile[] = [];
    let leftBy = 0;
    for (const header of headers) {
      if (header.type === NOTE) {
        this.#truncated += Math.max(
          0,
          Math.min(header.inFile, header.offset + header.inFile - size),
        );
        const notes = readAt(descriptor, header.offset, Math.min(header.inFile, MOST_NOTE_BYTES));
        for (const note of walkNotes(notes)) {
          if (note.type === NT_FILE) {
            files.push(...parseFiles(note.data));
          } else if (note.type === NT_PRSTATUS && leftBy === 0 && note.data.length >= 36) {
            leftBy = note.data.readUInt32LE(32);
          } else if (note.type === NT_PRPSINFO && note.data.length >= 28) {
            leftBy = note.data.readUInt32LE(24);
          }
        }
      } else if (header.type === LOAD && header.inMemory > 0) {
        const held = Math.max(0, Math.min(header.inFile, header.inMemory, size - header.offset));
        this.#truncated += Math.min(header.inFile, header.inMemory) - held;
        segments.push({
          start: header.address,
          end: header.address + header.inMemory,
          offset: header.offset,
          held,
          flags: header.flags,
        });
      }
    }
    if (segments.length === 0) {
      throw damagedInput(path, "it holds no memory");
    }
    segments.sort((a, b) => a.start - b.start);
    files.sort((a, b) => a.start - b.start);
    this.#segments = [...segments, ...notDumped(segments, files)].sort((a, b) => a.start - b.start);
    this.leftBy = leftBy;
    this.mappings = this.#segments.map((segment) => mappingOf(segment, files));
  }

  get gaps(): CoreGaps {
    const missing = new Set<string>();
    for (const mapping of this.mappings) {
      const program = mapping.executable || /\.so(\.|$)/.test(mapping.path);
      if (mapping.inode !== 0 && program && this.#fileOf(mapping) === null) {
        missing.add(mapping.path);
      }
    }
    return { truncatedBytes: this.#truncated, missingFiles: [...missing] };
  }

  refresh(): boolean {
    return true;
  }

  readInto(address: Address, target: Uint8Array): Bytes {
    let done = 0;
    while (done < target.length) {
      const index = this.#find(address + done);
      const segment = this.#segments[index];
      if (segment === undefined) {
        break;
      }
      const within = address + done - segment.start;
      const got =
        within < segment.held
          ? readFully(
              this.descriptor,
              target.subarray(done, done + Math.min(target.length - done, segment.held - within)),
              segment.offset + within,
            )
          : this.#readFile(index, within, target.subarray(done));
      if (got === 0) {
        break;
      }
      done += got;
    }
    return done;
  }

  /** A part of a mapped file that was not dumped. */
  #readFile(index: number, within: Bytes, target: Uint8Array): Bytes {
    const mapping = this.mappings[index] as Mapping;
    if (mapping.inode === 0 || mapping.writable) {
      return 0; // what the program wrote there is lost
    }
    const file = this.#fileOf(mapping);
    const length = Math.min(target.length, mapping.end - mapping.start - within);
    return file === null ? 0 : readFully(file, target.subarray(0, length), mapping.offset + within);
  }

  /** A descriptor on the file of a mapping, kept; null where it is not here as it was. */
  #fileOf(mapping: Mapping): number | null {
    let file = this.#files.get(mapping.path);
    if (file === undefined) {
      file = this.#match(mapping.path);
      this.#files.set(mapping.path, file);
    }
    return file;
  }

  #match(path: string): number | null {
    const first = this.mappings.find((mapping) => mapping.path === path && mapping.offset === 0);
    const head = first === undefined ? -1 : this.#segments[this.mappings.indexOf(first)]?.held;
    const wanted =
      first === undefined || !head || head <= 0
        ? null
        : readBuildId((offset, length) => {
            const bytes = Buffer.alloc(length);
            return bytes.subarray(0, this.readInto(first.start + offset, bytes));
          });
    if (wanted === null) {
      return null;
    }
    try {
      const file = openSync(path, "r");
      const found = readBuildId((offset, length) => readAt(file, offset, length));
      if (found === wanted) {
        return file;
      }
      closeSync(file);
    } catch {
      // It is not here.
    }
    return null;
  }

  #find(address: Address): number {
    let low = 0;
    let high = this.#segments.length - 1;
    while (low <= high) {
      const middle = (low + high) >>> 1;
      const segment = this.#segments[middle] as Segment;
      if (address < segment.start) {
        high = middle - 1;
      } else if (address >= segment.end) {
        low = middle + 1;
      } else {
        return middle;
      }
    }
    return -1;
  }

  resident(start: Address, end: Address): AddressRange[] {
    const found: { start: Address; end: Address }[] = [];
    for (const segment of this.#segments) {
      const from = Math.max(start, segment.start);
      const to = Math.min(end, segment.start + Math.floor(segment.held / PAGE) * PAGE);
      const last = found.at(-1);
      if (from < to && last?.end === from) {
        last.end = to;
      } else if (from < to) {
        found.push({ start: from, end: to });
      }
    }
    return found;
  }

  openFile(mapping: Mapping): number | null {
    if (mapping.inode === 0 || this.#fileOf(mapping) === null) {
      return null;
    }
    try {
      return openSync(mapping.path, "r");
    } catch {
      return null;
    }
  }

  close(): void {
    for (const file of this.#files.values()) {
      if (file !== null) {
        closeSync(file);
      }
    }
    this.#files.clear();
    closeSync(this.descriptor);
  }
}

/** What was mapped and has no header of its own: gcore leaves out what the program never changed. */
function notDumped(segments: readonly Segment[], files: readonly MappedFile[]): Segment[] {
  const left: Segment[] = [];
  for (const file of files) {
    let at = file.start;
    const add = (end: Address) => {
      if (at < end) {
        left.push({ start: at, end, offset: 0, held: 0, flags: 0 });
      }
    };
    for (const { start, end } of segments) {
      if (end > at && start < file.end) {
        add(Math.min(start, file.end));
        at = Math.max(at, end);
      }
    }
    add(file.end);
  }
  return left;
}

function mappingOf({ start, end, flags }: Segment, files: readonly MappedFile[]): Mapping {
  const file = files.find((candidate) => candidate.start <= start && candidate.end > start);
  const deleted = file?.path.endsWith(" (deleted)") === true;
  return {
    start,
    end,
    readable: true,
    writable: (flags & 2) !== 0,
    executable: (flags & 1) !== 0,
    // A core does not tell; what it holds of shared memory is read as any other.
    shared: file?.path.startsWith("/dev/") === true || file?.path.startsWith("/memfd:") === true,
    offset: file === undefined ? 0 : file.offset + start - file.start,
    device: "00:00",
    // Nor does it tell inodes: every file gets one of its own.
    inode: file === undefined ? 0 : files.indexOf(file) + 1,
    path: file === undefined ? "" : file.path.replace(/ \(deleted\)$/, ""),
    deleted,
  };
}
