/**
 * The memory of a program in a core file, written by the kernel or gcore, possibly truncated.
 *
 *   ELF header, type 4 (core)
 *   program headers   LOAD: address, bytes in memory, bytes in the file (fewer: not dumped)
 *                     NOTE: the process, and which file was mapped where (core_file_notes.ts)
 *
 * If part of a mapped file was not dumped, it is read from that file, provided that the file exists here and
 * has the build id that the core contains. If the build id was not dumped either, the headers must be the same.
 * Missing data is counted and reported; nothing is guessed.
 *
 * Sources: elf(5), Linux fs/binfmt_elf.c, include/uapi/linux/elf.h.
 */

import { closeSync, constants, fstatSync, openSync } from "node:fs";
import { basename } from "node:path";
import { itemAt } from "../../model/base/columns.js";
import type { Address, Bytes, Pid, TimeMs } from "../../model/base/units.js";
import { damagedInput, fileNotFound, fileUnusable, notOurs } from "../../model/errors/errors.js";
import { reasonOf } from "../../model/errors/reason.js";
import type { ReadAt } from "../elf/elf_header.js";
import { findMapping } from "../memory/maps.js";
import type { AddressRange, Mapping, Memory } from "../memory/memory.js";
import { isImageOf } from "./core_file_build_id.js";
import { readAt, readFully, readHeaders } from "./core_file_format.js";
import { type CoreSegment, mappingsOf, notDumped } from "./core_file_mappings.js";
import { CoreNotes } from "./core_file_notes.js";

const LOAD = 1;
const NOTE = 4;
const MOST_NOTE_BYTES = 64 * 2 ** 20;
const PAGE = 4096;

/** What is missing from a core file. */
export interface CoreGaps {
  /** Bytes that the headers claim beyond the end of the file. */
  readonly truncatedBytes: Bytes;
  /** Bytes of mappings that were not written, usually unchanged file pages. */
  readonly leftOutBytes: Bytes;
  /** Mapped files that do not exist here or have another build id. */
  readonly missingFiles: readonly string[];
}

export interface CoreMemory extends Memory {
  readonly gaps: CoreGaps;
  /** Pid of the process; 0 if the core does not contain it. */
  readonly leftBy: Pid;
  /** When the core was written; 0 if unknown. */
  readonly writtenMs: TimeMs;
  /** The process's threads. */
  readonly stackPointers: readonly Address[];
}

/** Throws TM-E003, TM-E004 (no such file, not readable), TM-E005 (damaged), TM-E007 (not a core file). */
export function openCoreFile(path: string): CoreMemory {
  let descriptor: number;
  try {
    // Opening a FIFO would wait for a writer.
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const { code, message } = reasonOf(error);
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
  readonly writtenMs: TimeMs;
  readonly stackPointers: readonly Address[];
  readonly #segments: readonly CoreSegment[];
  readonly #files = new Map<string, number | null>();
  #truncated = 0;
  #leftOut = 0;

  constructor(
    path: string,
    readonly descriptor: number,
  ) {
    this.name = basename(path);
    const { size, mtimeMs } = fstatSync(descriptor);
    const segments: CoreSegment[] = [];
    const notes = new CoreNotes();
    for (const header of readHeaders(descriptor, path, size)) {
      if (header.type === NOTE) {
        this.#truncated += Math.max(
          0,
          Math.min(header.inFile, header.offset + header.inFile - size),
        );
        notes.add(readAt(descriptor, header.offset, Math.min(header.inFile, MOST_NOTE_BYTES)));
      } else if (header.type === LOAD && header.inMemory > 0) {
        const inFile = Math.min(header.inFile, header.inMemory);
        const held = Math.max(0, Math.min(inFile, size - header.offset));
        this.#truncated += inFile - held;
        segments.push({
          start: header.address,
          end: header.address + header.inMemory,
          offset: header.offset,
          held,
          leftOut: header.inMemory - inFile,
          flags: header.flags,
        });
      }
    }
    if (segments.length === 0) {
      throw damagedInput(path, "it contains no memory");
    }
    segments.sort((a, b) => a.start - b.start);
    const files = notes.files.sort((a, b) => a.start - b.start);
    this.#segments = [...segments, ...notDumped(segments, files)].sort((a, b) => a.start - b.start);
    this.#leftOut = this.#segments.reduce((sum, { leftOut }) => sum + leftOut, 0);
    this.leftBy = notes.leftBy;
    this.writtenMs = Math.round(mtimeMs);
    this.stackPointers = notes.stackPointers;
    this.mappings = mappingsOf(this.#segments, notes);
  }

  get gaps(): CoreGaps {
    const missing = new Set<string>();
    for (const mapping of this.mappings) {
      const program = mapping.executable || /\.so(\.|$)/.test(mapping.path);
      if (mapping.inode !== 0 && program && this.#fileOf(mapping) === null) {
        missing.add(mapping.path);
      }
    }
    return {
      truncatedBytes: this.#truncated,
      leftOutBytes: this.#leftOut,
      missingFiles: [...missing],
    };
  }

  refresh(): boolean {
    return true;
  }

  readInto(address: Address, target: Uint8Array): Bytes {
    return this.#read(address, target, (index, within, rest) =>
      this.#readFile(index, within, rest),
    );
  }

  /**
   * `readUndumped` reads the part of a mapping that the core does not contain, from `within` on; it returns 0
   * if it cannot.
   */
  #read(
    address: Address,
    target: Uint8Array,
    readUndumped: (index: number, within: Bytes, target: Uint8Array) => Bytes,
  ): Bytes {
    let done = 0;
    while (done < target.length) {
      const index = findMapping(this.mappings, address + done);
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
          : readUndumped(index, within, target.subarray(done));
      if (got === 0) {
        break;
      }
      done += got;
    }
    return done;
  }

  /** A part of a mapped file that was not dumped. */
  #readFile(index: number, within: Bytes, target: Uint8Array): Bytes {
    const mapping = itemAt(this.mappings, index);
    if (mapping.inode === 0 || mapping.writable) {
      return 0; // pages that the program had written to are lost
    }
    const file = this.#fileOf(mapping);
    const length = Math.min(target.length, mapping.end - mapping.start - within);
    return file === null ? 0 : readFully(file, target.subarray(0, length), mapping.offset + within);
  }

  /** A cached descriptor of the mapped file; null if the file does not exist here or has changed. */
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
    if (first === undefined) {
      return null;
    }
    const held: ReadAt = (offset, length) => {
      const bytes = Buffer.alloc(length);
      return bytes.subarray(
        0,
        this.#read(first.start + offset, bytes, () => 0),
      );
    };
    let file: number;
    try {
      file = openSync(path, "r");
    } catch {
      return null; // the file does not exist here
    }
    const isFile = fstatSync(file).isFile();
    if (isFile && isImageOf(held, (offset, length) => readAt(file, offset, length))) {
      return file;
    }
    closeSync(file);
    return null;
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
