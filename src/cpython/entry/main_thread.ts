/** What the threads of a process are doing while it cannot be entered, for messages. */

import { type Memory, readStat } from "../../linux/index.js";
import { readNames, readText } from "../../linux/process/proc_files.js";
import type { Pid } from "../../model/base/units.js";

/** x86-64 system calls that a thread may stay in (arch/x86/entry/syscalls/syscall_64.tbl). */
const CALLS: Readonly<Record<number, string>> = {
  0: "read",
  1: "write",
  7: "poll",
  23: "select",
  34: "pause",
  35: "nanosleep",
  42: "connect",
  43: "accept",
  44: "sendto",
  45: "recvfrom",
  47: "recvmsg",
  56: "clone",
  58: "vfork",
  61: "wait4",
  72: "fcntl",
  73: "flock",
  74: "fsync",
  202: "futex",
  219: "restart_syscall",
  230: "clock_nanosleep",
  232: "epoll_wait",
  247: "waitid",
  257: "openat",
  270: "pselect6",
  271: "ppoll",
  281: "epoll_pwait",
  288: "accept4",
  435: "clone3",
};

/**
 * "its main thread is waiting in accept4 (libc.so.6)". `more`: added for a running thread. `wait`: of {@link waitOf},
 * if it was read earlier. `stateBefore`: its state before it was last held, because a process that someone has
 * stopped runs for a moment after each release, until the kernel stops it again.
 */
export function describeMainThread(
  pid: Pid,
  memory: Memory,
  more: string,
  wait = waitOf(pid, pid, memory),
  stateBefore = "R",
): string {
  const now = readStat(pid)?.state ?? "X";
  const state = stateBefore === "T" && !"ZX".includes(now) ? "T" : now;
  if ("Tt".includes(state)) {
    return state === "T" ? "it is stopped (SIGSTOP or Ctrl-Z)" : "a debugger has stopped it";
  }
  if ("ZX".includes(state)) {
    return "its main thread has ended";
  }
  const doing = wait === "" ? "is running C code" : `is waiting in ${wait}`;
  return `its main thread ${doing}${more}`;
}

/**
 * A thread in an uninterruptible kernel wait (state D), which cannot be stopped until the wait is over:
 * "its thread 4243 hangs in read (libc.so.6)". "" if there is none.
 */
export function describeHangingThread(pid: Pid, memory: Memory): string {
  for (const name of readNames(`/proc/${pid}/task`) ?? []) {
    const stat = readText(`/proc/${pid}/task/${name}/stat`) ?? "";
    if (stat.slice(stat.lastIndexOf(")") + 2, stat.lastIndexOf(")") + 3) === "D") {
      const thread = Number(name) === pid ? "main thread" : `thread ${name}`;
      const wait = waitOf(pid, Number(name), memory);
      return `its ${thread} ${wait === "" ? "is waiting for a page of memory to be read" : `hangs in ${wait}`}`;
    }
  }
  return "";
}

/** "accept4 (libc.so.6)"; "" if the thread is not in a system call. */
export function waitOf(pid: Pid, tid: number, memory: Memory): string {
  return waitText(readText(`/proc/${pid}/task/${tid}/syscall`) ?? "", memory);
}

/**
 * From the text of /proc/PID/syscall. The kernel writes -1 as the call's number for a thread that is stopped in its
 * own code, or that waits for a page (fs/proc/base.c, proc_pid_syscall).
 */
export function waitText(text: string, memory: Pick<Memory, "mappings">): string {
  const fields = text.trim().split(" ");
  if (fields.length < 3 || Number(fields[0]) < 0) {
    return "";
  }
  const place = fileAt(memory, Number(fields.at(-1)));
  const call = CALLS[Number(fields[0])] ?? `system call ${fields[0]}`;
  return place === "" ? call : `${call} (${place})`;
}

function fileAt(memory: Pick<Memory, "mappings">, address: number): string {
  const mapping = memory.mappings.find(({ start, end }) => address >= start && address < end);
  return mapping?.path.split("/").at(-1) ?? "";
}
