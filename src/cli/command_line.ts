import { Command, CommanderError } from "commander";
import { TIDEMARK_VERSION } from "../linux/installation.js";
import {
  type DeniedFile,
  fileUnusable,
  internalError,
  type MissingFile,
  type OtherFile,
  TidemarkError,
} from "../model/errors/errors.js";
import { COMMANDS } from "./command_list.js";
import { COMMAND_GROUPS } from "./options/about.js";
import { columnsOf, drawableColumns } from "./text/columns.js";

export const COMMAND_NAMES: readonly string[] = COMMANDS.map((entry) => entry.name);

/**
 * Runs one command line (without node and script) and sets `process.exitCode`. Never throws: what
 * goes wrong becomes one line on stderr.
 */
export async function runCommandLine(args: readonly string[]): Promise<void> {
  leaveQuietlyOnClosedPipe();
  if (args[0] === "__complete") {
    const { answerShell } = await import("./completion/answer.js");
    return answerShell(args.slice(1), commandNamed);
  }
  let words = args;
  try {
    words = await understand(args);
    const program = await buildProgram(words[0] ?? "");
    await program.parseAsync(words, { from: "user" });
  } catch (error) {
    process.exitCode = await reportFailure(error, words);
  }
}

/** `tidemark` alone asks for help, `tidemark help run` for `run --help`, `tidemark 4242` for `attach 4242`. */
async function understand(args: readonly string[]): Promise<string[]> {
  const [first, second] = args;
  if ((first === "-v" || first === "version") && second === undefined) {
    return ["--version"];
  }
  if (first === undefined || (first === "help" && second === undefined)) {
    return ["--help"];
  }
  if (first === "help") {
    // Of an unknown command commander would show the program's help instead of reporting it.
    return COMMAND_NAMES.includes(second as string)
      ? [second as string, "--help"]
      : [second as string];
  }
  if (first.startsWith("-") || COMMAND_NAMES.includes(first)) {
    return [...args];
  }
  const { withCommand } = await import("./options/target.js");
  return withCommand(args, COMMAND_NAMES);
}

/** A command in full; the program itself for "". */
async function commandNamed(name: string): Promise<Command> {
  const program = await buildProgram(name);
  return program.commands.find((command) => command.name() === name) ?? program;
}

/** The program with every command in full, for what looks at all of them. */
export function everyCommand(): Promise<Command> {
  return buildProgram(...COMMAND_NAMES);
}

/** The program with the named commands in full and every other one as a line of the help. */
export async function buildProgram(...wanted: string[]): Promise<Command> {
  const program = new Command("tidemark")
    .description("Where a live Python process's memory goes, why it grows, and who holds it")
    .version(TIDEMARK_VERSION, "-V, --version", "print the version")
    .helpOption("-h, --help", "show this help")
    .helpCommand(false) // `understand` answers `help`
    .usage("COMMAND [options] | PID | FILE...")
    .enablePositionalOptions()
    .addHelpText(
      "after",
      [
        "",
        "Start here:",
        "  $ tidemark run app.py        a script, -m MODULE, or a command such as pytest",
        "  $ tidemark 4242              attach to a process",
        "  $ tidemark app.tidemark      a recording, an allocator snapshot, a core file",
        "  $ tidemark COMMAND --help",
      ].join("\n"),
    );
  for (const [group, heading] of Object.entries(COMMAND_GROUPS)) {
    for (const entry of COMMANDS.filter((command) => command.group === group)) {
      const loaded = wanted.includes(entry.name)
        ? (await entry.load()).buildCommand()
        : new Command(entry.name);
      loaded.summary(entry.summary).helpGroup(heading);
      program.addCommand(loaded.helpOption("-h, --help", "show this help"));
    }
  }
  program.hook("preAction", (_program, called) => refuseSwallowedFlags(called));
  for (const command of withSubcommands(program)) {
    command
      .exitOverride()
      .configureOutput({ outputError: () => undefined, getOutHelpWidth: helpWidth })
      .configureHelp({ commandDescription: (described) => unbroken(described.description()) });
  }
  return program;
}

function withSubcommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(withSubcommands)];
}

/**
 * commander takes whatever follows as an option's value: in `run --json -- python app.py` the file
 * would be called `--`. No value that is wanted looks like that, nor is it empty, as that of an unset variable.
 */
function refuseSwallowedFlags(called: Command): void {
  const flags = called.options.flatMap(({ long, short }) => [long, short]);
  for (const option of called.options) {
    const value: unknown = called.getOptionValue(option.attributeName());
    const swallowed = value === "--" || flags.some((flag) => flag !== undefined && flag === value);
    const empty = value === "" && option.long !== "--filter"; // which then shows all
    if (option.required && (swallowed || empty)) {
      called.error(`error: option '${option.flags}' argument missing`);
    }
  }
}

function helpWidth(): number {
  return drawableColumns(columnsOf(process.stdout));
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
  const known = error instanceof CommanderError ? await plainUsageError(error, args) : error;
  const failure = known instanceof TidemarkError ? known : internalError(known);
  const guess = await nearFile(failure);
  const owner = await ownerOfDenied(failure);
  const other = await otherFile(failure);
  await printFailure(
    (other === "" ? failure.message : `${failure.id} ${failure.what}: it is ${other}`) +
      (guess === "" ? "" : `; ${guess}`) +
      (owner === "" ? "" : `: ${owner}`),
  );
  if (args.includes("--debug") && error instanceof Error) {
    process.stderr.write(`${error.stack ?? ""}\n`);
  }
  return failure.exitCode;
}

/** Names the kind of a file that the command cannot read, and the command that can; "" if the kind is not known. */
async function otherFile({ cause }: TidemarkError): Promise<string> {
  const { otherPath = "" } = (cause ?? {}) as Partial<OtherFile>;
  return otherPath === ""
    ? ""
    : ((await import("./options/target.js")).otherFileText(otherPath) ?? "");
}

/** Whose the file is, or the folder that it would be in: "app.tidemark belongs to root", or "". */
async function ownerOfDenied({ cause }: TidemarkError): Promise<string> {
  const { deniedPath = "" } = (cause ?? {}) as Partial<DeniedFile>;
  return deniedPath === "" ? "" : (await import("./files/owner.js")).ownerSentence(deniedPath);
}

async function plainUsageError(
  error: CommanderError,
  args: readonly string[],
): Promise<TidemarkError> {
  const { usageError } = await import("./options/usage_error.js");
  return usageError(error, args, (await everyCommand()).commands);
}

/** A file beside the missing one that may have been meant: "did you mean app.tidemark?", or "". */
async function nearFile({ cause }: TidemarkError): Promise<string> {
  const { missingPath = "" } = (cause ?? {}) as Partial<MissingFile>;
  return missingPath === "" ? "" : (await import("./options/guess.js")).guessFile(missingPath);
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
