/**
 * The head of a memray capture file. Its format is not stable: version 11 is of memray 1.11 to 1.18, 12 of 1.19,
 * 13 of 1.20 (memray, src/memray/_memray/records.h).
 */
import type { TimeMs } from "../../../model/base/units.js";
import type { ImportedFigure } from "../../../model/profile/imported.js";
import type { Cursor } from "../cursor.js";
import { ForeignFault, type ForeignRecording } from "../importer.js";

export interface MemrayHeader {
  readonly version: number;
  /** PY_VERSION_HEX; 0 before version 12. */
  readonly pythonVersion: number;
  readonly nativeTraces: boolean;
  /** Totals at the peak and at the end (`memray run --aggregate`), not single allocations. */
  readonly aggregated: boolean;
  readonly startedMs: TimeMs;
  readonly endedMs: TimeMs;
  readonly command: string;
  readonly pid: number;
  readonly mainThread: number;
  /** Frames of memray itself at the root of the main thread's stacks. */
  readonly skippedFrames: number;
  readonly tracesPythonAllocators: boolean;
}

/** The contents of both kinds of file. */
export interface MemrayContent {
  readonly metrics: ForeignRecording["metrics"];
  /** False if the program was killed before memray wrote the end. */
  readonly complete: boolean;
  readonly lastMs: number;
  readonly peakMs: number;
  readonly known: readonly ImportedFigure[];
}

export const OLDEST_MEMRAY = 11;
export const NEWEST_MEMRAY = 13;
const MAGIC_BYTES = 7;

/** The format's version, to be compared before anything else is read. */
export function memrayVersion(cursor: Cursor): number {
  cursor.at = MAGIC_BYTES;
  return cursor.i32();
}

/** The cursor is after the version. */
export function readHeader(cursor: Cursor, version: number): MemrayHeader {
  const pythonVersion = version >= 12 ? cursor.i32() : 0;
  const nativeTraces = cursor.u8() !== 0;
  const fileFormat = cursor.u8();
  if (fileFormat > 1) {
    throw new ForeignFault(`its kind ${fileFormat} is unknown`);
  }
  cursor.u64(); // number of allocations; 0 if the program was killed
  cursor.u64(); // number of frames
  const startedMs = cursor.u64();
  const endedMs = cursor.u64();
  const command = cursor.cString();
  const pid = cursor.i32();
  const mainThread = cursor.u64();
  const skippedFrames = cursor.u64();
  cursor.u8(); // the Python allocator
  const tracesPythonAllocators = cursor.u8() !== 0;
  if (version >= 12) {
    cursor.u8(); // whether the lifetimes of objects were tracked
  }
  if (version >= 13) {
    skipPaths(cursor);
  }
  return {
    version,
    pythonVersion,
    nativeTraces,
    aggregated: fileFormat === 1,
    startedMs,
    endedMs,
    command,
    pid,
    mainThread,
    skippedFrames,
    tracesPythonAllocators,
  };
}

/** The standard library's folder, then two lists of folders, each ended by an empty one. */
function skipPaths(cursor: Cursor): void {
  cursor.cString();
  for (const _list of ["site-packages", "sys.path"]) {
    while (cursor.cString() !== "") {
      // Reporters map files to packages with them.
    }
  }
}
