/** Agents whose recorder has died. They record on until they are disarmed or their lease is over, and nobody reads it. */
import { mappedMemfd, memfdHolders, readCommand } from "../../linux/index.js";
import type { Pid } from "../../model/base/units.js";

const POOL = "tidemark-pool";
const GUARD = "tidemark-guard";
/** Command lines of recorders of other users, whose descriptors cannot be read. */
const RECORDER = /tidemark|dist\/program\/main\.js/;

export interface LeftAgent {
  /** It keeps what the agent records, and adds it to the recording when the program ends; null: nobody does. */
  readonly guard: Pid | null;
}

/** What a recorder that has died left in a process; null where a recorder holds the agent's memory open, or there is
 * none. Looks through the descriptors of the whole host. */
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
