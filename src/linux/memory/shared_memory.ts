import { statfsSync } from "node:fs";
import type { Bytes, Pid } from "../../model/base/units.js";
import { readText } from "../process/proc_files.js";
import { isLeaving, readStat } from "../process/process.js";
import { listPids } from "../process/tree.js";

/**
 * Processes, started at `sinceTicks` or later, that have mapped the memfd of this name and inode, from one walk
 * through /proc. `ended` lists those that ended before they were read. Neither list contains processes that
 * those forked last.
 */
export function processesMapping(
  name: string,
  inode: number,
  sinceTicks: number,
): { readonly mapping: readonly Pid[]; readonly ended: readonly Pid[] } {
  const mapping: Pid[] = [];
  const ended: Pid[] = [];
  for (const pid of listPids()) {
    const stat = readStat(pid);
    if (stat !== null && stat.startTicks < sinceTicks) {
      continue;
    }
    if (isMapping(pid, name, inode)) {
      mapping.push(pid);
    } else if (isLeaving(readStat(pid))) {
      ended.push(pid);
    }
  }
  return { mapping, ended };
}

/**
 * Whether a process has mapped the memfd of this name and inode, or a file with this inode that an agent
 * created for a pool (tidemark-PID.pool); null if its mappings cannot be read.
 */
export function isMapping(pid: Pid, name: string, inode: number): boolean | null {
  const maps = readText(`/proc/${pid}/maps`);
  const mapped = new RegExp(` ${inode} +(?:/memfd:${name} |/.*/tidemark-\\d+\\.pool\\b)`);
  return maps === null || maps === "" ? null : mapped.test(maps);
}

/**
 * Whether a process has mapped a memfd or a file whose name, without folders, matches; false if its mappings
 * cannot be read.
 */
export function isMappingNamed(pid: Pid, name: RegExp): boolean {
  const maps = readText(`/proc/${pid}/maps`) ?? "";
  return maps.split("\n").some((line) => name.test(/[^/:]*$/.exec(line)?.[0] ?? ""));
}

/**
 * Total size of all files in the process's /dev/shm: shared memory that was not unlinked counts here even if no
 * process maps it any more. null if there is none to see.
 */
export function sharedMemoryUsed(pid: Pid): Bytes | null {
  try {
    const { blocks, bfree, bsize } = statfsSync(`/proc/${pid}/root/dev/shm`);
    return (blocks - bfree) * bsize;
  } catch {
    return null;
  }
}

/** Inode of the memfd of this name that a process has mapped; null if there is none or it cannot be read. */
export function mappedMemfd(pid: Pid, name: string): number | null {
  const maps = readText(`/proc/${pid}/maps`) ?? "";
  const inode = new RegExp(` (\\d+) +/memfd:${name} `).exec(maps)?.[1];
  return inode === undefined ? null : Number(inode);
}
