/**
 * Keys of objects that a holder lookup finds by type instead of by allocation site. Samples do not show their
 * growth, because each object is too small. Rows of a lookup (`HolderRow.site`) contain the key.
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
