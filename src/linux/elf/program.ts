/** The kind of a program before it is started: whether a library can be preloaded into it. */

import {
  accessSync,
  closeSync,
  constants,
  fstatSync,
  openSync,
  readSync,
  type Stats,
  statSync,
} from "node:fs";
import { basename, resolve } from "node:path";
import { itemAt } from "../../model/base/columns.js";
import { present } from "../../model/base/present.js";
import { reasonOf } from "../../model/errors/reason.js";
import { type ElfHeader, MACHINE_X86_64, parseElfHeader } from "./elf_header.js";

type ProgramKind =
  /** Loaded by glibc's loader: a preloaded library takes effect. */
  | "glibc"
  | "musl"
  /** Dynamic, with a loader that is neither glibc's nor musl's. */
  | "foreign-loader"
  | "static"
  | "32-bit"
  | "other-machine"
  /** It runs as another user or group, so the loader drops LD_PRELOAD. */
  | "setuid"
  | "missing"
  | "not-executable"
  /** Executable, not ELF and without "#!", so a shell runs it. */
  | "unknown";

export interface ProgramAnswer {
  readonly kind: ProgramKind;
  /** The file that the kernel loads in the end, after PATH, "#!" lines and `env`. */
  readonly path: string;
  /** All files up to that one, starting with the one that was named. */
  readonly chain: readonly string[];
}

/** Where to search for a program. */
export interface ProgramContext {
  /** The variable PATH: folders separated by colons. */
  readonly path: string;
  readonly cwd: string;
}

/** The kernel's limit (BINPRM_MAX_RECURSION), plus one for `env`. */
const DEEPEST = 6;
const LONGEST_SCRIPT_LINE = 256;

/** Looks up `command[0]` as execvp would, and follows scripts to their interpreters. Never throws. */
export function inspectProgram(
  command: readonly string[],
  context: ProgramContext = { path: process.env.PATH ?? "/bin:/usr/bin", cwd: process.cwd() },
): ProgramAnswer {
  return follow(command, context, []);
}

function follow(
  command: readonly string[],
  context: ProgramContext,
  chain: readonly string[],
): ProgramAnswer {
  const name = command[0] ?? "";
  const found = findProgram(name, context);
  if (typeof found !== "string") {
    return { kind: found.kind, path: name, chain };
  }
  const along = [...chain, found];
  if (basename(found) === "env") {
    const behind = commandOfEnv(command.slice(1), context);
    // The library is preloaded into `env` and into what `env` starts, which is the program that matters.
    if (behind !== null && along.length < DEEPEST) {
      return follow(behind.command, behind.context, along);
    }
  }
  const file = describe(found);
  if (file.script === null || along.length >= DEEPEST) {
    return { kind: file.kind, path: found, chain: along };
  }
  return follow([...file.script, found, ...command.slice(1)], context, along);
}

/** The file that execvp would start for a name: its absolute path, or the reason why there is none. Never throws. */
export function findProgram(
  name: string,
  context: ProgramContext,
): string | { kind: "missing" | "not-executable" } {
  if (name === "") {
    return { kind: "missing" };
  }
  if (name.includes("/")) {
    const path = resolve(context.cwd, name);
    const state = executable(path);
    return state === "yes" ? path : { kind: state === "no" ? "not-executable" : "missing" };
  }
  let refused = false;
  for (const directory of context.path.split(":")) {
    const path = resolve(context.cwd, directory, name); // an empty entry is the current directory
    const state = executable(path);
    if (state === "yes") {
      return path;
    }
    refused ||= state === "no";
  }
  return { kind: refused ? "not-executable" : "missing" };
}

function executable(path: string): "yes" | "no" | "missing" {
  try {
    const stats = statSync(path);
    if (!stats.isFile()) {
      return "no";
    }
    accessSync(path, constants.X_OK);
    return (stats.mode & 0o111) === 0 ? "no" : "yes"; // root may read any file, but can run only a file with the executable bit
  } catch (error) {
    return reasonOf(error).code === "EACCES" ? "no" : "missing";
  }
}

interface Description {
  readonly kind: ProgramKind;
  /** Arguments of the "#!" line. */
  readonly script: readonly string[] | null;
}

function describe(path: string): Description {
  let descriptor: number;
  try {
    descriptor = openSync(path, "r");
  } catch {
    // It is executable but not readable, so its kind is unknown; a preload may still work.
    return { kind: "unknown", script: null };
  }
  try {
    const readAt = (offset: number, length: number) => {
      const bytes = Buffer.alloc(Math.max(0, length));
      const got = Number.isSafeInteger(offset)
        ? readSync(descriptor, bytes, 0, bytes.length, offset)
        : 0;
      return bytes.subarray(0, got);
    };
    const script = scriptLine(readAt(0, LONGEST_SCRIPT_LINE));
    if (script !== null) {
      return { kind: "unknown", script };
    }
    const header = parseElfHeader(readAt);
    const secure = changesIdentity(fstatSync(descriptor));
    return { kind: header === null ? "unknown" : kindOf(path, header, secure), script: null };
  } catch {
    return { kind: "unknown", script: null };
  } finally {
    closeSync(descriptor);
  }
}

/** The kernel marks a program "secure" (AT_SECURE) when its effective ids differ from the real ones. */
function changesIdentity(stats: Stats): boolean {
  const user = (stats.mode & 0o4000) !== 0 && stats.uid !== process.getuid?.();
  const group = (stats.mode & 0o2010) === 0o2010 && stats.gid !== process.getgid?.();
  return user || group;
}

/** A program without a loader path is static, or it is the loader itself, started under its own name. */
function kindOf(path: string, header: ElfHeader, secure: boolean): ProgramKind {
  if (header.bits === 32) {
    return "32-bit";
  }
  if (header.machine !== MACHINE_X86_64) {
    return "other-machine";
  }
  const loader = basename(header.interpreter ?? path);
  if (header.interpreter === null && !/^ld-(linux|musl|\d)|^ld\.so/.test(loader)) {
    return "static";
  }
  if (loader.startsWith("ld-musl")) {
    return "musl";
  }
  if (secure) {
    return "setuid";
  }
  return /^ld-(linux|\d)|^ld\.so/.test(loader) ? "glibc" : "foreign-loader";
}

/** "#! interpreter one-argument": the kernel passes everything after the first word as one argument. */
function scriptLine(head: Buffer): string[] | null {
  if (head[0] !== 0x23 || head[1] !== 0x21) {
    return null;
  }
  const line = itemAt(head.toString("latin1").slice(2).split("\n", 1), 0).trim();
  const match = /^(\S+)(?:[ \t]+(.*))?$/.exec(line);
  if (!match) {
    return null;
  }
  return match[2] === undefined ? [present(match[1])] : [present(match[1]), match[2]];
}

/** The command that `env ARGS...` runs; null if it runs none or has options that are not known here. */
function commandOfEnv(
  words: readonly string[],
  context: ProgramContext,
): { command: string[]; context: ProgramContext } | null {
  const rest = [...words];
  let { path, cwd } = context;
  while (rest.length > 0) {
    const word = itemAt(rest, 0);
    const assignment = /^([^=]+)=(.*)$/s.exec(word);
    if (word.startsWith("-S") || word.startsWith("--split-string=")) {
      const text = word.startsWith("-S") ? word.slice(2) : word.slice("--split-string=".length);
      rest.splice(0, 1, ...text.split(/\s+/).filter(Boolean));
    } else if (word === "-S" || word === "--split-string") {
      rest.splice(0, 2, ...(rest[1] ?? "").split(/\s+/).filter(Boolean));
    } else if (word === "-u" || word === "--unset") {
      rest.splice(0, 2);
    } else if (word === "-C" || word === "--chdir") {
      cwd = resolve(cwd, rest[1] ?? "");
      rest.splice(0, 2);
    } else if (word === "--") {
      rest.shift();
      break;
    } else if (assignment && !word.startsWith("-")) {
      if (assignment[1] === "PATH") {
        path = present(assignment[2]);
      }
      rest.shift();
    } else if (word.startsWith("-")) {
      rest.shift();
    } else {
      break;
    }
  }
  return rest.length === 0 ? null : { command: rest, context: { path, cwd } };
}
