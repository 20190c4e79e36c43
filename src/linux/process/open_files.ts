import type { Pid } from "../../model/base/units.js";
import { readLink, readNames } from "./proc_files.js";
import { listPids } from "./tree.js";

/** Paths of the regular files that any process holds open and whose name ends so, with who holds them; what
 * is not ours to read is left out. One system call a descriptor of the host. */
export function openFilesEnding(ending: string): { readonly pid: Pid; readonly path: string }[] {
  const found: { pid: Pid; path: string }[] = [];
  for (const pid of listPids()) {
    for (const descriptor of readNames(`/proc/${pid}/fd`) ?? []) {
      const path = readLink(`/proc/${pid}/fd/${descriptor}`);
      if (path?.startsWith("/") && path.endsWith(ending)) {
        found.push({ pid, path });
      }
    }
  }
  return found;
}
