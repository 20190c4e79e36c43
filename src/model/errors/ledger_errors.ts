/** What may go wrong with a ledger beyond the process itself. */

import type { Pid } from "../base/units.js";
import { TidemarkError } from "./errors.js";

/** TM-E040: the kernel does not tell which memory of the process is resident, mapping by mapping. */
export function noResidentFigures(pid: Pid): TidemarkError {
  return new TidemarkError(
    "TM-E040",
    4,
    `/proc/${pid}/smaps says nothing`,
    "the kernel was built without it, or a sandbox hides it",
    "RSS as a whole is shown by: tidemark ps",
  );
}
