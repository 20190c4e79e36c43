/** Options and ending that `memcheck` and `asan` share. All their words go to stderr: stdout is the program's. */
import { writeFile } from "node:fs/promises";
import { constants } from "node:os";
import type { Command } from "commander";
import type { MemcheckJson } from "../../model/documents/memcheck_document.js";
import { ownKind } from "../files/own_files.js";
import { writeWhole } from "../files/write_whole.js";
import { parseCount } from "../options/options.js";
import { printMemcheck } from "../screens/memcheck.js";
import { screenOf } from "../text/output.js";

export interface ToolOptions {
  readonly all?: boolean;
  readonly module?: readonly string[];
  readonly top?: number;
  readonly json?: string;
  readonly force?: boolean;
  readonly python?: string;
  readonly quiet?: boolean;
  readonly debug?: boolean;
}

const DEFAULT_TOP = 10;
const FINDING = 1;

export function withToolOptions(command: Command): Command {
  return command
    .option("--all", "also show errors of the interpreter, installed libraries and the system")
    .option(
      "--module <name>",
      "also show errors of this installed package, such as numpy",
      (name: string, before: readonly string[] = []) => [...before, name],
    )
    .option(
      "--top <n>",
      `show at most this many findings (default ${DEFAULT_TOP}; 0: all)`,
      parseCount,
    )
    .option("--json <file>", "write the findings as JSON to this file")
    .option("-f, --force", "overwrite the file that --json names")
    .option("--quiet", "print nothing without a finding")
    .option("--debug", "show the stack of an error");
}

/** Prints and writes the findings, and sets the exit code. */
export async function reportFindings(document: MemcheckJson, options: ToolOptions): Promise<void> {
  const { json, force, quiet, top = DEFAULT_TOP } = options;
  const { errors, leaks, exitCode, signal } = document;
  const isFinding = errors.length + leaks.length > 0;
  if (json !== undefined) {
    const text = `${JSON.stringify(document, null, 2)}\n`;
    await writeWhole(json, { force, isOwn: ownKind("document") }, (file) => writeFile(file, text));
  }
  if (isFinding || quiet !== true) {
    printMemcheck(screenOf(process.stderr), document, top);
  }
  const number = signal === null ? 0 : (constants.signals[signal as NodeJS.Signals] ?? 0);
  process.exitCode = isFinding ? FINDING : (exitCode ?? 128 + number);
}
