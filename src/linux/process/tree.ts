import { itemAt } from "../../model/base/columns.js";
import type { Pid } from "../../model/base/units.js";
import { readNames, readText } from "./proc_files.js";
import { hasEnded, readStat } from "./process.js";

/** All processes that /proc shows, ascending. */
export function listPids(): Pid[] {
  return (readNames("/proc") ?? [])
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .sort((a, b) => a - b);
}

/** `pid` and all its descendants, parents before children. */
export function descendantsOf(pid: Pid): Pid[] {
  const lookUp = hasChildrenFiles() ? childrenFromTasks : fromMap(childrenByScan());
  const found = [pid];
  const seen = new Set(found);
  for (let next = 0; next < found.length; next++) {
    for (const child of lookUp(itemAt(found, next))) {
      if (!seen.has(child)) {
        seen.add(child);
        found.push(child);
      }
    }
  }
  return found;
}

function fromMap(children: Map<Pid, Pid[]>): (pid: Pid) => Pid[] {
  return (pid) => children.get(pid) ?? [];
}

/** Each thread has its own list of children. Empty if the process has ended. */
function childrenFromTasks(pid: Pid): Pid[] {
  const children: Pid[] = [];
  for (const tid of readNames(`/proc/${pid}/task`) ?? []) {
    for (const child of (readText(`/proc/${pid}/task/${tid}/children`) ?? "").split(" ")) {
      if (child !== "") {
        children.push(Number(child));
      }
    }
  }
  return children;
}

let childrenFiles: boolean | undefined;

/** The files exist if the kernel was built with CONFIG_PROC_CHILDREN. */
function hasChildrenFiles(): boolean {
  childrenFiles ??= readText(`/proc/self/task/${process.pid}/children`) !== null;
  return childrenFiles;
}

/**
 * The children of the process that have ended and were not waited for (zombies). `known`: those at an earlier call, whose
 * state is not read again. null if the kernel does not list children.
 */
export function endedChildren(pid: Pid, known: ReadonlySet<Pid>): ReadonlySet<Pid> | null {
  const isEnded = (child: Pid) => {
    const stat = known.has(child) ? null : readStat(child);
    return known.has(child) || (stat !== null && hasEnded(stat));
  };
  return hasChildrenFiles() ? new Set(childrenFromTasks(pid).filter(isEnded)) : null;
}

/** The children of every process, from one walk through /proc. */
export function childrenByScan(): Map<Pid, Pid[]> {
  const children = new Map<Pid, Pid[]>();
  for (const pid of listPids()) {
    const parent = readStat(pid)?.parentPid;
    if (parent !== undefined) {
      const siblings = children.get(parent);
      if (siblings) {
        siblings.push(pid);
      } else {
        children.set(parent, [pid]);
      }
    }
  }
  return children;
}
