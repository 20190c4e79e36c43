/** Errors of the commands that run a program under another tool: `memcheck`, `asan`, `allocators`. */
import { oneLine, TidemarkError } from "./errors.js";

/** TM-E090: a tool that the command needs is not installed; `install` is the command that installs it. */
export function toolMissing(tool: string, install: string): TidemarkError {
  return new TidemarkError(
    "TM-E090",
    4,
    `${oneLine(tool)} is not installed`,
    "",
    `install it: ${oneLine(install)}`,
  );
}

/** TM-E091: the program failed, or the tool could not start it, so that there is nothing to compare or report. */
export function toolRunFailed(what: string, why: string, next: string): TidemarkError {
  return new TidemarkError("TM-E091", 4, oneLine(what), oneLine(why), oneLine(next));
}

/** TM-E092: an extension cannot be built; `reason` is the compiler's first error. */
export function buildFailed(folder: string, reason: string, next: string): TidemarkError {
  return new TidemarkError(
    "TM-E092",
    2,
    `cannot build ${oneLine(folder)}: ${oneLine(reason, 200)}`,
    "",
    oneLine(next),
  );
}

/** TM-E093: Ctrl-C while programs ran; all of them were ended. `result`: what there is of the result. */
export function runInterrupted(result = "there is no result"): TidemarkError {
  return new TidemarkError(
    "TM-E093",
    130,
    `interrupted: ${result}, and every process that was started has ended`,
    "",
    "",
  );
}
