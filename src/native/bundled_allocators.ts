/**
 * Allocators built into a library, such as mimalloc in libarrow and jemalloc in polars, which have no file or
 * named mapping of their own. They are recognized by their messages to users, whose first words are in the
 * read-only data of every build. The files are read, so the program's own pages are not touched.
 */
import { closeSync, fstatSync, readSync } from "node:fs";
import { basename } from "node:path";
import type { Mapping, Memory } from "../linux/memory/memory.js";
import type { Bytes } from "../model/base/units.js";
import { readSections } from "./elf_sections.js";
import { isAllocatorLibrary } from "./foreign_allocators.js";

export interface BundledAllocator {
  readonly allocator: string;
  /** Name of the file. */
  readonly library: string;
  readonly path: string;
}

const MESSAGES: readonly (readonly [allocator: string, message: Buffer])[] = [
  ["jemalloc", Buffer.from("<jemalloc>: ")],
  ["mimalloc", Buffer.from("mimalloc: error: ")],
  ["tcmalloc", Buffer.from("tcmalloc: large alloc ")],
];
const LONGEST_MESSAGE = Math.max(...MESSAGES.map(([, message]) => message.length));
/** CPython from 3.13 on contains mimalloc, but uses it only if configured. */
const INTERPRETER = /^(?:lib)?python\d/;
const PIECE_BYTES = 1 << 22;

/** All mapped code, each file once. */
export function bundledAllocators(memory: Memory): BundledAllocator[] {
  const files = new Map<string, Mapping>();
  for (const mapping of memory.mappings) {
    if (mapping.executable && mapping.inode !== 0) {
      files.set(mapping.path, mapping);
    }
  }
  return [...files]
    .map(([path, mapping]) => ({ path, library: basename(path), mapping }))
    .filter(({ library, mapping }) => !INTERPRETER.test(library) && !isAllocatorLibrary(mapping))
    .flatMap(({ path, library, mapping }) =>
      allocatorsIn(memory, mapping).map((allocator) => ({ allocator, library, path })),
    );
}

function allocatorsIn(memory: Memory, mapping: Mapping): string[] {
  const file = memory.openFile(mapping);
  if (file === null) {
    return [];
  }
  try {
    const fileBytes = fstatSync(file).size;
    const found = new Set<string>();
    for (const { name, offset, size } of readSections(file, fileBytes)) {
      if (name === ".rodata") {
        search(file, offset, Math.min(offset + size, fileBytes), found);
      }
    }
    return [...found];
  } catch {
    return []; // an I/O error, or the file was truncated in the meantime
  } finally {
    closeSync(file);
  }
}

function search(file: number, start: Bytes, end: Bytes, found: Set<string>): void {
  const piece = Buffer.alloc(Math.min(PIECE_BYTES, Math.max(0, end - start)));
  for (let at = start; at < end; ) {
    const read = readSync(file, piece, 0, Math.min(piece.length, end - at), at);
    const bytes = piece.subarray(0, read);
    for (const [allocator, message] of MESSAGES) {
      if (bytes.includes(message)) {
        found.add(allocator);
      }
    }
    if (read <= LONGEST_MESSAGE) {
      return;
    }
    at += at + read < end ? read - LONGEST_MESSAGE : read;
  }
}
