import { InvalidArgumentError } from "commander";
import type { Pid } from "../../model/base/units.js";

/** Parses "4242" as a pid; throws the error that commander prints. */
export function parsePid(text: string): Pid {
  const pid = /^\d+$/.test(text) ? Number(text) : 0;
  if (!(pid > 0 && pid < 2 ** 31)) {
    throw new InvalidArgumentError("a process id such as 4242 (tidemark ps lists them)");
  }
  return pid;
}

/** A pid, or the path of a core file. */
export function parsePidOrCore(text: string): Pid | string {
  return /^[-+]?\d+$/.test(text) ? parsePid(text) : text;
}
