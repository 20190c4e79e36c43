import { Command, Option } from "commander";
import { selectStacks, stacksDocument } from "../../inspect/index.js";
import type { Pid } from "../../model/base/units.js";
import type { CommandAbout } from "../options/about.js";
import {
  type CommonOptions,
  parseCount,
  unmatchedText,
  withCommonOptions,
  withExamples,
} from "../options/options.js";
import { parsePid } from "../options/pids.js";
import { requireLinux } from "../options/requirements.js";
import { printStacks } from "../screens/stacks.js";
import { printJson, screenOf } from "../text/output.js";

interface StacksOptions extends CommonOptions {
  readonly native?: boolean;
  readonly top?: number;
  readonly filter?: string;
}

export const about: CommandAbout = {
  group: "processes",
  summary: "print the Python stacks of all threads and asyncio tasks",
  rows: "without size",
};

export function buildCommand(): Command {
  const command = new Command("stacks")
    .description(
      "The Python stacks of all threads of a process, which one holds the GIL, and its asyncio tasks\n" +
        "with what each awaits. Reads from outside; the process is paused for a few milliseconds.",
    )
    .argument("<pid>", "the process", parsePid)
    .option(
      "--native",
      "also show native frames, and threads that run no Python (unwound from a copy, " +
        "after the process resumes)",
    )
    .addOption(
      new Option("--top <n>", "at most this many threads and tasks (default all)").argParser(
        parseCount,
      ),
    )
    .option("--filter <text>", "only threads and tasks whose name or stack contains this text");
  withCommonOptions(command, "stdout");
  return withExamples(
    command,
    "tidemark stacks 4242",
    "tidemark stacks 4242 --native",
    "tidemark stacks 4242 --filter worker",
    "tidemark stacks 4242 --json",
  ).action(stacks);
}

async function stacks(pid: Pid, options: StacksOptions): Promise<void> {
  requireLinux();
  const document = selectStacks(await stacksDocument(pid, options.native === true), options);
  if (options.json === true) {
    printJson(document);
  } else {
    printStacks(screenOf(process.stdout), document, {
      quiet: options.quiet === true,
      unmatched: unmatchedText(options) ?? "no thread",
    });
  }
}
