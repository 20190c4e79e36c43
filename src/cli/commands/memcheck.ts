import { Command } from "commander";
import { chooseProgram, memcheckDocument } from "../../sanitizers/index.js";
import type { CommandAbout } from "../options/about.js";
import { withInterrupt } from "../options/interrupt.js";
import { withExamples } from "../options/options.js";
import { withProgram } from "../options/program_words.js";
import { requireLinux } from "../options/requirements.js";
import { printNote } from "../text/output.js";
import { withProgress } from "../text/progress.js";
import { reportFindings, type ToolOptions, withToolOptions } from "./tool_run.js";

export const about: CommandAbout = {
  group: "record",
  summary: "run a program under Valgrind and explain its memory errors",
  rows: "top only",
};

export function buildCommand(): Command {
  const command = new Command("memcheck").description(
    "Run a program under Valgrind's Memcheck, 20 to 50 times slower, and explain the memory errors and leaks of\n" +
      "its extensions: the C and Python stacks, the usual causes, and how to fix them. The program's input and\n" +
      "output are not changed. The exit code is 1 if there is a finding, otherwise the program's own.",
  );
  withToolOptions(command);
  withProgram(command);
  return withExamples(
    command,
    "tidemark memcheck -- python test_extension.py",
    "tidemark memcheck --module numpy -m pytest -x tests/test_arrays.py",
    "tidemark memcheck --json memcheck.json --all app.py",
  ).action(memcheck);
}

async function memcheck(words: string[], options: ToolOptions): Promise<void> {
  requireLinux();
  const { command } = chooseProgram(words, options.python);
  const { all = false, module: modules = [], quiet } = options;
  const note = (line: string) => (quiet === true ? undefined : printNote(line));
  const document = await withInterrupt((until) =>
    withProgress("memcheck", "MiB of XML", options, (onProgress) =>
      memcheckDocument({ command, all, modules, until, note }, onProgress),
    ),
  );
  await reportFindings(document, options);
}
