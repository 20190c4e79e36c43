import type { Bytes, Pid } from "../../model/base/units.js";
import { programName } from "../../model/profile/program_name.js";
import { readGroups, unitOf } from "./containers.js";
import { readTextStart } from "./proc_files.js";

/** The kernel starts no program with a larger one, but a program can move the place where its own is read. */
const LONGEST: Bytes = 2 * 2 ** 20;

/**
 * The environment variables that a process was started with; none if they may not be read. Variables that it
 * sets later are not included.
 */
export function readEnvironment(pid: Pid): Record<string, string> {
  const entries = environmentText(pid)
    .split("\0")
    .flatMap((entry) => {
      const at = entry.indexOf("=");
      return at > 0 ? [[entry.slice(0, at), entry.slice(at + 1)] as const] : [];
    });
  return Object.fromEntries(entries);
}

/** NAME=VALUE, each followed by a NUL; "" if it may not be read. */
export function environmentText(pid: Pid): string {
  return readTextStart(`/proc/${pid}/environ`, LONGEST) ?? "";
}

/** The service of a process whose environment names none: its systemd unit, otherwise its script or module. */
export function usualName(pid: Pid, command: readonly string[]): string {
  return unitOf(readGroups(pid)) || programName(command);
}
