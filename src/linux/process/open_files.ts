import { basename } from "node:path";
import type { Pid } from "../../model/base/units.js";
import { readInode, readLink, readNames } from "./proc_files.js";
import { listPids } from "./tree.js";

/**
 * Paths of regular files whose name ends with this suffix and that any process holds open, with those
 * processes. Files that may not be read are left out. One system call per descriptor on the host.
 */
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

/** A process that holds a memfd open, or might hold it because its descriptors may not be read. */
export interface MemfdHolder {
  readonly pid: Pid;
  /** File name of its program; "" if it may not be read. */
  readonly program: string;
  readonly readable: boolean;
}

/** The processes that hold the memfd of this name and inode open, and those whose descriptors cannot be read. */
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
