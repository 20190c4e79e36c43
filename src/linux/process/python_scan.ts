/**
 * The Python processes of the host, read again and again. A scan reads one line of /proc for each process; what
 * does not change while a process runs its program is read once.
 */

import type { Pid } from "../../model/base/units.js";
import { programName } from "../../model/profile/program_name.js";
import type { ServiceIdentity } from "../../model/wire/identity.js";
import { identityOf } from "../../model/wire/identity.js";
import { readEnvironment } from "./environment.js";
import { hasEnded, readExecutable, readStat } from "./process.js";
import { type PythonProcess, readPythonProcess } from "./python_processes.js";
import { listPids } from "./tree.js";

export interface ScannedProcess extends Omit<PythonProcess, "children"> {
  /** Distinguishes it from a later process with the same pid, and from the program before an exec. */
  readonly key: string;
  readonly identity: ServiceIdentity;
}

interface Known {
  readonly found: ScannedProcess | null;
  /** When to examine it again: a program may load Python later, and figures age. */
  dueMs: number;
  distanceMs: number;
}

/** Figures of a Python process are as old as this at most. */
const REFRESH_MS = 60_000;
/** A process without Python is examined again after this time, then after twice as long each time. */
const FIRST_AGAIN_MS = 2_000;
const LAST_AGAIN_MS = 600_000;

export class PythonScan {
  #known = new Map<string, Known>();

  /** Ascending by pid, without this process. `nowMs`: any clock that only moves forward. */
  read(nowMs: number): ScannedProcess[] {
    const known = new Map<string, Known>();
    for (const pid of listPids()) {
      const stat = pid === process.pid ? null : readStat(pid);
      if (stat === null || hasEnded(stat)) {
        continue;
      }
      const key = `${pid}:${stat.startTicks}:${readExecutable(pid) ?? stat.name}`;
      const before = this.#known.get(key);
      known.set(
        key,
        before !== undefined && nowMs < before.dueMs ? before : look(pid, key, before, nowMs),
      );
    }
    this.#known = known;
    return [...known.values()].flatMap(({ found }) => (found === null ? [] : [found]));
  }
}

function look(pid: Pid, key: string, before: Known | undefined, nowMs: number): Known {
  const python = readPythonProcess(pid, false);
  if (python === null) {
    const distanceMs = Math.min(LAST_AGAIN_MS, (before?.distanceMs ?? FIRST_AGAIN_MS / 2) * 2);
    return { found: null, dueMs: nowMs + distanceMs, distanceMs };
  }
  const identity =
    before?.found?.identity ?? identityOf(readEnvironment(pid), programName(python.command));
  return {
    found: { ...python, key, identity },
    dueMs: nowMs + REFRESH_MS,
    distanceMs: REFRESH_MS,
  };
}
