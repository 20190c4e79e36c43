/** Memory available for this process and the others of its control group. */
import type { Bytes } from "../../model/base/units.js";
import { type CgroupPlace, findCgroup, roomOf } from "../process/cgroup.js";
import { readText } from "../process/proc_files.js";
import { readStatus } from "../process/process.js";

export class MemoryRoom {
  readonly #place: CgroupPlace | null = findCgroup(process.pid);

  /**
   * Bytes that this process and the rest of its control group may have beside what the rest has now: what is free, what
   * the kernel would take back before it kills, and this process's own memory. Without a limit, the machine's.
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
