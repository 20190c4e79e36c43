/** The C library of a process and the version in its file. */
import { closeSync, fstatSync } from "node:fs";
import { basename } from "node:path";
import type { Pid } from "../../model/base/units.js";
import { filePieces } from "./file_pieces.js";
import { readText } from "./proc_files.js";
import { openFileBelow } from "./root_files.js";

const LARGEST_FILE = 64 * 2 ** 20;

export interface CLibrary {
  readonly kind: "glibc" | "musl";
  /** "2.36"; "" if the file does not contain it. */
  readonly version: string;
}

/** null if none is mapped (a static program) or the process may not be read. */
export function readCLibrary(pid: Pid): CLibrary | null {
  for (const line of (readText(`/proc/${pid}/maps`) ?? "").split("\n")) {
    const slash = line.indexOf("/");
    const path = slash < 0 ? "" : line.slice(slash).replace(/ \(deleted\)$/, "");
    const name = basename(path);
    if (/^(?:ld-musl-|libc\.musl-)/.test(name)) {
      return { kind: "musl", version: "" };
    }
    if (/^libc(?:\.so\.6|-2\.\d+\.so)$/.test(name)) {
      // Through the process's own root, because in a container the path may mean another file here.
      return { kind: "glibc", version: versionIn(pid, path) };
    }
  }
  return null;
}

/**
 * In the text that `libc.so.6` prints when it is run: "GNU C Library (Debian GLIBC 2.36-9) stable release
 * version 2.36."
 */
function versionIn(pid: Pid, path: string): string {
  const descriptor = openFileBelow(`/proc/${pid}/root`, path);
  if (descriptor === null) {
    return "";
  }
  try {
    for (const piece of fstatSync(descriptor).size > LARGEST_FILE ? [] : filePieces(descriptor)) {
      const at = piece.indexOf("GNU C Library");
      const text = at < 0 ? "" : piece.toString("latin1", at, at + 200);
      const version = /release version (\d+\.\d+)/.exec(text)?.[1];
      if (version !== undefined) {
        return version;
      }
    }
    return "";
  } catch {
    return "";
  } finally {
    closeSync(descriptor);
  }
}
