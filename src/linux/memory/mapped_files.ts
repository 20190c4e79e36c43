import type { Pid } from "../../model/base/units.js";
import { readText } from "../process/proc_files.js";

/** Inode numbers of the files that a process has mapped; null if it has ended or is not readable.
 * Source: proc_pid_maps(5): address perms offset dev inode path. */
export function mappedInodes(pid: Pid): Set<number> | null {
  const maps = readText(`/proc/${pid}/maps`);
  if (maps === null || maps === "") {
    return null;
  }
  const inodes = new Set<number>();
  for (const line of maps.split("\n")) {
    const inode = Number(line.split(" ", 5)[4]);
    if (inode > 0) {
      inodes.add(inode);
    }
  }
  return inodes;
}
