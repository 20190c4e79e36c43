/** Errors of `tidemark run` before its program has started. */
import { oneLine, TidemarkError } from "./errors.js";

/** Exit status of a shell if a program cannot be started: it exists but does not run, or it is not found. */
export type ShellStatus = 126 | 127;

/** TM-E009: the program could not be started; nothing ran. */
export function programNotStarted(
  program: string,
  reason: string,
  shellStatus: ShellStatus,
  next = "check the name",
): TidemarkError {
  return new TidemarkError(
    "TM-E009",
    shellStatus,
    `cannot start ${oneLine(program === "" ? "''" : program)}: ${oneLine(reason)}`,
    "",
    oneLine(next),
  );
}
