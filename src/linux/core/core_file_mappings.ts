/** The mappings of a program that left a core file: its segments, with the file names from its notes. */

import { itemAt } from "../../model/base/columns.js";
import { present } from "../../model/base/present.js";
import type { Address, Bytes } from "../../model/base/units.js";
import { findMapping } from "../memory/maps.js";
import type { AddressRange, Mapping } from "../memory/memory.js";
import type { CoreNotes, MappedFile } from "./core_file_notes.js";

export interface CoreSegment extends AddressRange {
  readonly offset: Bytes;
  /** Number of bytes that the core contains, from the start of the mapping. */
  readonly held: Bytes;
  /** Number of bytes that were not written to the core. */
  readonly leftOut: Bytes;
  /** Flags of the program header: 1 executable, 2 writable, 4 readable; null if there is no header. */
  readonly flags: number | null;
}

/**
 * Mapped ranges without a program header, because gcore leaves out mappings that the program never changed.
 * Both lists are ascending.
 */
export function notDumped(
  segments: readonly CoreSegment[],
  files: readonly MappedFile[],
): CoreSegment[] {
  const left: CoreSegment[] = [];
  let first = 0;
  let behind = 0;
  for (const file of files) {
    let at = Math.max(file.start, behind); // a damaged note may name the same range twice
    behind = Math.max(behind, file.end);
    const add = (end: Address) => {
      if (at < end) {
        left.push({ start: at, end, offset: 0, held: 0, leftOut: end - at, flags: null });
      }
    };
    while (first < segments.length && itemAt(segments, first).end <= at) {
      first += 1;
    }
    for (let n = first; n < segments.length && itemAt(segments, n).start < file.end; n++) {
      const { start, end } = itemAt(segments, n);
      add(Math.min(start, file.end));
      at = Math.max(at, end);
    }
    add(file.end);
  }
  return left;
}

const LIBRARY = /\.so(\.[^/]*)?$/;

/** One mapping for each segment. */
export function mappingsOf(segments: readonly CoreSegment[], notes: CoreNotes): Mapping[] {
  const { files } = notes;
  // A core contains no inodes, so each path gets a made-up one.
  const inodes = new Map<string, number>();
  for (const { path } of files) {
    inodes.set(path, inodes.get(path) ?? inodes.size + 1);
  }
  const program = files[findMapping(files, notes.inProgram)]?.path;
  return segments.map((segment) => {
    const { start, end, flags } = segment;
    const file = files[findMapping(files, start)];
    const path = file?.path ?? kernelName(segment, notes);
    // The parts of a program or a library that were not written are usually its code and constants.
    const isCode = path === program || LIBRARY.test(path);
    return {
      start,
      end,
      readable: flags === null || (flags & 4) !== 0,
      writable: flags !== null && (flags & 2) !== 0,
      executable: flags === null ? isCode : (flags & 1) !== 0,
      // A core does not show whether memory was shared; shared memory in it is read like any other.
      shared: /^\/(?:dev\/|memfd:|SYSV)/.test(path),
      offset: file === undefined ? 0 : file.offset + start - file.start,
      device: "00:00",
      inode: file === undefined ? 0 : present(inodes.get(path)),
      path,
      deleted: file?.deleted ?? false,
    };
  });
}

/** The name that /proc/PID/maps would show. */
function kernelName({ start, end }: AddressRange, { onStack, inKernelCode }: CoreNotes): string {
  if (onStack >= start && onStack < end) {
    return "[stack]";
  }
  return inKernelCode >= start && inKernelCode < end ? "[vdso]" : "";
}
