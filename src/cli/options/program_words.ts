/** The program that a command starts: the words after the command's own options. */
import type { Command } from "commander";

/**
 * Adds `--python` and the words of a program to a command. The program begins at the first word that is not an
 * option, at `-m` or `-c` (options of Python), or after `--`; every later option belongs to the program.
 */
export function withProgram(command: Command): Command {
  return withWords(command, "<program...>");
}

/** The same for a command that can do without a program. */
export function withOptionalProgram(command: Command): Command {
  return withWords(command, "[program...]");
}

function withWords(command: Command, words: string): Command {
  command
    .usage("[options] SCRIPT | -m MODULE | COMMAND [arguments...]")
    .argument(words, "a script, -m and a module, or a command, and its arguments")
    .option(
      "--python <python>",
      "the Python for a script, a module or a command that was installed for it: a path, a name or version on PATH, or a virtual environment",
    )
    .passThroughOptions();
  const parse = command.parseOptions.bind(command);
  command.parseOptions = (words) => parse(separated(command, words));
  return command;
}

/** Inserts `--` before a program that begins with `-m` or `-c`. */
function separated(command: Command, words: readonly string[]): string[] {
  for (let at = 0; at < words.length; at++) {
    const word = words[at] as string;
    if (/^-[mc]/.test(word)) {
      return [...words.slice(0, at), "--", ...words.slice(at)];
    }
    if (word === "--" || word === "-" || !word.startsWith("-")) {
      break;
    }
    const option = command.options.find(({ short, long }) => word === short || word === long);
    at += option?.required === true ? 1 : 0;
  }
  return [...words];
}
