/**
 * Keys of what a holder lookup looks up by type instead of by allocation site. Samples do not show these objects grow:
 * each is too small. Rows of a lookup (`HolderRow.site`) carry the key.
 */
import type { Pid } from "../base/units.js";

/** Open files, sockets, mappings and threads of a process. */
export function handlesSite(pid: Pid, type: string): string {
  return `${pid} handles ${type}`;
}

/** Objects behind which a library keeps memory that does not come from malloc. */
export function librarySite(pid: Pid, type: string): string {
  return `${pid} library ${type}`;
}

/** Objects of a type that grows from census to census. */
export function typeKey(pid: Pid, type: string): string {
  return `${pid} type ${type}`;
}
