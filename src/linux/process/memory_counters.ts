/** Memory limits of a process and how often they were reached: control groups, the machine, rlimits. */
import type { Bytes, Pid } from "../../model/base/units.js";
import { type CgroupPlace, parseLimit } from "./cgroup.js";
import { readText } from "./proc_files.js";
import type { ReadText } from "./recent_texts.js";

export interface GroupCounters {
  readonly directory: string;
  /** null if there is none. */
  readonly limitBytes: Bytes | null;
  readonly usedBytes: Bytes;
  /** Highest usage since the group was created or the value was reset; 0 if the kernel does not record it. */
  readonly peakBytes: Bytes;
  /**
   * Number of killed processes. Version 1 counts them in the group of the process, version 2 also in all groups
   * above it.
   */
  readonly kills: number;
  /** How often usage reached the limit (memory.failcnt; `max` of memory.events). */
  readonly failures: number;
}

/**
 * The counters of the group and of the groups above it, starting with its own; groups without figures are left
 * out.
 */
export function readGroupCounters(
  { version, directories }: CgroupPlace,
  readFile: ReadText = readText,
): GroupCounters[] {
  return directories.flatMap((directory) => {
    const read = (name: string) => readFile(`${directory}/${name}`);
    const used = read(version === 2 ? "memory.current" : "memory.usage_in_bytes");
    if (used === null) {
      return [];
    }
    const peak = read(version === 2 ? "memory.peak" : "memory.max_usage_in_bytes");
    const events = version === 2 ? read("memory.events") : null;
    return [
      {
        directory,
        limitBytes: parseLimit(read(version === 2 ? "memory.max" : "memory.limit_in_bytes")),
        usedBytes: Number(used),
        peakBytes: Number(peak ?? 0),
        ...(version === 2
          ? { kills: counter(events, "oom_kill"), failures: counter(events, "max") }
          : {
              kills: counter(read("memory.oom_control"), "oom_kill"),
              failures: Number(read("memory.failcnt") ?? 0),
            }),
      },
    ];
  });
}

/** The value in a line "NAME COUNT" of memory.events or memory.oom_control; 0 if there is none. */
export function counter(text: string | null, name: string): number {
  return Number(new RegExp(`^${name} (\\d+)$`, "m").exec(text ?? "")?.[1] ?? 0);
}

/**
 * Number of processes killed on this machine since it booted, in groups or not (Linux 4.13 and later); null
 * before 4.13.
 */
export function readMachineKills(read: ReadText = readText): number | null {
  const text = read("/proc/vmstat");
  return text === null || !/^oom_kill /m.test(text) ? null : counter(text, "oom_kill");
}

/**
 * Share of the last ten seconds in which at least one process of the group waited for memory; of the machine if groups
 * do not count it (version 1). null if the kernel does not count it (before 4.20, or switched off).
 */
export function readPressure(place: CgroupPlace | null, read: ReadText = readText): number | null {
  const own = place?.version === 2 ? read(`${place.directories[0]}/memory.pressure`) : null;
  const text = own ?? read("/proc/pressure/memory");
  const [, percent] = /^some avg10=(\d+(?:\.\d+)?)/m.exec(text ?? "") ?? [];
  return percent === undefined ? null : Number(percent) / 100;
}

/** MemTotal, and the part of it that is not MemAvailable; 0 if they cannot be read. */
export function readMachineMemory(): { readonly totalBytes: Bytes; readonly usedBytes: Bytes } {
  const text = readText("/proc/meminfo") ?? "";
  const figure = (name: string) =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(text)?.[1] ?? 0) * 1024;
  return { totalBytes: figure("MemTotal"), usedBytes: figure("MemTotal") - figure("MemAvailable") };
}

export interface MemoryRlimits {
  /** Soft limits; null if there is none. */
  readonly addressSpaceBytes: Bytes | null;
  readonly dataBytes: Bytes | null;
}

/** Null if the process has ended or is not readable. */
export function readMemoryRlimits(pid: Pid): MemoryRlimits | null {
  const text = readText(`/proc/${pid}/limits`);
  return text === null ? null : memoryRlimitsOf(text);
}

/** From the text of /proc/PID/limits (proc_pid_limits(5)). */
export function memoryRlimitsOf(text: string): MemoryRlimits {
  const soft = (name: string) => {
    const [, value] = new RegExp(`^${name}\\s+(\\d+)`, "m").exec(text) ?? [];
    return value === undefined ? null : Number(value);
  };
  return { addressSpaceBytes: soft("Max address space"), dataBytes: soft("Max data size") };
}
