import { Command, Option } from "commander";
import { shellWord } from "../../model/base/shell_word.js";
import { badUsage } from "../../model/errors/errors.js";
import { asanDocument, buildForAsan, chooseProgram } from "../../sanitizers/index.js";
import type { CommandAbout } from "../options/about.js";
import { withInterrupt } from "../options/interrupt.js";
import { withExamples } from "../options/options.js";
import { withOptionalProgram } from "../options/program_words.js";
import { requireLinux } from "../options/requirements.js";
import { printNote } from "../text/output.js";
import {
  elapsedNote,
  reportFindings,
  requireOutput,
  type ToolOptions,
  withToolOptions,
} from "./tool_run.js";

interface AsanOptions extends ToolOptions {
  readonly build?: string;
  readonly leaks: boolean;
}

export const about: CommandAbout = {
  group: "record",
  summary: "run a program under AddressSanitizer and explain its errors",
  rows: "top only",
};

export function buildCommand(): Command {
  const command = new Command("asan")
    .description(
      "Run a program under AddressSanitizer, about 2 times slower, and explain its first memory error: the C\n" +
        "and Python stacks, the usual causes, and how to fix it. If the run is clean, a second run looks for leaks.\n" +
        "Extensions must be built for it (--build). The exit code is 1 if there is a finding, otherwise the\n" +
        "program's own.",
    )
    .option(
      "--build <folder>",
      "first build the extension in this folder with -fsanitize=address,undefined",
    )
    .addOption(new Option("--no-leaks", "skip the second run, which looks for leaks"));
  withToolOptions(command);
  withOptionalProgram(command);
  return withExamples(
    command,
    "tidemark asan --build . -- python test_extension.py",
    "tidemark asan --build native/",
    "tidemark asan --no-leaks --json asan.json -m pytest -x",
  ).action(asan);
}

async function asan(words: string[], options: AsanOptions): Promise<void> {
  requireLinux();
  const { all = false, module: modules = [], quiet, build, leaks } = options;
  if (words.length === 0 && build === undefined) {
    throw badUsage("asan needs a program, or --build and a folder", "see tidemark asan --help");
  }
  const note = (line: string) => (quiet === true ? undefined : printNote(line));
  const command =
    words.length === 0 ? [] : [...chooseProgram(words, options.python, { tool: "asan" }).command];
  await requireOutput(options);
  const onElapsed = elapsedNote("asan", options);
  await withInterrupt(async (until) => {
    const builds: string[] = [];
    if (build !== undefined) {
      const python = options.python ?? "python3";
      const target =
        command.length === 0 ? [...chooseProgram(["-c", ""], python).command] : command;
      builds.push(await buildForAsan({ folder: build, command: target, until, note }));
    }
    if (command.length === 0) {
      const [folder = ""] = builds;
      note(`built ${folder}; next: PYTHONPATH=${shellWord(folder)} tidemark asan -- COMMAND`);
      return;
    }
    const request = { command, all, modules, until, note, builds, leaks, onElapsed };
    await reportFindings(await asanDocument(request), options, until.aborted);
  });
}
