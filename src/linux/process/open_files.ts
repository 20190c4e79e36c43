import { basename } from "node:path";
import type { Pid } from "../../model/base/units.js";
import { readInode, readLink, readNames } from "./proc_files.js";
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

/** A process that holds a memfd open, or might: its descriptors are not ours to read. */
export interface MemfdHolder {
  readonly pid: Pid;
  /** File name of its program; "" where it is not ours to read. */
  readonly program: string;
  readonly readable: boolean;
}

/** Who holds the memfd of this name and inode open, and whose descriptors cannot be read. */
export function memfdHolders(name: string, inode: number): MemfdHolder[] {
  const holds = (path: string) =>
    readLink(path)?.startsWith(`/memfd:${name} `) === true && readInode(path) === inode;
  return listPids().flatMap((pid) => {
    const descriptors = readNames(`/proc/${pid}/fd`);
    const program = basename(readLink(`/proc/${pid}/exe`) ?? "");
    const held = descriptors?.some((descriptor) => holds(`/proc/${pid}/fd/${descriptor}`));
    return held === false ? [] : [{ pid, program, readable: held === true }];
  });
}
