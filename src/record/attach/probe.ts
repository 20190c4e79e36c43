/**
 * Runs two probes in the program by remote execution, if the user allows it: what does the garbage collector
 * free, and what does the allocator return?
 *
 *   ledger ──> gc.collect() ──> ledger ──> malloc_trim(0) ──> ledger
 *              freed: cycles               returned: kept by the allocator
 *
 * Both change the program: finalizers of garbage run, and the program is paused while the collector runs (a
 * second or more with tens of millions of objects). The second one loads ctypes. If one of them raises, the
 * program continues and the evidence reports it.
 */
import type { RemoteExecOptions } from "../../cpython/entry/remote_exec.js";
import type { ProbeEvidence } from "../../diagnose/index.js";
import { readLedger } from "../../ledger/index.js";
import type { Bytes, Pid } from "../../model/base/units.js";
import { TidemarkError } from "../../model/errors/errors.js";
import type { LedgerPartName } from "../../model/profile/ledger.js";
import { collectGarbage, trimAllocator } from "../process/relief.js";

/** Throws TidemarkError if the process cannot be entered (TM-E034, TM-E035, not permitted, ended). */
export async function probeProcess(pid: Pid, options: RemoteExecOptions): Promise<ProbeEvidence> {
  const before = livingBytes(pid);
  const collectedObjects = await collectGarbage(pid, options);
  const after = livingBytes(pid);
  const kept = residentBytes(pid);
  const refusal = await trim(pid, options);
  return {
    pid,
    collectedObjects,
    freedBytes: Math.max(0, before - after),
    returnedBytes: refusal === "" ? Math.max(0, kept - residentBytes(pid)) : null,
    refusal,
  };
}

/** Why it could not be called; "" if it was. */
async function trim(pid: Pid, options: RemoteExecOptions): Promise<string> {
  try {
    await trimAllocator(pid, options);
    return "";
  } catch (error) {
    if (error instanceof TidemarkError && error.id === "TM-E036") {
      return error.what;
    }
    throw error;
  }
}

const USED: readonly LedgerPartName[] = ["python.used", "malloc.used"];
const PRIVATE: readonly LedgerPartName[] = [...USED, "python.free", "malloc.free", "anon.other"];

function livingBytes(pid: Pid): Bytes {
  return sumOf(pid, USED);
}

function residentBytes(pid: Pid): Bytes {
  return sumOf(pid, PRIVATE);
}

function sumOf(pid: Pid, wanted: readonly LedgerPartName[]): Bytes {
  // Free blocks inside a pool count as free only if pools are walked.
  const { parts } = readLedger(pid, "full");
  return parts.reduce((sum, { part, bytes }) => sum + (wanted.includes(part) ? bytes : 0), 0);
}
