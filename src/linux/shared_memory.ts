import type { Pid } from "../model/units.js";
import { readText } from "./files.js";
import { readStat } from "./process.js";
import { listPids } from "./tree.js";

/** Processes, started at `sinceTicks` or later, that have mapped the memfd of this name and inode. One walk
 * through /proc. */
export function processesMapping(name: string, inode: number, sinceTicks: number): Pid[] {
  const mapping = new RegExp(` ${inode} +/memfd:${name} `);
  return listPids().filter(
    (pid) =>
      (readStat(pid)?.startTicks ?? -1) >= sinceTicks &&
      mapping.test(readText(`/proc/${pid}/maps`) ?? ""),
  );
}
