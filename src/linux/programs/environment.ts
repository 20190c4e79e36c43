import type { Bytes, Pid } from "../../model/base/units.js";
import { baseName } from "../../model/profile/frame_text.js";
import { nameInTitle, programName } from "../../model/profile/program_name.js";
import { readGroups, unitOf } from "../process/containers.js";
import { readTextStart } from "../process/proc_files.js";
import { readExecutable } from "../process/process.js";
import { isOverwritten, movedEnvironment } from "./moved_environment.js";

/** The kernel starts no program with a larger one, but a program can move the place where its own is read. */
const LONGEST: Bytes = 2 * 2 ** 20;

/**
 * The environment variables that a process was started with; none if they may not be read. Variables that it
 * sets later are included only if it has overwritten the others with its title.
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
  const text = readTextStart(`/proc/${pid}/environ`, LONGEST) ?? "";
  return isOverwritten(text) ? movedEnvironment(pid, LONGEST) : text;
}

/** The service of a process whose environment names none: its systemd unit, otherwise its script, module or title. */
export function usualName(pid: Pid, command: readonly string[]): string {
  const [word = ""] = command;
  const isTitle = command.length === 1 && baseName(word) !== baseName(readExecutable(pid) ?? word);
  return unitOf(readGroups(pid)) || (isTitle ? nameInTitle(word) : programName(command));
}
