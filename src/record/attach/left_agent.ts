/**
 * Agents whose recorder has died. They keep recording, without a reader, until they are disarmed or their lease
 * ends.
 */
import { mappedMemfd, memfdHolders, openProcessMemory, readCommand } from "../../linux/index.js";
import type { Pid } from "../../model/base/units.js";
import { TidemarkError } from "../../model/errors/errors.js";
import { CONSTANTS } from "../../segment/layout.js";
import { POOL_START_BYTES, poolVersion } from "../../segment/pool.js";

const POOL = "tidemark-pool";
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
 * The agent that a dead recorder left in a process; null if a recorder holds the agent's memory open, or there
 * is no agent. Scans the descriptors of the whole host.
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
  return recorded ? null : { guard, isOlder: isOlder(pid) };
}

function isOlder(pid: Pid): boolean {
  try {
    const memory = openProcessMemory(pid);
    try {
      return memory.mappings.some(({ path, offset, start }) => {
        if (offset !== 0 || path !== `/memfd:${POOL}`) {
          return false;
        }
        const bytes = new Uint8Array(POOL_START_BYTES);
        memory.readInto(start, bytes);
        return (poolVersion(bytes) ?? CONSTANTS.TM_SEGMENT_VERSION) < CONSTANTS.TM_SEGMENT_VERSION;
      });
    } finally {
      memory.close();
    }
  } catch (error) {
    if (error instanceof TidemarkError) {
      return false; // it has ended, or may not be read
    }
    throw error;
  }
}
