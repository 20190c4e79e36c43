import { Command, CommanderError } from "commander";
import { TIDEMARK_VERSION } from "../linux/installation.js";
import {
  badUsage,
  fileUnusable,
  internalError,
  oneLine,
  TidemarkError,
} from "../model/errors/errors.js";
import { COMMANDS } from "./command_list.js";
import { COMMAND_GROUPS } from "./options/about.js";

export const COMMAND_NAMES: readonly string[] = COMMANDS.map((entry) => entry.name);

/**
 * Runs one command line (without node and script) and sets `process.exitCode`. Never throws: what
 * goes wrong becomes one line on stderr.
 */
export async function runCommandLine(args: readonly string[]): Promise<void> {
  leaveQuietlyOnClosedPipe();
  try {
    const words = understandHelp(args);
    const program = await buildProgram(words[0] ?? "");
    await program.parseAsync(words, { from: "user" });
  } catch (error) {
    process.exitCode = await reportFailure(error, args);
  }
}

/** `tidemark` alone asks for help, `tidemark help run` for `run --help`. */
function understandHelp(args: readonly string[]): string[] {
  const [first, second] = args;
  if (first === undefined || (first === "help" && second === undefined)) {
    return ["--help"];
  }
  const words = first === "help" ? [second as string, "--help"] : [...args];
  // Of an unknown command commander would show the program's help instead of saying so.
  const known = (words[0] as string).startsWith("-") || COMMAND_NAMES.includes(words[0] as string);
  return known ? words : words.slice(0, 1);
}

/** The program with the named command in full and every other one as a line of the help. */
export async function buildProgram(wanted: string): Promise<Command> {
  const program = new Command("tidemark")
    .description("Where a live Python process's memory goes, why it grows, and who holds it")
    .version(TIDEMARK_VERSION, "-V, --version", "print the version")
    .helpOption("-h, --help", "show this help")
    .helpCommand(false) // understandHelp answers `help`
    .enablePositionalOptions()
    .addHelpText(
      "after",
      "\nStart here:\n  $ tidemark run -- python app.py\n  $ tidemark COMMAND --help",
    );
  for (const [group, heading] of Object.entries(COMMAND_GROUPS)) {
    for (const entry of COMMANDS.filter((command) => command.group === group)) {
      const loaded =
        entry.name === wanted ? (await entry.load()).buildCommand() : new Command(entry.name);
      loaded.summary(entry.summary).helpGroup(heading);
      program.addCommand(loaded.helpOption("-h, --help", "show this help"));
    }
  }
  program.hook("preAction", (_program, called) => refuseSwallowedFlags(called));
  for (const command of [program, ...program.commands]) {
    command
      .exitOverride()
      .configureOutput({ outputError: () => undefined })
      .configureHelp({ commandDescription: (described) => unbroken(described.description()) });
  }
  return program;
}

/**
 * commander takes whatever follows as an option's value: in `run --json -- python app.py` the file
 * would be called `--`. No value that is wanted looks like that.
 */
function refuseSwallowedFlags(called: Command): void {
  const flags = called.options.flatMap(({ long, short }) => [long, short]);
  for (const option of called.options) {
    const value: unknown = called.getOptionValue(option.attributeName());
    const swallowed = value === "--" || flags.some((flag) => flag !== undefined && flag === value);
    if (option.required && swallowed) {
      called.error(`error: option '${option.flags}' argument missing`);
    }
  }
}

/** Paragraphs stay; within one the terminal's width decides where lines end, not the source's. */
function unbroken(description: string): string {
  return description.replace(/(\S)\n(?=\S)/g, "$1 ");
}

/** @returns the exit code. */
async function reportFailure(error: unknown, args: readonly string[]): Promise<number> {
  if (error instanceof CommanderError && error.exitCode === 0) {
    return 0;
  }
  const known = error instanceof CommanderError ? usageError(error, args) : error;
  const failure = known instanceof TidemarkError ? known : internalError(known);
  await printFailure(failure.message);
  if (args.includes("--debug") && error instanceof Error) {
    process.stderr.write(`${error.stack ?? ""}\n`);
  }
  return failure.exitCode;
}

/** commander says "error: unknown option '--jsn'\n(Did you mean --json?)": one line, our words. */
function usageError(error: CommanderError, args: readonly string[]): TidemarkError {
  const [what, hint] = error.message.replace(/^error: /, "").split("\n");
  const guess = /\(Did you mean (.*)\?\)/.exec(hint ?? "")?.[1];
  const command = COMMAND_NAMES.includes(args[0] ?? "") ? ` ${args[0]}` : "";
  const help = `see tidemark${command} --help`;
  return badUsage(
    oneLine((what ?? "").replace(/\.$/, "").replace(" is invalid. ", " is invalid: ")),
    guess === undefined ? help : `did you mean ${guess}? ${help}`,
  );
}

/** What prints is loaded when there is something to print: `--help` stays quick. */
async function printFailure(message: string): Promise<void> {
  const { printError } = await import("./text/output.js");
  printError(message);
}

/** `tidemark summary REC | head` ends like any other program whose reader left. */
function leaveQuietlyOnClosedPipe(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", async (error: NodeJS.ErrnoException) => {
      // On stderr there is nobody left to tell, and `run` still owes the shell its exit code.
      if (stream === process.stderr) {
        return;
      }
      if (error.code !== "EPIPE") {
        await printFailure(fileUnusable("the standard output", "write", error.message).message);
      }
      process.exit(error.code === "EPIPE" ? 0 : 2);
    });
  }
}
