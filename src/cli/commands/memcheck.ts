import { Command } from "commander";
import { chooseProgram, memcheckDocument } from "../../sanitizers/index.js";
import type { CommandAbout } from "../options/about.js";
import { withInterrupt } from "../options/interrupt.js";
import { withExamples } from "../options/options.js";
import { withProgram } from "../options/program_words.js";
import { requireLinux } from "../options/requirements.js";
import { printNote } from "../text/output.js";
import { withProgress } from "../text/progress.js";
import {
  elapsedNote,
  reportFindings,
  requireOutput,
  type ToolOptions,
  withToolOptions,
} from "./tool_run.js";

export const about: CommandAbout = {
  group: "record",
  summary: "run a program under Valgrind and explain its memory errors",
  rows: "top only",
};

export function buildCommand(): Command {
  const command = new Command("memcheck").description(
    "Run a program under Valgrind's Memcheck, and explain the memory errors and leaks of\n" +
      "its extensions: the C and Python stacks, the usual causes, and how to fix them. The program's input and\n" +
      "output are not changed. The exit code is 1 if there is a finding, otherwise the program's own.",
  );
  command.option(
    "--suppressions <file>",
    "leave out the errors that this Valgrind suppression file matches; may be repeated",
    (file: string, before: readonly string[] = []) => [...before, file],
  );
  withToolOptions(command);
  withProgram(command);
  return withExamples(
    command,
    "tidemark memcheck -- python test_extension.py",
    "tidemark memcheck --module numpy -m pytest -x tests/test_arrays.py",
    "tidemark memcheck --suppressions valgrind.supp --json memcheck.json app.py",
  ).action(memcheck);
}

interface MemcheckOptions extends ToolOptions {
  readonly suppressions?: readonly string[];
}

async function memcheck(words: string[], options: MemcheckOptions): Promise<void> {
  requireLinux();
  const { command } = chooseProgram(words, options.python, { tool: "memcheck" });
  await requireOutput(options);
  const { all = false, module: modules = [], quiet, suppressions = [] } = options;
  const note = (line: string) => (quiet === true ? undefined : printNote(line));
  const onElapsed = elapsedNote("memcheck", options);
  await withInterrupt(async (until) => {
    const request = { command, all, modules, suppressions, until, note, onElapsed };
    const document = await withProgress("memcheck", "MiB of XML", options, (onProgress) =>
      memcheckDocument(request, onProgress),
    );
    await reportFindings(document, options, until.aborted);
  });
}
