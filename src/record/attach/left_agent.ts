/**
 * Agents whose recorder has crashed. They keep recording, without a reader, until they are disarmed or their lease
 * ends. An agent that the program's environment armed never had a recorder, nor a lease: nobody left it.
 */
import { mappedMemfd, memfdHolders, openProcessMemory, readCommand } from "../../linux/index.js";
import type { Pid } from "../../model/base/units.js";
import { TidemarkError } from "../../model/errors/errors.js";
import { CONSTANTS } from "../../segment/layout.js";
import { POOL_START_BYTES, poolLease, poolVersion } from "../../segment/pool.js";

/** The name of the memory that an agent maps. */
export const POOL = "tidemark-pool";
const GUARD = "tidemark-guard";
/** Command lines of recorders of other users, whose descriptors cannot be read. */
const RECORDER = /tidemark|dist\/program\/main\.js/;

export interface LeftAgent {
  /**
   * The process that keeps the agent's profile and adds it to the recording when the program ends; null if
   * there is none.
   */
  readonly guard: Pid | null;
  /** Whether an older version of Tidemark loaded it; false if the version cannot be read. */
  readonly isOlder: boolean;
}

/**
 * The agent that a recorder that crashed left in a process; null if a recorder holds the agent's memory open, or there
 * is no agent that had a recorder. Scans the descriptors of the whole host.
 */
export function leftAgentOf(pid: Pid): LeftAgent | null {
  const inode = mappedMemfd(pid, POOL);
  if (inode === null) {
    return null;
  }
  const holders = memfdHolders(POOL, inode);
  const guard = holders.find(({ program }) => program === GUARD)?.pid ?? null;
  const recorded = holders.some(({ pid: holder, program, readable }) =>
    readable
      ? program !== GUARD && mappedMemfd(holder, POOL) !== inode
      : RECORDER.test((readCommand(holder) ?? []).join(" ")),
  );
  if (recorded) {
    return null;
  }
  const start = startOfPool(pid);
  const version = poolVersion(start) ?? CONSTANTS.TM_SEGMENT_VERSION;
  return guard === null && poolLease(start) === 0
    ? null
    : { guard, isOlder: version < CONSTANTS.TM_SEGMENT_VERSION };
}

/** Empty if it has ended or may not be read. */
function startOfPool(pid: Pid): Uint8Array {
  const bytes = new Uint8Array(POOL_START_BYTES);
  try {
    const memory = openProcessMemory(pid);
    try {
      const pool = memory.mappings.find(
        ({ path, offset }) => offset === 0 && path === `/memfd:${POOL}`,
      );
      if (pool === undefined) {
        return new Uint8Array();
      }
      memory.readInto(pool.start, bytes);
      return bytes;
    } finally {
      memory.close();
    }
  } catch (error) {
    if (error instanceof TidemarkError) {
      return new Uint8Array();
    }
    throw error;
  }
}
