import { Argument, Command } from "commander";
import type { CompletionJson } from "../../model/documents/documents.js";
import { completionScript, SHELLS, type Shell } from "../completion/scripts.js";
import type { CommandAbout } from "../options/about.js";
import { type CommonOptions, withCommonOptions, withExamples } from "../options/options.js";
import { printJson } from "../text/output.js";

export const about: CommandAbout = {
  group: "machine",
  summary: "print the shell completion script for bash, zsh or fish",
  rows: "none",
};

export function buildCommand(): Command {
  const command = new Command("completion")
    .description(
      "Print the script that makes a shell complete commands, options, pids of Python processes and\n" +
        "recordings. Add the line for your shell to its start-up file.",
    )
    .addArgument(new Argument("<shell>", "the shell").choices(SHELLS));
  withCommonOptions(command, "stdout");
  return withExamples(
    command,
    "tidemark completion fish | source            # in config.fish",
    'eval "$(tidemark completion bash)"           # in ~/.bashrc',
    "source <(tidemark completion zsh)            # in ~/.zshrc",
  ).action(completion);
}

function completion(shell: Shell, options: CommonOptions): void {
  const script = completionScript(shell);
  if (options.json === true) {
    printJson({ schema: "tidemark.completion/1", shell, script } satisfies CompletionJson);
  } else {
    process.stdout.write(script);
  }
}
