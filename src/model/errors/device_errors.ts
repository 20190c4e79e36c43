/** What may go wrong when a program is asked for its devices' figures. */

import type { Millis, Pid } from "../base/units.js";
import { oneLine, TidemarkError } from "./errors.js";

/** TM-E076: what was started in the process to read its devices' allocators does not answer. */
export function devicesSilent(pid: Pid, waitedMs: Millis, detail: string): TidemarkError {
  return new TidemarkError(
    "TM-E076",
    4,
    `process ${pid} does not tell its devices' figures${detail === "" ? ` (${Math.round(waitedMs / 1000)} s)` : `: ${oneLine(detail)}`}`,
    detail === "" ? "its allocator is busy, or its Python runs no other thread meanwhile" : "",
    "try again; totals by the driver: tidemark gpu top",
  );
}

/** TM-E077: no snapshot can be had of a running program: torch's allocator is not in use there, or refuses. */
export function noDeviceSnapshot(pid: Pid, why: string, next: string): TidemarkError {
  return new TidemarkError(
    "TM-E077",
    4,
    `no snapshot of torch's allocator can be had from process ${pid}`,
    oneLine(why),
    next,
  );
}
