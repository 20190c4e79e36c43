/** Errors of files that are named on a command line. */
import { oneLine, TidemarkError } from "./errors.js";

/** TM-E016: a file that no command opens by itself. */
export function notOpened(path: string, what: string, next: string): TidemarkError {
  return new TidemarkError("TM-E016", 2, `${oneLine(path)} is ${what}`, "", oneLine(next));
}
