/** Memory available for this process and the others of its control group. */
import type { Bytes } from "../../model/base/units.js";
import { type CgroupPlace, findCgroup, roomOf } from "../process/cgroup.js";
import { readText } from "../process/proc_files.js";
import { readStatus } from "../process/process.js";

export class MemoryRoom {
  readonly #place: CgroupPlace | null = findCgroup(process.pid);

  /**
   * Bytes that this process may use if the rest of its control group uses no more than now: free memory, memory
   * that the kernel would reclaim before it kills, and this process's own memory. Without a limit, the machine
   * counts instead of the group.
   */
  read(): Bytes {
    const group = this.#place === null ? null : roomOf(this.#place);
    const machine = availableBytes();
    const own = readStatus(process.pid)?.anonRssBytes ?? 0;
    return Math.min(group ?? machine, machine) + own;
  }
}

/** MemAvailable of proc_meminfo(5). */
function availableBytes(): Bytes {
  const [, kilobytes] = /^MemAvailable:\s+(\d+) kB$/m.exec(readText("/proc/meminfo") ?? "") ?? [];
  return kilobytes === undefined ? Number.POSITIVE_INFINITY : Number(kilobytes) * 1024;
}
