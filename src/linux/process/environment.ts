import type { Pid } from "../../model/base/units.js";
import { programName } from "../../model/profile/program_name.js";
import { readGroups, unitOf } from "./containers.js";
import { readText } from "./proc_files.js";

/**
 * The environment variables that a process was started with; none if they may not be read. Variables that it
 * sets later are not included.
 */
export function readEnvironment(pid: Pid): Record<string, string> {
  const entries = (readText(`/proc/${pid}/environ`) ?? "").split("\0").flatMap((entry) => {
    const at = entry.indexOf("=");
    return at > 0 ? [[entry.slice(0, at), entry.slice(at + 1)] as const] : [];
  });
  return Object.fromEntries(entries);
}

/** The service of a process whose environment names none: its systemd unit, otherwise its script or module. */
export function usualName(pid: Pid, command: readonly string[]): string {
  return unitOf(readGroups(pid)) || programName(command);
}
