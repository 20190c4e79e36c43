/**
 * Everything that may go wrong in front of a user: a closed set. Each id is stable and stands in
 * docs/errors.md; a new one is appended with the next free number, none is ever reused.
 */

import { NEWEST_PYTHON_MINOR, OLDEST_PYTHON_MINOR } from "../base/python_versions.js";

/** 0 done; 1 a finding; 2 bad usage or input; 3 not permitted; 4 target gone or refused; 5 internal;
 * 126 and 127 what a shell answers for a program that cannot be started, 130 for an interrupt. */
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
] as const;
type ErrorId = (typeof ERROR_IDS)[number];

/** What happened, the likely why, the next command; `message` is all three in one line. */
export class TidemarkError extends Error {
  override readonly name = "TidemarkError";

  constructor(
    readonly id: ErrorId,
    readonly exitCode: ExitCode,
    readonly what: string,
    /** The likely reason; empty where `what` says it already. */
    readonly why: string,
    /** What to do or type next; empty where nothing helps. */
    readonly next: string,
    options?: ErrorOptions,
  ) {
    super([`${id} ${what}`, why, next].filter((part) => part !== "").join("; "), options);
  }
}

/** What is asked for, or the TidemarkError in which that ends. */
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

/** null where what is asked for ends in a TidemarkError: it is not there, or cannot be read. */
export function orNull<Value>(find: () => Value): Value | null {
  const found = orFailure(find);
  return found instanceof TidemarkError ? null : found;
}

/** TM-E001: a bug of Tidemark's. */
export function internalError(cause: unknown): TidemarkError {
  const detail = cause instanceof Error ? cause.message : String(cause);
  return new TidemarkError(
    "TM-E001",
    5,
    `something went wrong inside Tidemark: ${oneLine(detail)}`,
    "this is a bug of Tidemark's, not of your program",
    "run the same command with --debug and report what it prints",
    { cause },
  );
}

/** TM-E002: the command line cannot be understood. */
export function badUsage(what: string, next = "see --help"): TidemarkError {
  return new TidemarkError("TM-E002", 2, what, "", next);
}

/** The cause of TM-E003, for who knows what lies beside it. */
export interface MissingFile {
  readonly missingPath: string;
}

/** TM-E003: a file that was named does not exist. */
export function fileNotFound(path: string, kind = "file"): TidemarkError {
  return new TidemarkError(
    "TM-E003",
    2,
    `no such ${kind}: ${path === "" ? "''" : oneLine(path)}`,
    "the name may be misspelt or relative to another directory",
    "",
    { cause: { missingPath: path } satisfies MissingFile },
  );
}

/** The cause of TM-E004 where it is not permitted, for who can see whose file it is. */
export interface DeniedFile {
  readonly deniedPath: string;
}

/** TM-E004: a file exists and cannot be read or written; `reason` is the system's word (EACCES: ...). */
export function fileUnusable(
  path: string,
  action: "read" | "write",
  reason: string,
): TidemarkError {
  const permission = /EACCES|EPERM/.test(reason);
  // In place of "EACCES: permission denied, open '/x'": the path stands before it.
  const ours = /^EPERM: (it belongs to .+)$/.exec(reason)?.[1];
  const denied = ours === undefined ? "permission denied" : `permission denied, ${ours}`;
  const words = permission ? denied : reason;
  const next =
    action === "read" ? "run this as a user who may read it" : "name another file with -o";
  return new TidemarkError(
    "TM-E004",
    permission ? 3 : 2,
    `cannot ${action} ${oneLine(path)}: ${oneLine(words)}`,
    "",
    permission ? next : "",
    permission ? { cause: { deniedPath: path } satisfies DeniedFile } : undefined,
  );
}

/** TM-E005: bytes that are not what their place promised: garbage, truncated, or changed. */
export function damagedInput(source: string, detail: string): TidemarkError {
  return new TidemarkError(
    "TM-E005",
    2,
    `${oneLine(source)} is damaged: ${oneLine(detail)}`,
    "it was cut off, overwritten, or is not Tidemark's",
    "",
  );
}

/** TM-E006: written by a Tidemark whose format this one does not know. */
export function unknownVersion(source: string, found: number, known: number): TidemarkError {
  return new TidemarkError(
    "TM-E006",
    2,
    `${oneLine(source)} has format version ${found}, this Tidemark reads version ${known}`,
    found > known ? "it comes from a newer Tidemark" : "it comes from an older Tidemark",
    found > known ? "update Tidemark" : "use the Tidemark that wrote it",
  );
}

/** The cause of TM-E007, for who can see what the file is and which command reads it. */
export interface OtherFile {
  readonly otherPath: string;
}

/** TM-E007: a file of some other kind was given where a recording or a pool belongs. */
export function notOurs(source: string, expected: string): TidemarkError {
  return new TidemarkError(
    "TM-E007",
    2,
    `${oneLine(source)} is not ${expected}`,
    "its content is of another kind",
    `to see what it is: tidemark ${oneLine(source)}`,
    { cause: { otherPath: source } satisfies OtherFile },
  );
}

/** TM-E008: larger than this reader handles. */
export function tooLarge(what: string, limit: string): TidemarkError {
  return new TidemarkError(
    "TM-E008",
    2,
    `${oneLine(what)} is too large`,
    `the bound is ${limit}`,
    "",
  );
}

/** TM-E012: a platform, part or file of the installation that is missing. */
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

/** TM-E014: a question the recording has no answer to (no such process, no profile at that time). */
export function nothingThere(what: string, next: string): TidemarkError {
  return new TidemarkError("TM-E014", 2, what, "", next);
}

/** TM-E015: a file of the recording's name exists; recordings are overwritten on demand alone. */
export function recordingExists(path: string): TidemarkError {
  return new TidemarkError(
    "TM-E015",
    2,
    `${oneLine(path)} exists`,
    "",
    "name another with -o, or add --force",
  );
}

/** TM-E060: a file of some other kind where an allocator snapshot belongs; `found` says what it looks like. */
export function notASnapshot(path: string, found: string): TidemarkError {
  return new TidemarkError(
    "TM-E060",
    2,
    `${oneLine(path)} is no allocator snapshot: ${oneLine(found)}`,
    "",
    "write one with torch.cuda.memory._dump_snapshot(FILE)",
  );
}

/** TM-E061: a pickle that would run code or build objects; a snapshot holds none. Nothing was executed. */
export function pickleRefused(path: string, opcode: string, offset: number): TidemarkError {
  return new TidemarkError(
    "TM-E061",
    2,
    `${oneLine(path)} is refused: opcode ${opcode} at offset ${offset}`,
    "a snapshot needs only plain values, and Tidemark never executes a pickle",
    "write the file with torch.cuda.memory._dump_snapshot(FILE)",
  );
}

/** TM-E062: a snapshot that ends too early. */
export function snapshotCutOff(path: string, offset: number): TidemarkError {
  return new TidemarkError(
    "TM-E062",
    2,
    `${oneLine(path)} is cut off: it ends at offset ${offset} before the snapshot does`,
    "the program was killed while it wrote, the disk was full, or a copy was not finished",
    "take the snapshot again",
  );
}

/** TM-E063: a pickle of plain values whose content is not that of a snapshot. */
export function snapshotDamaged(path: string, detail: string, offset: number): TidemarkError {
  return new TidemarkError(
    "TM-E063",
    2,
    `${oneLine(path)} is no whole snapshot: ${oneLine(detail)} at offset ${offset}`,
    "it was overwritten, or another program wrote it",
    "take the snapshot again",
  );
}

/** TM-E064: a .gz or .zst whose compressed bytes are wrong; `detail` is the decompressor's word. */
export function compressionBroken(path: string, detail: string): TidemarkError {
  return new TidemarkError(
    "TM-E064",
    2,
    `${oneLine(path)} cannot be decompressed: ${oneLine(detail)}`,
    "it was cut off or changed on the way",
    "copy it again, or decompress it yourself",
  );
}

/** TM-E065: no driver answers, so nothing is known of the devices. */
export function noDeviceDriver(detail: string): TidemarkError {
  return new TidemarkError(
    "TM-E065",
    4,
    `no NVIDIA driver answers here: ${oneLine(detail)}`,
    "this machine has no such device, or the container was not given it",
    "try nvidia-smi, or docker run --gpus all",
  );
}

/** TM-E020: there is no such process, or none any more (ended, a zombie, another program by exec). */
export function processGone(pid: number): TidemarkError {
  return new TidemarkError(
    "TM-E020",
    4,
    `there is no process ${pid}, or it has ended`,
    "the pid may be mistyped, of another container, or of a program that started another meanwhile",
    "see `tidemark ps`",
  );
}

/** TM-E021: the kernel does not let us look into the process. */
export function notPermitted(pid: number, reason: string, remedy: string): TidemarkError {
  return new TidemarkError(
    "TM-E021",
    3,
    `may not look into process ${pid}: ${oneLine(reason)}`,
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
    "none of its mapped objects holds a CPython runtime",
    "see `tidemark ps` for the processes that run Python",
  );
}

/** TM-E023: an interpreter whose memory this Tidemark cannot read: its version, its build. */
export function unknownInterpreter(name: string, what: string): TidemarkError {
  return new TidemarkError(
    "TM-E023",
    4,
    `${oneLine(name)} runs ${oneLine(what)}`,
    `Tidemark reads CPython 3.${OLDEST_PYTHON_MINOR} to 3.${NEWEST_PYTHON_MINOR}, builds with the GIL`,
    "start it with `tidemark run` to record its native memory",
  );
}

/** TM-E024: memory that should be there is not, or does not hold what its layout promises. */
export function unreadableMemory(name: string, address: number, detail = ""): TidemarkError {
  return new TidemarkError(
    "TM-E024",
    4,
    `cannot read ${oneLine(name)} at 0x${address.toString(16)}${detail === "" ? "" : `: ${oneLine(detail)}`}`,
    isProcess(name) ? "it ended, or changed this while it was read" : "the file is damaged",
    isProcess(name) ? "try again" : "take another core file: gcore PID",
  );
}

/** TM-E024, too: the list of threads does not hold together. */
export function brokenThreadList(name: string): TidemarkError {
  return new TidemarkError(
    "TM-E024",
    4,
    `the threads of ${oneLine(name)} cannot be listed`,
    isProcess(name)
      ? "it starts and ends threads faster than they are read"
      : "the file is damaged",
    isProcess(name) ? "try again, best at a calmer moment" : "take another core file: gcore PID",
  );
}

/** Whether the name of a memory is that of a process; a core file is named by its path. */
function isProcess(name: string): boolean {
  return /^process \d+$/.test(name);
}

/** TM-E025: an interpreter's memory does not fit the layout of its version: nothing is read by guess. */
export function layoutMismatch(name: string, version: string, detail: string): TidemarkError {
  return new TidemarkError(
    "TM-E025",
    4,
    `${oneLine(name)} does not fit the layout of Python ${oneLine(version)}: ${oneLine(detail)}`,
    "it is built in another way (patched, a debug build, a pre-release), or still starting",
    "try again once it runs; else report its version and where it comes from",
  );
}

/** Names and messages from outside go into one line that cannot move a terminal's cursor, of at most `longest` characters. */
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
