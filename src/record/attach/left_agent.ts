/**
 * Agents whose recorder has died. They keep recording, without a reader, until they are disarmed or their lease
 * ends.
 */
import { mappedMemfd, memfdHolders, readCommand } from "../../linux/index.js";
import type { Pid } from "../../model/base/units.js";

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
  return recorded ? null : { guard };
}
