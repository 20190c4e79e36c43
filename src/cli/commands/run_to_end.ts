/** Shared by `run` and `check`: runs a program under the agent and returns its exit code to the shell. */
import { resolve } from "node:path";
import {
  chooseProgram,
  completeRun,
  firstRunRemarks,
  orphanToComplete,
  type RunResult,
  runUnderAgent,
} from "../../inspect/index.js";
import type { Bytes } from "../../model/base/units.js";
import { badUsage, TidemarkError } from "../../model/errors/errors.js";
import { programNotStarted } from "../../model/errors/program_errors.js";
import { statOf } from "../files/files.js";
import type { Replacing } from "../files/own_files.js";
import { chooseRecordingPath, requireNoInput } from "../files/recording_path.js";
import { requireWritable } from "../files/write_whole.js";
import { periodRemarks } from "../options/period.js";
import { guardDescriptor, requireLinux } from "../options/requirements.js";
import { printError, printNotes } from "../text/output.js";

export interface ProgramOptions {
  readonly output?: string;
  readonly force?: boolean;
  readonly python?: string;
  readonly native?: boolean;
  readonly copies?: boolean;
  readonly period?: Bytes;
  readonly follow: boolean;
  readonly quiet?: boolean;
  readonly debug?: boolean;
}

type RunUnderAgent = Parameters<typeof runUnderAgent>[0];

export interface Ending {
  /** The files that are written besides the recording, and what each may overwrite. */
  readonly outputs: readonly (readonly [path: string, replacing: Replacing])[];
  /** Files that are read. */
  readonly inputs?: readonly string[];
  /** Further options of the recording; called once the other options have been checked. */
  readonly recorded?: (command: readonly string[]) => Partial<RunUnderAgent>;
  /** Reports how the program ended. @returns the exit code */
  readonly printEnd: (result: RunResult) => Promise<number>;
  /** The exit code if `printEnd` fails; without it the program's. */
  readonly exitCodeOnFailure?: number;
}

/** Everything here is written to stderr, because stdout belongs to the program. */
export async function runToEnd(
  name: "run" | "check",
  words: string[],
  options: ProgramOptions,
  ending: Ending,
): Promise<void> {
  requireLinux();
  const descriptor = guardDescriptor(name);
  // The first recorder ran out of memory and left the rest to this one.
  const orphan = orphanToComplete();
  const { command, note } = chooseProgram(words, options.python, { tool: name });
  const result =
    orphan === null
      ? await start(command, options, { ending, descriptor, note })
      : await completeRun(orphan, descriptor);
  if (result.handedOver) {
    return;
  }
  // The program has ended. The shell gets an exit code, even if the summary or the check fails.
  let exitCode = result.exitCode;
  try {
    if (result.startFailure !== null) {
      const status = result.exitCode === 127 ? 127 : 126;
      printError(programNotStarted(command[0] ?? "", result.startFailure, status).message);
    } else {
      exitCode = ending.exitCodeOnFailure ?? result.exitCode;
      exitCode = await ending.printEnd(result);
    }
  } catch (error) {
    if (!(error instanceof TidemarkError) || options.debug === true) {
      throw error;
    }
    printError(error.message);
  } finally {
    process.exitCode = exitCode;
    result.leave(exitCode);
  }
}

async function start(
  command: readonly string[],
  options: ProgramOptions,
  {
    ending,
    descriptor,
    note,
  }: { readonly ending: Ending; readonly descriptor: number; readonly note: string | null },
): Promise<RunResult> {
  const { outputs, inputs = [], recorded } = ending;
  const written = outputs.map(([path]) => path);
  requireDistinct([...written, ...(options.output === undefined ? [] : [options.output])], inputs);
  for (const [output, replacing] of outputs) {
    requireNoInput(output, command);
    await requireWritable(output, replacing);
  }
  requireNoInput(options.output, command);
  const also = recorded?.(command);
  const recordingPath = chooseRecordingPath(command, options);
  if (options.quiet !== true) {
    printNotes([
      ...(note === null ? [] : [note]),
      ...periodRemarks(options.period),
      ...firstRunRemarks(command[0] ?? ""),
    ]);
  }
  return runUnderAgent({
    command,
    recordingPath,
    guardDescriptor: descriptor,
    ...(options.period === undefined ? {} : { periodBytes: options.period }),
    ...also,
    native: options.native === true,
    copies: options.copies === true,
    follow: options.follow,
  });
}

/** Throws TidemarkError if two options name the same output file, even with --force, or a file that is read. */
function requireDistinct(written: readonly string[], read: readonly string[]): void {
  for (const [index, path] of written.entries()) {
    if (path === "-") {
      throw badUsage("'-' is not possible here: the program uses standard output", "name a file");
    }
    const others = [...written.slice(0, index), ...read].map((other) => resolve(other));
    const isDevice = statOf(path)?.isFile() === false; // such as /dev/null
    if (!isDevice && others.includes(resolve(path))) {
      throw badUsage(`two options name ${path}`, "name two files");
    }
  }
}
