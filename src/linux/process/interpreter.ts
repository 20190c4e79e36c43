/** The CPython that a process runs, read from outside: its mapped library and the version in it. */

import { closeSync, fstatSync, openSync } from "node:fs";
import { basename } from "node:path";
import { present } from "../../model/base/present.js";
import type { Pid } from "../../model/base/units.js";
import { filePieces } from "./file_pieces.js";
import { readText } from "./proc_files.js";
import { readCommand, readExecutable } from "./process.js";
import { openFileBelow } from "./root_files.js";

/** The interpreter of a process. */
export interface Interpreter {
  /** The full version ("3.11.7"), the minor version if only that can be read ("3.11"), or "" if unknown. */
  readonly version: string;
  /** "shared": a libpython; "static": the executable is the interpreter; "" if unknown. */
  readonly linking: "shared" | "static" | "";
  /** Built with Py_DEBUG (--with-pydebug). */
  readonly debug: boolean;
  /** Built without the GIL (--disable-gil). */
  readonly freeThreaded: boolean;
}

/** null for a process without a Python interpreter. */
export function readInterpreter(pid: Pid): Interpreter | null {
  const executable = readExecutable(pid);
  const library = executable === null ? null : findLibrary(readText(`/proc/${pid}/maps`) ?? "");
  if (library !== null) {
    // Through the process's own root, because in a container the path may mean another file here.
    const descriptor = openFileBelow(`/proc/${pid}/root`, library);
    return { linking: "shared", ...readFile(descriptor, library) };
  }
  if (executable !== null) {
    return isPythonName(executable)
      ? { linking: "static", ...readFile(openOrNull(`/proc/${pid}/exe`), executable) }
      : null;
  }
  // A process of another user: only its command line is readable by all.
  const program = readCommand(pid)?.[0] ?? "";
  return isPythonName(program)
    ? { version: minorOf(program), linking: "", ...buildOf(program) }
    : null;
}

const LIBRARY = /^libpython3(?:\.\d+)?[a-z]*\.so(?:\.|$)/;

/** First libpython in the text of /proc/PID/maps ("address perms offset dev inode   path"). */
export function findLibrary(maps: string): string | null {
  for (const line of maps.split("\n")) {
    const slash = line.indexOf("/");
    const path = slash < 0 ? "" : line.slice(slash).replace(/ \(deleted\)$/, "");
    if (path.includes("libpython") && LIBRARY.test(basename(path))) {
      return path;
    }
  }
  return null;
}

function isPythonName(path: string): boolean {
  return /^-?python3?(?:\.\d+)?[a-z]*(?:-dbg)?$/.test(basename(path.replace(/ \(deleted\)$/, "")));
}

/** ABI flags after the version: "python3.13t", "libpython3.13d.so.1.0", Debian's "python3.13-dbg". */
function buildOf(path: string): { readonly debug: boolean; readonly freeThreaded: boolean } {
  const [, flags = "", debian] = /python3\.\d+([a-z]*)(-dbg)?/.exec(basename(path)) ?? [];
  return {
    debug: flags.includes("d") || debian !== undefined,
    freeThreaded: flags.includes("t"),
  };
}

/** "3.11" from ".../libpython3.11.so.1.0" or ".../python3.11"; "" if the name has none. */
function minorOf(path: string): string {
  return /python(3\.\d+)/.exec(basename(path))?.[1] ?? "";
}

/**
 * Facts from the file's contents, because its name is not reliable: "python3.13" may be built with or without the GIL.
 *
 */
interface Build {
  readonly version: string;
  readonly freeThreaded: boolean;
}

/** By device and inode: one read serves all processes of an interpreter. */
const files = new Map<string, Build>();
const LARGEST_FILE = 512 * 2 ** 20;
/** Part of the text that Py_GetVersion prints; builds with the GIL do not contain it. */
const FREE_THREADED = "free-threading build (";

/** Closes the file. `name`: its name, used for facts that are not in its contents. */
function readFile(descriptor: number | null, name: string): Omit<Interpreter, "linking"> {
  const build = buildOf(name);
  const contents = descriptor === null ? null : readBuild(descriptor, minorOf(name));
  return {
    version: contents?.version ?? minorOf(name),
    debug: build.debug,
    freeThreaded: build.freeThreaded || contents?.freeThreaded === true,
  };
}

function openOrNull(path: string): number | null {
  try {
    return openSync(path, "r");
  } catch {
    return null;
  }
}

/** null if the file cannot be read. */
function readBuild(descriptor: number, minor: string): Build | null {
  try {
    const stats = fstatSync(descriptor);
    const key = `${stats.dev}:${stats.ino}:${stats.mtimeMs}`;
    const known = files.get(key);
    if (known !== undefined) {
      return known;
    }
    const contents = stats.size > LARGEST_FILE ? null : searchBuild(descriptor, minor);
    const build = contents ?? { version: minor, freeThreaded: false };
    files.set(key, build);
    return build;
  } catch {
    return null;
  } finally {
    closeSync(descriptor);
  }
}

function searchBuild(descriptor: number, minor: string): Build {
  let version: string | null = null;
  let freeThreaded = false;
  for (const piece of filePieces(descriptor)) {
    version ??= findVersion(piece, minor);
    freeThreaded ||= piece.includes(FREE_THREADED);
  }
  return { version: version ?? minor, freeThreaded };
}

/** PY_VERSION as Py_GetVersion prints it: a separate string, "3.11.7" and a NUL. */
export function findVersion(file: Buffer, minor: string): string | null {
  const start = `${minor === "" ? "3" : minor}.`;
  for (let at = file.indexOf(start); at >= 0; at = file.indexOf(start, at + 1)) {
    const text = file.toString("latin1", Math.max(0, at - 1), at + 24);
    const match = /^[^\w.](3\.\d{1,2}\.\d{1,2}(?:(?:a|b|rc)\d+)?\+?)\0/.exec(text);
    if (match) {
      return present(match[1]);
    }
  }
  return null;
}
