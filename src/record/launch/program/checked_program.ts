/** Programs that are run beside a preloaded library or under a tool. */
import { basename } from "node:path";
import { inspectProgram } from "../../../linux/index.js";
import { programNotStarted } from "../../../model/errors/program_errors.js";
import { interpreterOf, type StartedPython } from "./interpreter_of.js";

export interface CheckedProgram {
  readonly command: readonly string[];
  /** null: the command starts no Python that is recognized. */
  readonly python: StartedPython | null;
}

/**
 * The command, with the interpreter itself in place of a shell script that only chooses one, as pyenv installs it. Throws
 * TM-E009 for a program whose allocations no library can see.
 */
export function checkedProgram(command: readonly string[]): CheckedProgram {
  const [name = "", ...rest] = command;
  const { kind, path, chain } = inspectProgram(command);
  if (kind === "static") {
    throw programNotStarted(
      name,
      `${path} is statically linked, so its calls of malloc and free cannot be seen`,
      126,
      "link it dynamically",
    );
  }
  if (kind === "setuid") {
    throw programNotStarted(
      name,
      `${path} runs as another user or group (set-user-id), where the loader ignores preloaded libraries`,
      126,
      "start a copy without this permission",
    );
  }
  const python = interpreterOf(command);
  const isShim = /^python[\d.]*t?$/.test(basename(name)) && chain.length > 1;
  return python !== null && isShim
    ? { command: [python.started, ...rest], python: { ...python, path: python.started } }
    : { command, python };
}
