/** Errors of the ledger that other commands do not have. */

import type { Pid } from "../base/units.js";
import { TidemarkError } from "./errors.js";

/** TM-E040: the kernel does not report which memory of the process is resident in each mapping. */
export function noResidentFigures(pid: Pid): TidemarkError {
  return new TidemarkError(
    "TM-E040",
    4,
    `/proc/${pid}/smaps is empty`,
    "the kernel was built without it, or a sandbox hides it",
    "to see total RSS: tidemark ps",
  );
}
