/** Options and output that `memcheck` and `asan` share. They print to stderr, because stdout belongs to the program. */
import { writeFile } from "node:fs/promises";
import { constants } from "node:os";
import type { Command } from "commander";
import { formatDuration } from "../../model/base/numbers.js";
import type { Millis } from "../../model/base/units.js";
import type { MemcheckJson } from "../../model/documents/memcheck_document.js";
import { runInterrupted } from "../../model/errors/tool_errors.js";
import { ownKind } from "../files/own_files.js";
import { requireWritable, writeWhole } from "../files/write_whole.js";
import { parseCount, parseJsonFile } from "../options/options.js";
import { printMemcheck } from "../screens/memcheck.js";
import { printNote, screenOf } from "../text/output.js";

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
    .option("--json <file>", "write the findings as JSON to this file", parseJsonFile)
    .option("-f, --force", "overwrite the file that --json names")
    .option("--quiet", "print nothing without a finding")
    .option("--debug", "show the stack of an error of Tidemark");
}

/** The elapsed time as a line of its own, as the program may write to the same terminal; only there. */
export function elapsedNote(tool: string, { quiet, json }: ToolOptions) {
  const isShown = quiet !== true && json === undefined && process.stderr.isTTY === true;
  return (elapsedMs: Millis) =>
    isShown
      ? printNote(`${tool}: ${formatDuration(elapsedMs)} elapsed, the program is still running`)
      : undefined;
}

/** Checks before the program runs that its findings can be written. Throws TM-E017, TM-E004. */
export async function requireOutput({ json, force }: ToolOptions): Promise<void> {
  if (json !== undefined) {
    await requireWritable(json, { force, isOwn: ownKind("document") });
  }
}

/** Prints and writes the findings, and sets the exit code. Throws TM-E093 after an interrupt. */
export async function reportFindings(
  document: MemcheckJson,
  options: ToolOptions,
  isInterrupted: boolean,
): Promise<void> {
  const { json, force, quiet, top = DEFAULT_TOP } = options;
  const { errors, leaks, exitCode, signal } = document;
  const isFinding = errors.length + leaks.length > 0;
  if (isFinding || quiet !== true) {
    printMemcheck(screenOf(process.stderr), document, top);
  }
  if (json !== undefined) {
    const text = `${JSON.stringify(document, null, 2)}\n`;
    await writeWhole(json, { force, isOwn: ownKind("document") }, (file) => writeFile(file, text));
  }
  if (isInterrupted) {
    throw runInterrupted(
      isFinding ? "the findings up to then are above" : "nothing was found up to then",
    );
  }
  const number = signal === null ? 0 : (constants.signals[signal as NodeJS.Signals] ?? 0);
  process.exitCode = isFinding ? FINDING : (exitCode ?? 128 + number);
}
