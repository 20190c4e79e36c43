/** What a program that has ended held until then: a reading of RSS during its exit is below that. */
import type { Bytes, Pid } from "../../model/base/units.js";
import { Domain } from "../../model/profile/profile.js";
import type { Recording } from "../../recording/types.js";

/** @internal */
export interface LiveAtEnd {
  readonly byProcess: ReadonlyMap<Pid, Bytes>;
  /** Of the whole tree; 0 while the program runs, and without a profile. */
  readonly bytes: Bytes;
}

/** Without mappings, which may not be resident. @internal */
export function liveAtEnd(recording: Recording): LiveAtEnd {
  const byProcess = new Map<Pid, Bytes>();
  let bytes = 0;
  const [root] = recording.processes;
  if (root === undefined || root.endedMs === null || recording.snapshots.length === 0) {
    return { byProcess, bytes };
  }
  const { sites, processes } = recording.profileAt("end");
  sites.liveBytes.forEach((live, row) => {
    const process = processes[sites.process[row] ?? -1];
    if (process !== undefined && sites.domain[row] !== Domain.mapped) {
      byProcess.set(process.pid, (byProcess.get(process.pid) ?? 0) + live);
      bytes += live;
    }
  });
  return { byProcess, bytes };
}
