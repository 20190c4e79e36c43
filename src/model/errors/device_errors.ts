/** Errors of reading a program's device allocators. */

import type { Millis, Pid } from "../base/units.js";
import { oneLine, TidemarkError } from "./errors.js";

/** TM-E076: the helper that was started in the process to read its device allocators does not answer. */
export function devicesSilent(pid: Pid, waitedMs: Millis, detail: string): TidemarkError {
  return new TidemarkError(
    "TM-E076",
    4,
    `process ${pid} does not report its device memory${detail === "" ? ` (${Math.round(waitedMs / 1000)} s)` : `: ${oneLine(detail)}`}`,
    detail === "" ? "its allocator is busy, or no other Python thread gets to run" : "",
    "try again; for the driver's totals: tidemark gpu top",
  );
}

/**
 * TM-E077: the running program cannot write a snapshot: it does not use torch's allocator, or the allocator
 * refuses.
 */
export function noDeviceSnapshot(pid: Pid, why: string, next: string): TidemarkError {
  return new TidemarkError(
    "TM-E077",
    4,
    `process ${pid} cannot write a snapshot of torch's allocator`,
    oneLine(why),
    next,
  );
}
