/** Errors of files that are named on a command line. */
import { oneLine, TidemarkError } from "./errors.js";

/** TM-E017: an output would overwrite a file that Tidemark did not write, or a file of another kind. */
export function fileExists(path: string): TidemarkError {
  return new TidemarkError(
    "TM-E017",
    2,
    `${oneLine(path)} exists and does not look like a file of this kind that Tidemark wrote`,
    "",
    "name another file, or add --force",
  );
}

/** TM-E016: a file that `tidemark FILE` cannot open. */
export function notOpened(path: string, what: string, next: string): TidemarkError {
  return new TidemarkError("TM-E016", 2, `${oneLine(path)} is ${what}`, "", oneLine(next));
}
