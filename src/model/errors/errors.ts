/**
 * All errors that a user may see: a closed set. Ids are stable and listed in docs/errors.md. A new error gets
 * the next free number; numbers are never reused.
 */

import { NEWEST_PYTHON_MINOR, OLDEST_PYTHON_MINOR } from "../base/python_versions.js";

/**
 * 0 done; 1 a finding; 2 bad usage or input; 3 not permitted; 4 target ended or unsupported; 5 internal; 126
 * and 127 as in a shell if a program cannot be started, 130 for an interrupt.
 */
type ExitCode = 0 | 1 | 2 | 3 | 4 | 5 | 126 | 127 | 130;

export const ERROR_IDS = [
  "TM-E001",
  "TM-E002",
  "TM-E003",
  "TM-E004",
  "TM-E005",
  "TM-E006",
  "TM-E007",
  "TM-E008",
  "TM-E009",
  "TM-E012",
  "TM-E013",
  "TM-E014",
  "TM-E015",
  "TM-E016",
  "TM-E017",
  "TM-E018",
  "TM-E019",
  "TM-E020",
  "TM-E021",
  "TM-E022",
  "TM-E023",
  "TM-E024",
  "TM-E025",
  "TM-E032",
  "TM-E033",
  "TM-E034",
  "TM-E035",
  "TM-E036",
  "TM-E037",
  "TM-E038",
  "TM-E039",
  "TM-E040",
  "TM-E041",
  "TM-E050",
  "TM-E051",
  "TM-E052",
  "TM-E053",
  "TM-E054",
  "TM-E060",
  "TM-E061",
  "TM-E062",
  "TM-E063",
  "TM-E064",
  "TM-E065",
  "TM-E076",
  "TM-E077",
  "TM-E080",
  "TM-E081",
  "TM-E082",
  "TM-E083",
  "TM-E084",
  "TM-E085",
  "TM-E086",
  "TM-E090",
  "TM-E091",
  "TM-E092",
  "TM-E093",
] as const;
type ErrorId = (typeof ERROR_IDS)[number];

/** What happened, the likely reason and the next command; `message` is all three in one line. */
export class TidemarkError extends Error {
  override readonly name = "TidemarkError";

  constructor(
    readonly id: ErrorId,
    readonly exitCode: ExitCode,
    readonly what: string,
    /** The likely reason; empty if `what` already includes it. */
    readonly why: string,
    /** What to do next, often a command; empty if nothing helps. */
    readonly next: string,
    options?: ErrorOptions,
  ) {
    super([`${id} ${what}`, why, next].filter((part) => part !== "").join("; "), options);
  }
}

/** Returns the result of `find`, or the TidemarkError that it throws. */
export function orFailure<Value>(find: () => Value): Value | TidemarkError {
  try {
    return find();
  } catch (error) {
    if (error instanceof TidemarkError) {
      return error;
    }
    throw error;
  }
}

/**
 * Returns the result of `find`, or null if it throws a TidemarkError, for example because a file is missing or
 * unreadable.
 */
export function orNull<Value>(find: () => Value): Value | null {
  const found = orFailure(find);
  return found instanceof TidemarkError ? null : found;
}

/** TM-E001: a bug in Tidemark. */
export function internalError(cause: unknown): TidemarkError {
  const detail = cause instanceof Error ? cause.message : String(cause);
  return new TidemarkError(
    "TM-E001",
    5,
    `something went wrong inside Tidemark: ${oneLine(detail)}`,
    "this is a bug in Tidemark, not in your program",
    "run the same command with --debug and report its output",
    { cause },
  );
}

/** TM-E002: the command line is invalid. */
export function badUsage(what: string, next = "see --help"): TidemarkError {
  return new TidemarkError("TM-E002", 2, what, "", next);
}

/** The cause of TM-E003, for callers that look for similar files. */
export interface MissingFile {
  readonly missingPath: string;
}

/** TM-E003: a file that was named does not exist. */
export function fileNotFound(path: string, kind = "file"): TidemarkError {
  return new TidemarkError(
    "TM-E003",
    2,
    `no such ${kind}: ${path === "" ? "''" : oneLine(path)}`,
    "the name may be misspelled or relative to another directory",
    "",
    { cause: { missingPath: path } satisfies MissingFile },
  );
}

/** The cause of TM-E004 if permission is denied, for callers that look up the file's owner. */
export interface DeniedFile {
  readonly deniedPath: string;
}

/** TM-E004: a file exists but cannot be read or written; `reason` is the operating system's message (EACCES: ...). */
export function fileUnusable(
  path: string,
  action: "read" | "write",
  reason: string,
  next = action === "read"
    ? "run this as a user with permission to read it"
    : "name another file with -o",
): TidemarkError {
  const permission = /EACCES|EPERM/.test(reason);
  // Replaces "EACCES: permission denied, open '/x'", because the path is already in the message.
  const ours = /^EPERM: (it belongs to .+)$/.exec(reason)?.[1];
  const denied = ours === undefined ? "permission denied" : `permission denied, ${ours}`;
  const words = permission ? denied : reason.replace(/^E[A-Z0-9]+: (.+), [a-z]+ '.*'$/, "$1");
  return new TidemarkError(
    "TM-E004",
    permission ? 3 : 2,
    `cannot ${action} ${oneLine(path)}: ${oneLine(words)}`,
    "",
    permission ? next : "",
    permission ? { cause: { deniedPath: path } satisfies DeniedFile } : undefined,
  );
}

/** TM-E005: damaged data: garbage, truncated, or changed. `why`: the likely cause. */
export function damagedInput(
  source: string,
  detail: string,
  why = "it was cut off or overwritten, or Tidemark did not write it",
): TidemarkError {
  return new TidemarkError(
    "TM-E005",
    2,
    `${oneLine(source)} is damaged: ${oneLine(detail)}`,
    why,
    "",
  );
}

/** TM-E006: written in a format version that this Tidemark does not support. */
export function unknownVersion(source: string, found: number, known: number): TidemarkError {
  return new TidemarkError(
    "TM-E006",
    2,
    `${oneLine(source)} has format version ${found}, this Tidemark reads version ${known}`,
    found > known ? "a newer Tidemark wrote it" : "an older Tidemark wrote it",
    found > known ? "update Tidemark" : "use the Tidemark that wrote it",
  );
}

/** The cause of TM-E007 and TM-E018, for callers that find out what the file is and which command reads it. */
export interface OtherFile {
  readonly otherPath: string;
}

/** TM-E007: the file is not a recording or a pool. */
export function notOurs(source: string, expected: string): TidemarkError {
  return new TidemarkError(
    "TM-E007",
    2,
    `${oneLine(source)} is not ${expected}`,
    "it is a file of another kind",
    `to see what it is: tidemark ${oneLine(source)}`,
    { cause: { otherPath: source } satisfies OtherFile },
  );
}

/** TM-E008: larger than Tidemark can read. */
export function tooLarge(what: string, limit: string): TidemarkError {
  return new TidemarkError(
    "TM-E008",
    2,
    `${oneLine(what)} is too large`,
    `the limit is ${limit}`,
    "",
  );
}

/** TM-E012: a part or file of the installation is missing. */
export function notInstalled(
  what: string,
  next = "install Tidemark again, or build it in a clone: npm run build",
): TidemarkError {
  return new TidemarkError("TM-E012", 4, what, "", next);
}

/** TM-E013: Tidemark does not work here (not Linux x86-64, Node too old...). */
export function unsupportedPlatform(what: string): TidemarkError {
  return new TidemarkError(
    "TM-E013",
    4,
    what,
    "Tidemark needs Linux on x86-64 with glibc 2.28 or newer",
    "",
  );
}

/** TM-E014: the recording does not contain what was asked for (no such process, no profile at that time). */
export function nothingThere(what: string, next: string): TidemarkError {
  return new TidemarkError("TM-E014", 2, what, "", next);
}

/** TM-E015: a file with the recording's name exists; recordings are overwritten only with --force. */
export function recordingExists(path: string): TidemarkError {
  return new TidemarkError(
    "TM-E015",
    2,
    `${oneLine(path)} exists`,
    "",
    "name another with -o, or add --force",
  );
}

/** TM-E060: a file of another kind where an allocator snapshot is expected; `found` describes it. */
export function notASnapshot(path: string, found: string): TidemarkError {
  return new TidemarkError(
    "TM-E060",
    2,
    `${oneLine(path)} is not an allocator snapshot: ${oneLine(found)}`,
    "",
    "write one with torch.cuda.memory._dump_snapshot(FILE)",
  );
}

/** TM-E061: a pickle that would run code or build objects, which a snapshot never does. Nothing was executed. */
export function pickleRefused(path: string, opcode: string, offset: number): TidemarkError {
  return new TidemarkError(
    "TM-E061",
    2,
    `${oneLine(path)} is refused: opcode ${opcode} at offset ${offset}`,
    "a snapshot needs only plain values, and Tidemark never executes a pickle",
    "write the file with torch.cuda.memory._dump_snapshot(FILE); import one of tracemalloc with: tidemark import FILE",
  );
}

/** TM-E062: a truncated snapshot. */
export function snapshotCutOff(path: string, offset: number): TidemarkError {
  return new TidemarkError(
    "TM-E062",
    2,
    `${oneLine(path)} is cut off: it ends at offset ${offset} before the snapshot does`,
    "the program was killed while writing it, the disk was full, or a copy was not finished",
    "take the snapshot again",
  );
}

/** TM-E063: a pickle of plain values that does not contain a valid snapshot. */
export function snapshotDamaged(path: string, detail: string, offset: number): TidemarkError {
  return new TidemarkError(
    "TM-E063",
    2,
    `${oneLine(path)} is not a complete snapshot: ${oneLine(detail)} at offset ${offset}`,
    "it was overwritten, or another program wrote it",
    "take the snapshot again",
  );
}

/** TM-E064: a .gz or .zst file with invalid compressed data; `detail` is the decompressor's message. */
export function compressionBroken(path: string, detail: string): TidemarkError {
  return new TidemarkError(
    "TM-E064",
    2,
    `${oneLine(path)} cannot be decompressed: ${oneLine(detail)}`,
    "it was cut off or changed in transfer",
    "copy it again, or decompress it yourself",
  );
}

/** TM-E065: no driver answers, so the devices are unknown. */
export function noDeviceDriver(detail: string): TidemarkError {
  return new TidemarkError(
    "TM-E065",
    4,
    `no NVIDIA driver answers here: ${oneLine(detail)}`,
    "this machine has no NVIDIA device, or the container has no access to it",
    "try nvidia-smi, or docker run --gpus all",
  );
}

/** TM-E020: there is no such process, or it has ended, is a zombie, or runs another program since exec. */
export function processGone(pid: number): TidemarkError {
  return new TidemarkError(
    "TM-E020",
    4,
    `there is no process ${pid}, or it has ended`,
    "the pid may be mistyped, belong to another container, or now run another program",
    "see `tidemark ps`",
  );
}

/** TM-E021: the kernel does not permit reading the process. */
export function notPermitted(pid: number, reason: string, remedy: string): TidemarkError {
  return new TidemarkError(
    "TM-E021",
    3,
    `no permission to read process ${pid}: ${oneLine(reason)}`,
    "",
    oneLine(remedy),
  );
}

/** TM-E022: no Python interpreter was found in the process, or in the core file. */
export function noInterpreter(name: string): TidemarkError {
  return new TidemarkError(
    "TM-E022",
    4,
    `no Python interpreter found in ${oneLine(name)}`,
    "none of its mapped objects contains a CPython runtime",
    "see `tidemark ps` for the processes that run Python",
  );
}

/** TM-E023: the interpreter's version or build is not supported. */
export function unknownInterpreter(name: string, what: string): TidemarkError {
  return new TidemarkError(
    "TM-E023",
    4,
    `${oneLine(name)} runs ${oneLine(what)}`,
    `Tidemark reads CPython 3.${OLDEST_PYTHON_MINOR} to 3.${NEWEST_PYTHON_MINOR}, builds with the GIL`,
    "start it with `tidemark run` to record its native memory",
  );
}

/** TM-E024: expected memory is missing or does not match its layout. */
export function unreadableMemory(name: string, address: number, detail = ""): TidemarkError {
  return new TidemarkError(
    "TM-E024",
    4,
    `cannot read ${oneLine(name)} at 0x${address.toString(16)}${detail === "" ? "" : `: ${oneLine(detail)}`}`,
    isProcess(name) ? "it ended, or changed this memory while it was read" : "the file is damaged",
    isProcess(name) ? "try again" : "take another core file: gcore PID",
  );
}

/** Also TM-E024: the list of threads is inconsistent. */
export function brokenThreadList(name: string): TidemarkError {
  return new TidemarkError(
    "TM-E024",
    4,
    `the threads of ${oneLine(name)} cannot be listed`,
    isProcess(name)
      ? "it starts and ends threads faster than they can be read"
      : "the file is damaged",
    isProcess(name) ? "try again when it is less busy" : "take another core file: gcore PID",
  );
}

/** Whether the name is that of a process; a core file is named by its path. */
function isProcess(name: string): boolean {
  return /^process \d+$/.test(name);
}

/** TM-E025: the interpreter's memory does not match the layout of its version; nothing was read. */
export function layoutMismatch(name: string, version: string, detail: string): TidemarkError {
  return new TidemarkError(
    "TM-E025",
    4,
    `${oneLine(name)} does not match the layout of Python ${oneLine(version)}: ${oneLine(detail)}`,
    "it is a special build (patched, debug, pre-release), or is still starting",
    "try again once it runs; if that fails, report its version and where it comes from",
  );
}

/** Flattens text from outside into one line of at most `longest` characters that cannot move a terminal's cursor. */
export function oneLine(text: string, longest = 400): string {
  const flat = Array.from(text, (character) => (isControl(character) ? " " : character)).join("");
  return flat.length > longest ? `${flat.slice(0, longest - 1)}…` : flat;
}

function isControl(character: string): boolean {
  const code = character.codePointAt(0) ?? 0;
  // C0, DEL and C1 controls; line and paragraph separators; bidirectional overrides.
  return (
    code < 0x20 ||
    (code >= 0x7f && code < 0xa0) ||
    code === 0x2028 ||
    code === 0x2029 ||
    (code >= 0x202a && code <= 0x202e) ||
    (code >= 0x2066 && code <= 0x2069)
  );
}
