/**
 * Figures of one process from /proc (Linux, Documentation/filesystems/proc.rst). For a process that has ended
 * or is not readable, the result is null; nothing here throws.
 */
import type { Bytes, Millis, Pid } from "../../model/base/units.js";
import { readLink, readNames, readSize, readText, readTextStart } from "./proc_files.js";

/** From /proc/PID/status; the memory figures are 0 for a kernel thread or a zombie. */
interface ProcessStatus {
  readonly name: string;
  readonly uid: number;
  readonly rssBytes: Bytes;
  /** RSS in its three parts: private memory, pages of mapped files, shared memory (tmpfs, memfd, SysV). */
  readonly anonRssBytes: Bytes;
  readonly fileRssBytes: Bytes;
  readonly shmemRssBytes: Bytes;
  readonly swapBytes: Bytes;
  readonly vmsBytes: Bytes;
  readonly vmPeakBytes: Bytes;
  /** Highest RSS since the last exec. */
  readonly vmHwmBytes: Bytes;
  readonly vmDataBytes: Bytes;
  readonly threads: number;
  /** The pid in each pid namespace, from the reader's namespace inward; empty on kernels without NSpid. */
  readonly namespacePids: readonly Pid[];
}

/** From /proc/PID/stat. */
export interface ProcessStat {
  readonly name: string;
  /** R, S, D, T (stopped), t (traced), Z (zombie), X... */
  readonly state: string;
  readonly parentPid: Pid;
  /** Start time in clock ticks (1/100 s) since boot, which distinguishes a reused pid. */
  readonly startTicks: number;
  readonly userMs: Millis;
  readonly systemMs: Millis;
  /** Start address of the stack, which changes with exec. 0 if it may not be read. */
  readonly stackStart: number;
  readonly threads: number;
  /** As in status; 0 for a kernel thread or a zombie. RSS is not read from here: since Linux 6.2 it lags in this file. */
  readonly vmsBytes: Bytes;
  /** The kernel is ending it: its memory is freed before it becomes a zombie. */
  readonly exiting: boolean;
  readonly kernelThread: boolean;
}

/** From /proc/PID/smaps_rollup. */
interface MemoryRollup {
  /** PSS: shared pages count by this process's share. */
  readonly pssBytes: Bytes;
  /** USS: private pages, which would be freed if the process ended. */
  readonly ussBytes: Bytes;
}

/**
 * All bytes that a process has written to files, pipes and sockets since its start (/proc/PID/io, wchar); null
 * if it may not be read.
 */
export function readWrittenBytes(pid: Pid): Bytes | null {
  const written = /^wchar: (\d+)/m.exec(readText(`/proc/${pid}/io`) ?? "")?.[1];
  return written === undefined ? null : Number(written);
}

/** PF_EXITING and PF_KTHREAD of include/linux/sched.h. */
const EXITING_FLAG = 4;
const KERNEL_THREAD_FLAG = 0x00200000;

/** USER_HZ is 100 on every architecture that Linux supports today. */
const MS_PER_TICK = 10;

/**
 * Whether the process has a handler for a signal of this number (SigCgt of /proc/PID/status); without one, most signals
 * end it. False if it has ended.
 */
export function catchesSignal(pid: Pid, number: number): boolean {
  const [, mask] =
    /^SigCgt:\s*([0-9a-f]{1,32})$/m.exec(readText(`/proc/${pid}/status`) ?? "") ?? [];
  return mask !== undefined && ((BigInt(`0x${mask}`) >> BigInt(number - 1)) & 1n) === 1n;
}

export function readStatus(pid: Pid): ProcessStatus | null {
  const text = readText(`/proc/${pid}/status`);
  return text === null || text === "" ? null : parseStatus(text);
}

export function parseStatus(text: string): ProcessStatus {
  // Read every few seconds for each process of a host: without a table of all its lines.
  const field = (name: string) => {
    const at = text.startsWith(`${name}:`) ? 0 : text.indexOf(`\n${name}:`) + 1;
    const start = at + name.length + 1;
    const isThere = at > 0 || text.startsWith(`${name}:`);
    const end = text.indexOf("\n", start);
    return isThere ? text.slice(start, end < 0 ? text.length : end).trim() : "";
  };
  const kilobytes = (name: string) => (Number.parseInt(field(name), 10) || 0) * 1024;
  return {
    name: field("Name"),
    uid: Number.parseInt(field("Uid"), 10) || 0,
    rssBytes: kilobytes("VmRSS"),
    anonRssBytes: kilobytes("RssAnon"),
    fileRssBytes: kilobytes("RssFile"),
    shmemRssBytes: kilobytes("RssShmem"),
    swapBytes: kilobytes("VmSwap"),
    vmsBytes: kilobytes("VmSize"),
    vmPeakBytes: kilobytes("VmPeak"),
    vmHwmBytes: kilobytes("VmHWM"),
    vmDataBytes: kilobytes("VmData"),
    threads: Number.parseInt(field("Threads"), 10) || 0,
    namespacePids: field("NSpid").split(/\s+/).filter(Boolean).map(Number),
  };
}

/** Resident pages of x86-64, the only architecture of the agent. */
const PAGE_BYTES: Bytes = 4096;

/** RSS alone, from /proc/PID/statm, with the value that status has; null for a process that has ended. */
export function readRss(pid: Pid): Bytes | null {
  const pages = Number((readText(`/proc/${pid}/statm`) ?? "").split(" ")[1]);
  return Number.isFinite(pages) ? pages * PAGE_BYTES : null;
}

export function readStat(pid: Pid): ProcessStat | null {
  const text = readText(`/proc/${pid}/stat`);
  return text === null ? null : parseStat(text);
}

/** null if the text is not a stat line. The name may contain spaces and parentheses; the last ")" ends it. */
export function parseStat(text: string): ProcessStat | null {
  const open = text.indexOf("(");
  const close = text.lastIndexOf(")");
  if (open < 0 || close < open) {
    return null;
  }
  const fields = text.slice(close + 2).split(" "); // fields[0] is field 3 of the manual page
  return {
    name: text.slice(open + 1, close),
    state: fields[0] ?? "",
    parentPid: Number(fields[1]),
    startTicks: Number(fields[19]),
    userMs: Number(fields[11]) * MS_PER_TICK,
    systemMs: Number(fields[12]) * MS_PER_TICK,
    stackStart: Number(fields[25] ?? 0) || 0,
    threads: Number(fields[17]) || 0,
    vmsBytes: Number(fields[20]) || 0,
    exiting: (Number(fields[6]) & EXITING_FLAG) !== 0,
    kernelThread: (Number(fields[6]) & KERNEL_THREAD_FLAG) !== 0,
  };
}

/**
 * True if no thread of the process runs any more. If only its main thread has ended, /proc also calls it a
 * zombie, but its other threads continue. null if there is no such process.
 */
export function hasEnded(stat: ProcessStat | null): boolean {
  return stat === null || ("ZX".includes(stat.state) && stat.threads <= 1);
}

/** It has ended or is ending: none of its code runs any more. */
export function isLeaving(stat: ProcessStat | null): boolean {
  return stat === null || hasEnded(stat) || (stat.exiting && stat.state !== "Z");
}

/** Walks every page of the process under its memory lock, which takes about 5 ms per GiB. */
export function readRollup(pid: Pid): MemoryRollup | null {
  const text = readText(`/proc/${pid}/smaps_rollup`);
  return text === null ? null : parseRollup(text);
}

/** null for a process without memory (a zombie). */
export function parseRollup(text: string): MemoryRollup | null {
  const kilobytes = (name: string) =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(text)?.[1] ?? Number.NaN);
  const pss = kilobytes("Pss");
  const uss = kilobytes("Private_Clean") + kilobytes("Private_Dirty");
  return Number.isNaN(pss + uss) ? null : { pssBytes: pss * 1024, ussBytes: uss * 1024 };
}

/**
 * The target of each open descriptor as the kernel writes it: a path, "socket:[4711]",
 * "anon_inode:[eventpoll]"; "" for one that was closed in the meantime. One system call per descriptor.
 */
export function readDescriptors(pid: Pid): ReadonlyMap<number, string> | null {
  const names = readNames(`/proc/${pid}/fd`);
  return names === null
    ? null
    : new Map(names.map((name) => [Number(name), readLink(`/proc/${pid}/fd/${name}`) ?? ""]));
}

/**
 * Number of open descriptors; null if it may not be read. From Linux 6.2 on, the kernel reports it as the size
 * of the folder, before that 0.
 */
export function countOpenFiles(pid: Pid): number | null {
  const folder = `/proc/${pid}/fd`;
  return readSize(folder) || (readNames(folder)?.length ?? null);
}

/** Whether a descriptor leads to a socket. */
export function isSocket(link: string): boolean {
  return link.startsWith("socket:");
}

/** Number of open descriptors that are sockets. One system call per descriptor. */
export function countSockets(pid: Pid): number | null {
  const descriptors = readDescriptors(pid);
  return descriptors && [...descriptors.values()].filter(isSocket).length;
}

/** The kernel starts no program with a longer one, but a program can move the place where its own is read. */
const LONGEST_COMMAND: Bytes = 2 * 2 ** 20;

/** A title that a process wrote over its arguments (setproctitle): NULs fill the rest of their place. */
const PADDED_TITLE = /^([^\0]+)\0{3,}$/;

/** argv, or the title that replaces it; empty for a kernel thread or a zombie. */
export function readCommand(pid: Pid): string[] | null {
  const text = readTextStart(`/proc/${pid}/cmdline`, LONGEST_COMMAND);
  if (text === null) {
    return null;
  }
  if (text === "") {
    return [];
  }
  const title = PADDED_TITLE.exec(text)?.[1];
  return title !== undefined
    ? [title]
    : (text.endsWith("\0") ? text.slice(0, -1) : text).split("\0");
}

/** Path of the running program, with " (deleted)" if it was removed; null if not readable. */
export function readExecutable(pid: Pid): string | null {
  return readLink(`/proc/${pid}/exe`);
}

/** Start time of a process in ms since 1970, precise to 10 ms, computed from its start ticks. */
export function startTimeMs(startTicks: number): number {
  const uptimeSeconds = Number((readText("/proc/uptime") ?? "0").split(" ", 1)[0]);
  return Math.round(Date.now() - (uptimeSeconds * 1000 - startTicks * MS_PER_TICK));
}
