/**
 * Candidates for the last word of a command line, for shell completion.
 *
 * Commands, options and choices come from commander's command tree, pids from /proc, files from the shell.
 */
import { basename } from "node:path";
import type { Argument, Command, Option } from "commander";
import { commandsOnPath, pythonNames, pythonProcesses } from "../../inspect/index.js";
import { oneLine } from "../../model/errors/errors.js";

export interface Candidate {
  readonly value: string;
  /** A one-line description, for shells that show it; "" if none is needed. */
  readonly text: string;
}

export interface Candidates {
  readonly values: readonly Candidate[];
  /** Which files the shell adds: null none; "" all; ".tidemark" those with this suffix, if there are any. */
  readonly files: string | null;
}

/** Returns the complete command with its options; the program itself for "". */
export type LoadCommand = (name: string) => Promise<Command>;

const RECORDING = ".tidemark";
const LONGEST_TEXT = 70;
const NOTHING: Candidates = { values: [], files: null };

/** @param words after the program's name; the last one is being typed and may be "" */
export async function candidatesFor(
  words: readonly string[],
  load: LoadCommand,
): Promise<Candidates> {
  const current = words.at(-1) ?? "";
  const [first, ...before] = words.slice(0, -1);
  if (first === undefined) {
    return matching(atStart(await load(""), current), current);
  }
  const name = /^\d+$/.test(first) ? "attach" : first === "help" ? "" : first;
  const command = await load(name);
  if (first === "help") {
    return matching({ values: commandsOf(command), files: null }, current);
  }
  return within(command, /^\d+$/.test(first) ? [first, ...before] : before, current);
}

/** The first word: a command, a pid or a file. */
function atStart(program: Command, current: string): Candidates {
  if (current.startsWith("-")) {
    return { values: optionsOf(program, []), files: null };
  }
  if (/^\d/.test(current)) {
    return { values: pids(), files: "" };
  }
  const commands = commandsOf(program);
  const isCommand = commands.some(({ value }) => value.startsWith(current));
  return { values: commands, files: isCommand ? null : "" };
}

function commandsOf(program: Command): Candidate[] {
  return program.commands
    .filter((command) => command.name() !== "help")
    .map((command) => ({ value: command.name(), text: command.summary() }));
}

/** Candidates after a command and the words already typed for it. */
function within(command: Command, before: readonly string[], current: string): Candidates {
  const { owner, waiting, operands, program } = readWords(command, before);
  if (program !== null) {
    return program.length === 0 ? programs(current) : { values: [], files: "" };
  }
  if (waiting !== null) {
    return matchingValue(waiting, current, "");
  }
  const [, flag, value] = /^(--[\w-]+)=(.*)$/s.exec(current) ?? [];
  const assigned = flag === undefined ? undefined : owner.options.find(({ long }) => long === flag);
  if (assigned !== undefined) {
    return matchingValue(assigned, value as string, `${flag}=`);
  }
  if (current.startsWith("-")) {
    return matching({ values: optionsOf(owner, before), files: null }, current);
  }
  if (startsProgram(owner)) {
    return programs(current);
  }
  const argument = owner.registeredArguments[operands] ?? lastVariadic(owner);
  const own = argument === undefined ? NOTHING : ofArgument(argument, current);
  const subcommands = operands === 0 ? commandsOf(owner) : [];
  return matching({ values: [...subcommands, ...own.values], files: own.files }, current);
}

interface ReadWords {
  /** The command, or its subcommand. */
  readonly owner: Command;
  /** The option whose value comes next. */
  readonly waiting: Option | null;
  readonly operands: number;
  /** Words of the program to start, once its first word is typed. */
  readonly program: readonly string[] | null;
}

function readWords(command: Command, words: readonly string[]): ReadWords {
  let owner = command;
  let waiting: Option | null = null;
  let operands = 0;
  for (const [at, word] of words.entries()) {
    if (waiting !== null) {
      waiting = null;
    } else if (
      startsProgram(command) &&
      (!word.startsWith("-") || word === "--" || /^-[mc]/.test(word))
    ) {
      const program = words.slice(word === "--" ? at + 1 : at);
      return { owner, waiting, operands, program };
    } else if (word.startsWith("-") && word !== "-") {
      const option = owner.options.find(({ short, long }) => word === short || word === long);
      waiting = option?.required === true ? option : null;
    } else {
      const subcommand = owner.commands.find((each) => each.name() === word);
      owner = operands === 0 && subcommand !== undefined ? subcommand : owner;
      operands += owner === subcommand ? 0 : 1;
    }
  }
  return { owner, waiting, operands, program: null };
}

/** As `run`: options/program_words.ts. */
function startsProgram(command: Command): boolean {
  return command.registeredArguments[0]?.name() === "program";
}

function lastVariadic(command: Command): Argument | undefined {
  const last = command.registeredArguments.at(-1);
  return last?.variadic === true ? last : undefined;
}

function optionsOf(command: Command, used: readonly string[]): Candidate[] {
  const options = command.createHelp().visibleOptions(command);
  return options
    .filter(({ long, short }) => !used.some((word) => word === long || word === short))
    .flatMap(({ long, short, description }) => {
      const value = long ?? short;
      return value === undefined ? [] : [{ value, text: shortText(description) }];
    });
}

/** Candidates for an argument, derived from its name and description. */
function ofArgument(argument: Argument, current: string): Candidates {
  if (argument.argChoices !== undefined) {
    return { values: argument.argChoices.map(bare), files: null };
  }
  const about = `${argument.name()} ${argument.description}`;
  const takesRecording = /recording|\.tidemark/i.test(about);
  if (takesRecording && current.includes("@")) {
    const path = current.slice(0, current.lastIndexOf("@") + 1);
    return { values: ["peak", "end"].map((moment) => bare(path + moment)), files: null };
  }
  const takesPid = /\bpid\b|\bprocess\b/i.test(about);
  const takesFile = takesRecording || /file|core|snapshot|log|moment/i.test(about);
  return {
    values: takesPid && !/[/.]/.test(current) ? pids() : [],
    files: takesFile ? (takesRecording ? RECORDING : "") : null,
  };
}

function ofOption(option: Option): Candidates {
  if (option.argChoices !== undefined) {
    return { values: option.argChoices.map(bare), files: null };
  }
  const placeholder = /<(.*)>/.exec(option.flags)?.[1] ?? "";
  switch (placeholder) {
    case "pid":
      return { values: pids(), files: null };
    case "python":
      return { values: pythonNames().map(bare), files: "" };
    case "moment":
      return { values: ["peak", "end"].map(bare), files: null };
    case "recording":
      return { values: [], files: RECORDING };
    case "file":
      return { values: [], files: "" };
    case "time":
      return { values: ["10s", "30s", "60s", "5min", "1h"].map(bare), files: null };
    default:
      return NOTHING;
  }
}

/** Values of an option, each with `prefix`; if the option takes a list, values are separated by commas. */
function matchingValue(option: Option, typed: string, prefix: string): Candidates {
  const { values, files } = ofOption(option);
  const list = /s>$/.test(option.flags) ? typed.slice(0, typed.lastIndexOf(",") + 1) : "";
  const whole = values.map(({ value, text }) => ({ value: `${prefix}${list}${value}`, text }));
  return matching({ values: whole, files }, prefix + typed);
}

/**
 * The shell completes scripts and folders. Commands of PATH are listed only after the first letter, because
 * there are thousands.
 */
function programs(current: string): Candidates {
  const commands = current === "" || current.includes("/") ? [] : commandsOnPath(current);
  return { values: commands.map(bare), files: "" };
}

function pids(): Candidate[] {
  return pythonProcesses().map(({ pid, command }) => ({
    value: String(pid),
    text: shortText([basename(command[0] ?? ""), ...command.slice(1)].join(" ")),
  }));
}

function matching({ values, files }: Candidates, current: string): Candidates {
  return { values: values.filter(({ value }) => value.startsWith(current)), files };
}

function bare(value: string): Candidate {
  return { value, text: "" };
}

/** The first words of the text, on one line. */
function shortText(text: string): string {
  return oneLine(text.replace(/\s+/g, " "), LONGEST_TEXT);
}
