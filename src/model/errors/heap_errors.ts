/** What may go wrong between Tidemark and a program's objects. */

import { formatBytes } from "../base/numbers.js";
import type { Bytes, Millis, Objects } from "../base/units.js";
import { oneLine, TidemarkError } from "./errors.js";

/** TM-E050: copying the heap would stop the program for longer than was allowed. */
export function pauseTooLong(name: string, estimateMs: Millis, allowedMs: Millis): TidemarkError {
  return new TidemarkError(
    "TM-E050",
    4,
    `${oneLine(name)} would stand still for about ${Math.ceil(estimateMs)} ms`,
    `its heap is read meanwhile, and ${Math.round(allowedMs)} ms are allowed`,
    `allow it with --max-pause ${Math.ceil(estimateMs * 1.5)}ms, or take the census alone, which needs no pause`,
  );
}

/** TM-E051: the analysis would need more memory than this machine has to spare. */
export function analysisTooLarge(objects: Objects, needed: Bytes, spare: Bytes): TidemarkError {
  return new TidemarkError(
    "TM-E051",
    4,
    `the graph of ${objects} objects needs about ${formatBytes(needed)} of memory`,
    `${formatBytes(spare)} are to spare here`,
    "take the census alone, or read a core file of the program on a larger machine",
  );
}

/** TM-E051, too: what is to be copied does not fit one buffer, whatever the machine. */
export function copyTooLarge(name: string, needed: Bytes, most: Bytes): TidemarkError {
  return new TidemarkError(
    "TM-E051",
    4,
    `the heap of ${oneLine(name)} is too large to be copied: ${formatBytes(needed)}`,
    `${formatBytes(most)} fit a copy`,
    "take the census alone: tidemark heap PID, or with --exact",
  );
}

/** TM-E052: no object is of the type, or stands at the address, that was asked for. */
export function noSuchObject(what: string, typesNamedSo: readonly string[] = []): TidemarkError {
  return new TidemarkError(
    "TM-E052",
    2,
    `no object is ${oneLine(what)}`,
    typesNamedSo.length > 0
      ? `several types are named so: ${oneLine(typesNamedSo.join(", "))}`
      : "types are named module.qualname, as the census prints them",
    "see the types with: tidemark heap PID --top 0",
  );
}

/** TM-E053: the program ran again before its heap was copied. */
export function copyTorn(name: string, allowedMs: Millis): TidemarkError {
  return new TidemarkError(
    "TM-E053",
    4,
    `${oneLine(name)} ran again before its heap was copied`,
    `the copy took longer than the ${Math.round(allowedMs)} ms that the program may stand`,
    "try again, or allow more with --max-pause",
  );
}

/** TM-E054: a core file ends before the memory that the interpreter's own data stood in. */
export function coreCutOff(name: string, missing: Bytes): TidemarkError {
  return new TidemarkError(
    "TM-E054",
    2,
    `${oneLine(name)} is cut off: the last ${formatBytes(missing)} are missing, the interpreter's data among them`,
    "the disk was full, or a limit on the size of core files cut it",
    "raise the limit (ulimit -c unlimited), or take one with gcore",
  );
}
