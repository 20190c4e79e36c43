/** The threads of a process, as /proc/PID/task lists them. */
import type { Pid } from "../../model/base/units.js";
import { readNames, readText } from "./proc_files.js";

export interface Task {
  /** Thread id in our pid namespace. */
  readonly tid: number;
  /** Thread id in the process's own pid namespace. */
  readonly ownTid: number;
  /** The thread's name, at most 15 bytes. */
  readonly name: string;
  /** R, S, D, T (stopped), t (traced), Z (zombie), X. */
  readonly state: string;
}

/** Empty if the process has ended. */
export function readTasks(pid: Pid): Task[] {
  return (readNames(`/proc/${pid}/task`) ?? []).flatMap((name) => {
    const status = readText(`/proc/${pid}/task/${name}/status`);
    if (status === null) {
      return []; // it ended in the meantime
    }
    const field = (key: string) => new RegExp(`^${key}:[ \\t]*(.*)$`, "m").exec(status)?.[1] ?? "";
    const tid = Number(name);
    return {
      tid,
      ownTid: Number(field("NSpid").split(/\s+/).pop()) || tid,
      name: field("Name").replaceAll("\\n", "\n").replaceAll("\\\\", "\\"),
      state: field("State").slice(0, 1),
    };
  });
}

/** Thread ids in the process's own pid namespace. */
export function taskIds(pid: Pid): Set<number> {
  return new Set(readTasks(pid).map(({ ownTid }) => ownTid));
}
