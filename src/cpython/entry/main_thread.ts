/** What the main thread of a process does that takes nothing: for the line that says why. */

import { readText } from "../../linux/files.js";
import { type Memory, readStat } from "../../linux/index.js";
import type { Pid } from "../../model/units.js";

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
};

/** "its main thread waits in accept4 (libc.so.6)". */
export function describeMainThread(pid: Pid, memory: Memory): string {
  const state = readStat(pid)?.state ?? "X";
  if ("Tt".includes(state)) {
    return state === "T" ? "it is stopped (SIGSTOP or Ctrl-Z)" : "a debugger has stopped it";
  }
  if ("ZX".includes(state)) {
    return "its main thread has ended";
  }
  const text = readText(`/proc/${pid}/task/${pid}/syscall`) ?? "";
  const fields = text.trim().split(" ");
  if (fields[0] === "running" || fields.length < 3) {
    return "its main thread computes in C code";
  }
  const place = fileAt(memory, Number(fields.at(-1)));
  const call = CALLS[Number(fields[0])] ?? `system call ${fields[0]}`;
  return `its main thread ${state === "D" ? "hangs" : "waits"} in ${call}${place === "" ? "" : ` (${place})`}`;
}

function fileAt(memory: Memory, address: number): string {
  const mapping = memory.mappings.find(({ start, end }) => address >= start && address < end);
  return mapping?.path.split("/").at(-1) ?? "";
}
