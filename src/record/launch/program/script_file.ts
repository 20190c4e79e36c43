/** The kind of a file, and whether Python or the system starts it. */
import {
  accessSync,
  closeSync,
  constants,
  openSync,
  readSync,
  type Stats,
  statSync,
} from "node:fs";
import { join } from "node:path";

/** How a file is started. */
export type StartKind =
  /** Given to Python: a script, a zip archive or compiled code. */
  | "python"
  /** Started by the system: a program, or a script that names its own interpreter. */
  | "program"
  /** A folder that Python runs, because it contains `__main__.py`. */
  | "python folder"
  /** The same, but a package: its modules import each other, so Python needs its name (-m). */
  | "package"
  | "folder"
  | "missing"
  | "unreadable"
  /** A program or script of another interpreter that lacks the execute permission. */
  | "not executable"
  /** Text that neither its name nor its first line identifies as Python. */
  | "text"
  | "data"
  | "not a file";

export interface StartFile {
  readonly kind: StartKind;
  /** Words of its "#!" line; empty without one. */
  readonly interpreter: readonly string[];
}

const HEAD_BYTES = 4096;
const PYTHON_NAME = /\.(?:py|pyw|pyc|pyz|pyzw)$/i;
const ZIP_START = Buffer.from("PK\x03\x04", "latin1");
const ELF_START = Buffer.from("\x7fELF", "latin1");

/** Checks the file's mode, name and first bytes. Never throws. */
export function inspectStartFile(path: string): StartFile {
  let stats: Stats;
  try {
    stats = statSync(path);
  } catch (error) {
    const refused = (error as NodeJS.ErrnoException).code === "EACCES";
    return { kind: refused ? "unreadable" : "missing", interpreter: [] };
  }
  if (stats.isDirectory()) {
    return { kind: folderKind(path), interpreter: [] };
  }
  if (!stats.isFile()) {
    return { kind: "not a file", interpreter: [] };
  }
  const executable = (stats.mode & 0o111) !== 0 && may(path, constants.X_OK);
  const head = readHead(path);
  if (head === null) {
    // A program may be executable but not readable.
    return { kind: executable ? "program" : "unreadable", interpreter: [] };
  }
  const interpreter = shebang(head);
  return { kind: fileKind(path, head, interpreter, executable), interpreter };
}

function folderKind(path: string): StartKind {
  if (!may(join(path, "__main__.py"), constants.F_OK)) {
    return "folder";
  }
  return may(join(path, "__init__.py"), constants.F_OK) ? "package" : "python folder";
}

function fileKind(
  path: string,
  head: Buffer,
  interpreter: readonly string[],
  executable: boolean,
): StartKind {
  const pythonic = PYTHON_NAME.test(path) || head.subarray(0, 4).equals(ZIP_START);
  if (interpreter.length > 0) {
    if (isAnyPython(interpreter)) {
      return "python";
    }
    // Its first line is correct: it names a specific Python, or a program that prepares one (uv run --script).
    return executable
      ? "program"
      : /\bpython/.test(interpreter.join(" ")) || pythonic
        ? "python"
        : "not executable";
  }
  if (pythonic) {
    return "python"; // whether executable or not: without "#!" a shell would run it
  }
  if (executable) {
    return "program";
  }
  if (head.subarray(0, 4).equals(ELF_START)) {
    return "not executable";
  }
  return head.includes(0) ? "data" : "text";
}

/** "#!/usr/bin/env python3" or "#!/usr/bin/python": any available Python. */
export function isAnyPython(interpreter: readonly string[]): boolean {
  const [program = "", ...rest] = interpreter;
  const words =
    program === "/usr/bin/env"
      ? rest
      : [program.replace(/^(?:\/usr)?(?:\/local)?\/bin\//, ""), ...rest];
  return words.length === 1 && /^python3?$/.test(words[0] as string);
}

function shebang(head: Buffer): string[] {
  const line = /^#!([^\n]*)/.exec(head.toString("latin1"))?.[1];
  return line === undefined ? [] : line.trim().split(/\s+/).filter(Boolean);
}

function readHead(path: string): Buffer | null {
  let descriptor: number;
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return null;
  }
  try {
    const head = Buffer.alloc(HEAD_BYTES);
    return head.subarray(0, readSync(descriptor, head));
  } catch {
    return null;
  } finally {
    closeSync(descriptor);
  }
}

function may(path: string, mode: number): boolean {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    return false;
  }
}
