/** Errors of reading a program's objects. */

import { formatBytes, formatExactCount } from "../base/numbers.js";
import type { Bytes, Millis, Objects } from "../base/units.js";
import { oneLine, TidemarkError } from "./errors.js";

/** TM-E050: copying the heap would pause the program for longer than allowed. */
export function pauseTooLong(name: string, estimateMs: Millis, allowedMs: Millis): TidemarkError {
  return new TidemarkError(
    "TM-E050",
    4,
    `${oneLine(name)} would be paused for about ${Math.ceil(estimateMs)} ms`,
    `its heap is copied while it is paused, and ${Math.round(allowedMs)} ms are allowed`,
    `allow it with --max-pause ${Math.ceil(estimateMs * 1.5)}ms, or take only the census, which needs no pause`,
  );
}

/** TM-E051: the analysis would need more memory than is available on this machine. */
export function analysisTooLarge(objects: Objects, needed: Bytes, spare: Bytes): TidemarkError {
  return new TidemarkError(
    "TM-E051",
    4,
    `the graph of ${objects} objects needs about ${formatBytes(needed)} of memory`,
    `${formatBytes(spare)} are available here`,
    "take only the census, or read a core file of the program on a larger machine",
  );
}

/** Also TM-E051: the heap does not fit into one buffer, whatever the machine. */
export function copyTooLarge(name: string, needed: Bytes, most: Bytes): TidemarkError {
  return new TidemarkError(
    "TM-E051",
    4,
    `the heap of ${oneLine(name)} is too large to be copied: ${formatBytes(needed)}`,
    `a copy can hold at most ${formatBytes(most)}`,
    "take only the census: tidemark heap PID, with or without --exact",
  );
}

/** Also TM-E051: the limit is that of a lookup beside the program. */
export function tooManyObjects(most: Objects): TidemarkError {
  return new TidemarkError(
    "TM-E051",
    4,
    `the heap has more than ${formatExactCount(most)} objects`,
    "a recorder that reads more would take too much memory and CPU time next to the program",
    "read them by hand, where there is room for it: tidemark heap PID --retained",
  );
}

/** TM-E052: no object has the given type or is at the given address. */
export function noSuchObject(what: string, typesNamedSo: readonly string[] = []): TidemarkError {
  return new TidemarkError(
    "TM-E052",
    2,
    `no object is ${oneLine(what)}`,
    typesNamedSo.length > 0
      ? `several types have that name: ${oneLine(typesNamedSo.join(", "))}`
      : "types are named module.qualname, as the census prints them",
    "see the types with: tidemark heap PID --top 0",
  );
}

/** TM-E053: the program continued before its heap was copied. */
export function copyTorn(name: string, allowedMs: Millis): TidemarkError {
  return new TidemarkError(
    "TM-E053",
    4,
    `${oneLine(name)} continued before its heap was copied`,
    `the copy took longer than the ${Math.round(allowedMs)} ms for which the program may be paused`,
    "try again, or allow more with --max-pause",
  );
}

/** TM-E054: a core file ends before the memory that holds the interpreter's own data. */
export function coreCutOff(name: string, missing: Bytes): TidemarkError {
  return new TidemarkError(
    "TM-E054",
    2,
    `${oneLine(name)} is cut off: the last ${formatBytes(missing)} are missing, including the interpreter's data`,
    "the disk was full, or a limit on the size of core files truncated it",
    "raise the limit (ulimit -c unlimited), or write one with gcore",
  );
}
