import type { Address, Pid } from "../../model/base/units.js";
import { readNames, readText } from "../process/proc_files.js";

/**
 * Stack pointers of the threads of a process that wait in the kernel; a running thread has no entry. Source:
 * /proc/PID/task/TID/syscall, whose last two words are the stack pointer and the program counter
 * (proc_pid_syscall(5)).
 */
export function readStackPointers(pid: Pid): Address[] {
  const pointers: Address[] = [];
  for (const task of readNames(`/proc/${pid}/task`) ?? []) {
    const words = (readText(`/proc/${pid}/task/${task}/syscall`) ?? "").trim().split(" ");
    const pointer = words.length >= 3 ? Number(words[words.length - 2]) : 0;
    if (pointer > 0 && pointer < 2 ** 47) {
      pointers.push(pointer);
    }
  }
  return pointers;
}
