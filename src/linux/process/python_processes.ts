/** The Python processes of the host, as far as /proc may be read. */
import { NEWEST_PYTHON_MINOR, OLDEST_PYTHON_MINOR } from "../../model/base/python_versions.js";
import type { Bytes, Pid } from "../../model/base/units.js";
import { type ContainerPlace, containerOf, containersIn, readGroups } from "./containers.js";
import { type Interpreter, readInterpreter } from "./interpreter.js";
import { type AttachAnswer, readArmPermission } from "./permission.js";
import { hasEnded, readCommand, readRollup, readStat, readStatus } from "./process.js";
import { listPids } from "./tree.js";

export interface PythonProcess {
  readonly pid: Pid;
  readonly parentPid: Pid;
  readonly uid: number;
  readonly interpreter: Interpreter;
  /** argv. */
  readonly command: readonly string[];
  /** Container or pod id; "" outside one. */
  readonly container: string;
  /** Outermost first. */
  readonly containers: readonly ContainerPlace[];
  readonly rssBytes: Bytes;
  /** 0 if not readable or not requested. */
  readonly pssBytes: Bytes;
  readonly ussBytes: Bytes;
  readonly threads: number;
  /** Number of child processes, Python or not. */
  readonly children: number;
  /** Number of children that have ended and were not waited for. */
  readonly endedChildren: number;
  /** Start time in clock ticks since boot; together with the pid, it is unique until the next boot. */
  readonly startTicks: number;
  /** A child that has the same one as its parent runs the parent's program: it has not called exec. 0: unknown. */
  readonly stackStart: number;
  readonly attach: AttachAnswer;
}

/**
 * All Python processes except this one, ascending by pid. `shares` also reads PSS and USS, which walks every
 * page of each process (about 5 ms per GiB): omit it for frequent polls.
 */
export function readPythonProcesses(shares: boolean): PythonProcess[] {
  const found: Omit<PythonProcess, "children" | "endedChildren">[] = [];
  const children = new Map<Pid, number>();
  const endedChildren = new Map<Pid, number>();
  for (const pid of listPids()) {
    const stat = readStat(pid);
    if (stat === null) {
      continue;
    }
    const ended = hasEnded(stat);
    const counted = ended ? endedChildren : children;
    counted.set(stat.parentPid, (counted.get(stat.parentPid) ?? 0) + 1);
    if (ended) {
      continue;
    }
    const python = pid === process.pid ? null : readPythonProcess(pid, shares);
    if (python !== null) {
      found.push(python);
    }
  }
  return found.map((row) => ({
    ...row,
    children: children.get(row.pid) ?? 0,
    endedChildren: endedChildren.get(row.pid) ?? 0,
  }));
}

/**
 * null if it is not a Python process, or has ended. `shares`: as for all. `known`: its interpreter, which stays the same
 * until it calls exec.
 */
export function readPythonProcess(
  pid: Pid,
  shares: boolean,
  known: Interpreter | null = null,
): Omit<PythonProcess, "children" | "endedChildren"> | null {
  const interpreter = known ?? readInterpreter(pid);
  const stat = interpreter === null ? null : readStat(pid);
  const status = stat === null || hasEnded(stat) ? null : readStatus(pid);
  if (interpreter === null || stat === null || status === null) {
    return null;
  }
  const groups = readGroups(pid);
  const rollup = shares ? readRollup(pid) : null;
  return {
    pid,
    parentPid: stat.parentPid,
    uid: status.uid,
    interpreter,
    command: readCommand(pid) ?? [],
    container: containerOf(groups),
    containers: containersIn(groups),
    rssBytes: status.rssBytes,
    pssBytes: rollup?.pssBytes ?? 0,
    ussBytes: rollup?.ussBytes ?? 0,
    threads: status.threads,
    startTicks: stat.startTicks,
    stackStart: stat.stackStart,
    attach: attachAnswer(pid, interpreter),
  };
}

/** Combines the kernel's answer with whether Tidemark supports the interpreter. */
function attachAnswer(pid: Pid, interpreter: Interpreter): AttachAnswer {
  const permission = readArmPermission(pid);
  if (!permission.ok) {
    return permission;
  }
  const remedy = "start it with `tidemark run`, which records native memory";
  if (interpreter.freeThreaded) {
    return { ok: false, reason: "it is a free-threaded build", remedy };
  }
  const minor = Number(/^3\.(\d+)/.exec(interpreter.version)?.[1] ?? Number.NaN);
  return minor < OLDEST_PYTHON_MINOR || minor > NEWEST_PYTHON_MINOR
    ? { ok: false, reason: `it runs Python ${interpreter.version}`, remedy }
    : permission;
}
