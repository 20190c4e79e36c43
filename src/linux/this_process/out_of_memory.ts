/** Which process the kernel kills first when memory is short. */
import { writeFileSync } from "node:fs";

/** proc_pid_oom_score_adj(5): the highest adjustment; such a process is killed before any other. */
const FIRST_TO_BE_KILLED = "1000";

/**
 * Makes this process, and those that it starts from now on, the first to be killed when memory is short: a
 * recorder must never cause the program to be killed. No permission is needed to raise the adjustment.
 */
export function raiseOomScore(): void {
  try {
    writeFileSync("/proc/self/oom_score_adj", FIRST_TO_BE_KILLED);
  } catch {
    // Without /proc, or if a security module forbids it, the kernel's own choice applies.
  }
}
