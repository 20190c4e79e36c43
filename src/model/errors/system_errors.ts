/** Errors of the operating system that no caller expected, and that are not bugs of Tidemark. */
import { dirname } from "node:path";
import { oneLine, TidemarkError } from "./errors.js";

const NO_SPACE: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT", "EROFS"]);
const MAKES_FOLDER: ReadonlySet<string> = new Set(["mkdir", "mkdtemp"]);

/**
 * The error to show if the disk is full or read-only, or if a folder cannot be created where the user or the environment
 * asks for it; null for any other error.
 */
export function diskFailure(error: unknown): TidemarkError | null {
  if (!(error instanceof Error)) {
    return null;
  }
  const { code = "", syscall = "", path, message }: NodeJS.ErrnoException = error;
  if (!NO_SPACE.has(code) && !(code !== "" && MAKES_FOLDER.has(syscall))) {
    return null;
  }
  const reason = message.replace(/^E[A-Z0-9]+: ([^,]+),.*$/s, "$1");
  const isTemporary = syscall === "mkdtemp" && path !== undefined;
  const what = isTemporary
    ? `cannot create a temporary folder in ${oneLine(dirname(path))}`
    : `cannot write${path === undefined ? "" : ` ${oneLine(path)}`}`;
  const next = isTemporary ? "set TMPDIR to a folder in which files can be created" : "";
  return new TidemarkError("TM-E004", 2, `${what}: ${oneLine(reason)}`, "", next);
}
