/**
 * Rewrites commander's error messages for invalid command lines, using the command's own options, arguments and
 * examples.
 *
 *   option '--for <time>' argument 'x' is invalid. a duration such as 30s -> --for takes a duration such as 30s, not 'x'
 *   missing required argument 'pid'                  -> detach needs <pid>, as in: tidemark detach 4242
 */
import { type Command, type CommanderError, InvalidArgumentError, type Option } from "commander";
import { didYouMean } from "../../model/base/near_miss.js";
import { badUsage, oneLine, type TidemarkError } from "../../model/errors/errors.js";
import { guessOption } from "./guess.js";
import { exampleOf } from "./options.js";
import { otherFileText } from "./target.js";

interface CommandLine {
  /** As typed after `tidemark`: "heap diff"; "" for none. */
  readonly name: string;
  /** undefined if no command was named. */
  readonly command: Command | undefined;
  readonly commands: readonly Command[];
  readonly words: readonly string[];
}

export function usageError(
  error: CommanderError,
  words: readonly string[],
  commands: readonly Command[],
): TidemarkError {
  const [what = "", hint = ""] = error.message.replace(/^error: /, "").split("\n");
  const line = commandLine(words, commands);
  const help = `see tidemark${line.name === "" ? "" : ` ${line.name}`} --help`;
  const guess = guessOf(what, hint, line);
  const next = guess === undefined ? help : `did you mean ${guess}? ${help}`;
  return badUsage(oneLine(plainWords(what, line)), next);
}

function commandLine(words: readonly string[], commands: readonly Command[]): CommandLine {
  const [first, second] = words;
  const command = commands.find((each) => each.name() === first);
  const below = command?.commands.find((each) => each.name() === second);
  const name = [command, below].flatMap((each) => (each === undefined ? [] : [each.name()]));
  return { name: name.join(" "), command: below ?? command, commands, words };
}

function guessOf(what: string, hint: string, line: CommandLine): string | undefined {
  const unknown = /^unknown option '(--?[\w-]+)/.exec(what)?.[1];
  return unknown === undefined
    ? /\(Did you mean (.*)\?\)/.exec(hint)?.[1]
    : guessOption(unknown, line.words[0] ?? "", line.commands, line.words);
}

function plainWords(what: string, line: CommandLine): string {
  const match = (pattern: RegExp) => pattern.exec(what)?.slice(1);
  const option = match(/^option '(.*?)' argument '(.*)' is invalid\. (.*)$/s);
  if (option !== undefined) {
    const [flags = "", value = "", wanted = ""] = option;
    return `${nameOf(flags)} takes ${notValue(wanted, value)}`;
  }
  const argument = match(/^command-argument value '(.*)' is invalid for argument '.*?'\. (.*)$/s);
  if (argument !== undefined) {
    const [value = "", wanted = ""] = argument;
    const file = value === "" ? undefined : otherFileText(value);
    const given = file === undefined ? "" : `: ${value} is ${file}`;
    return `${line.name} takes ${notValue(wanted, value)}${given}`;
  }
  const empty = match(/^option '(.*)' argument missing$/s);
  if (empty !== undefined) {
    const [flags = ""] = empty;
    return `${nameOf(flags)} takes ${wantedBy(flags, line.command)}, but none is given`;
  }
  const missing = match(/^missing required argument '(.*)'$/s);
  if (missing !== undefined) {
    return `${line.name} needs <${missing[0]}>${choicesOf(missing[0] ?? "", line.command)}`;
  }
  const surplus = match(
    /^too many arguments for '.*'\. Expected (\d+) arguments? but got (\d+)\.?$/s,
  );
  if (surplus !== undefined) {
    const [most, given] = surplus;
    const taken = most === "0" ? "no arguments" : most === "1" ? "1 argument" : `${most} arguments`;
    return `${line.name} takes ${taken}, and ${given} ${given === "1" ? "is" : "are"} given`;
  }
  return what.replace(/\.$/, "");
}

/** "-o, --output <file>" -> "--output". */
function nameOf(flags: string): string {
  return /--[\w-]+/.exec(flags)?.[0] ?? flags;
}

/** "a size such as 64K, not 'x'". Parsers that name the wrong part of the value themselves are left as they are. */
function notValue(wanted: string, value: string): string {
  const choices = /^Allowed choices are (.*)\.$/s.exec(wanted)?.[1];
  const phrase = choices === undefined ? wanted.replace(/\.$/, "") : `one of ${choices}`;
  const guess = choices === undefined ? "" : didYouMean(value, choices.split(", "));
  const near = guess === "" ? "" : ` (${guess})`;
  return /\bnot '/.test(phrase) ? phrase : `${phrase}, not '${value}'${near}`;
}

/** The value that the option's parser expects, from its error message for an empty value. */
function wantedBy(flags: string, command: Command | undefined): string {
  const option = command?.options.find((each) => each.flags === flags);
  const name = /<(.*)>/.exec(flags)?.[1] ?? "value";
  return (option === undefined ? undefined : askParser(option)) ?? `a value (<${name}>)`;
}

function askParser(option: Option): string | undefined {
  try {
    option.parseArg?.("", undefined);
  } catch (error) {
    if (error instanceof InvalidArgumentError) {
      return notValue(error.message, "").replace(/, not '.*$/s, "");
    }
    throw error;
  }
  return undefined;
}

/** Hint for a missing argument: its choices, or the command's first example. */
function choicesOf(argument: string, command: Command | undefined): string {
  const choices = command?.registeredArguments.find(
    (known) => known.name() === argument,
  )?.argChoices;
  const example = command === undefined ? undefined : exampleOf(command);
  if (choices !== undefined) {
    return `: one of ${choices.join(", ")}`;
  }
  return example === undefined ? "" : `, as in: ${example}`;
}
