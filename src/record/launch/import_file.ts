import { closeSync, constants, openSync, readSync } from "node:fs";
import type { ImportOptions } from "../../formats/index.js";
import type { Pid } from "../../model/base/units.js";
import { importForeign } from "./import_foreign.js";
import { importPool } from "./import_pool.js";

const POOL_MAGIC = "TMRKPOOL";

export interface FileChoice extends ImportOptions {
  /** The process to import from a pool; null: all. */
  readonly pid: Pid | null;
  /** Whether pools of the process's children, beside its own, belong to the recording. */
  readonly withChildren: boolean;
}

/**
 * Converts an agent's pool or another tool's file to a recording; the content decides which it is. Throws as
 * importPool() and readForeign().
 */
export function importFile(
  path: string,
  recordingPath: string,
  { pid, withChildren, ...options }: FileChoice,
): void {
  if (pid !== null || isPool(path)) {
    importPool(path, recordingPath, { only: pid, withChildren });
  } else {
    importForeign(path, recordingPath, options);
  }
}

/** False for a file that cannot be read, which importForeign() reports. */
function isPool(path: string): boolean {
  let descriptor: number;
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return false;
  }
  try {
    const head = Buffer.alloc(POOL_MAGIC.length);
    readSync(descriptor, head, 0, head.length, 0);
    return head.toString("latin1") === POOL_MAGIC;
  } catch {
    return false;
  } finally {
    closeSync(descriptor);
  }
}
