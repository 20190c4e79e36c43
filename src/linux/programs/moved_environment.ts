/**
 * The environment of a process that sets its own title. Such a process writes the title over the arguments that the
 * kernel gave it, and over the environment after them (setproctitle, PostgreSQL's ps_status.c). Its variables are then
 * where `environ` of its C library points, and /proc/PID/environ contains the rest of the title, or only NULs.
 */
import type { Bytes, Pid } from "../../model/base/units.js";
import { DynamicSymbols } from "../elf/dynamic_symbols.js";
import { MemoryReader } from "../memory/memory_reader.js";
import { openProcessMemory } from "../memory/process_memory.js";

const MOST_VARIABLES = 4096;

/** Whether this text of /proc/PID/environ is no longer the environment. No variable is empty. */
export function isOverwritten(text: string): boolean {
  return text !== "" && (text.startsWith("\0") || text.includes("\0\0") || !text.includes("="));
}

/** NAME=VALUE, each followed by a NUL, at most `most` bytes; "" if it cannot be read. */
export function movedEnvironment(pid: Pid, most: Bytes): string {
  try {
    const memory = openProcessMemory(pid);
    try {
      // The executable comes first. If it uses the variable itself, the library's is a name for the executable's.
      for (const object of DynamicSymbols.all(memory)) {
        const address = object.find("environ");
        if (address !== null) {
          return variablesAt(new MemoryReader(memory), address, most);
        }
      }
      return "";
    } finally {
      memory.close();
    }
  } catch {
    return ""; // it has ended, may not be read, or has changed its environment meanwhile
  }
}

function variablesAt(reader: MemoryReader, environ: number, most: Bytes): string {
  const table = reader.pointer(environ);
  let text = "";
  for (let i = 0; table !== 0 && i < MOST_VARIABLES && text.length < most; i++) {
    const variable = reader.pointer(table + i * 8);
    if (variable === 0) {
      break;
    }
    text += `${reader.cstring(variable, most - text.length)}\0`;
  }
  return text;
}
