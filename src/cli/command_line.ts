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
import { diskFailure } from "../model/errors/system_errors.js";
import { COMMANDS } from "./command_list.js";
import { COMMAND_GROUPS } from "./options/about.js";
import { columnsOf, drawableColumns } from "./text/columns.js";

export const COMMAND_NAMES: readonly string[] = COMMANDS.map((entry) => entry.name);

/**
 * Runs one command line (without node and script) and sets `process.exitCode`. Never throws: errors become one
 * line on stderr.
 */
export async function runCommandLine(args: readonly string[]): Promise<void> {
  leaveQuietlyOnClosedPipe();
  if (args[0] === "__complete") {
    const { answerShell } = await import("./completion/answer.js");
    return answerShell(args.slice(1), commandNamed);
  }
  let words = args;
  const finished = failIfUnfinished(args);
  try {
    words = await understand(args);
    const program = await buildProgram(words[0] ?? "");
    await program.parseAsync(words, { from: "user" });
  } catch (error) {
    process.exitCode = await reportFailure(error, words);
  } finally {
    finished();
  }
}

/**
 * Node ends with the exit code of success once nothing can happen any more, even if the command still waits for
 * something. @returns what to call when the command has finished.
 */
function failIfUnfinished(args: readonly string[]): () => void {
  const fail = async () => {
    process.exitCode = await reportFailure(new Error("the command ended before it was done"), args);
  };
  process.once("beforeExit", fail);
  return () => {
    process.off("beforeExit", fail);
  };
}

/** `tidemark` means `--help`, `tidemark help run` means `run --help`, `tidemark 4242` means `attach 4242`. */
async function understand(args: readonly string[]): Promise<string[]> {
  const [first, second] = args;
  if ((first === "-v" || first === "version") && second === undefined) {
    return ["--version"];
  }
  if (first === undefined || (first === "help" && second === undefined)) {
    return ["--help"];
  }
  if (first === "help") {
    // For an unknown command, commander would show the program's help instead of an error.
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

/** The complete command; the program itself for "". */
async function commandNamed(name: string): Promise<Command> {
  const program = await buildProgram(name);
  return program.commands.find((command) => command.name() === name) ?? program;
}

/** The program with every command complete, for code that needs all of them. */
export function everyCommand(): Promise<Command> {
  return buildProgram(...COMMAND_NAMES);
}

/** The program with the named commands complete, and every other command only as a line of the help. */
export async function buildProgram(...wanted: string[]): Promise<Command> {
  const program = new Command("tidemark")
    .description("Where a live Python process's memory goes, why it grows, and what holds it")
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
 * commander accepts any next word as an option's value: in `run --json -- python app.py` the file would be
 * called `--`. No intended value looks like that, and none is empty (as from an unset variable).
 */
function refuseSwallowedFlags(called: Command): void {
  const flags = called.options.flatMap(({ long, short }) => [long, short]);
  for (const option of called.options) {
    const value: unknown = called.getOptionValue(option.attributeName());
    const swallowed = value === "--" || flags.some((flag) => flag !== undefined && flag === value);
    const empty = value === "" && option.long !== "--filter"; // the command itself shows all of it
    if (option.required && (swallowed || empty)) {
      called.error(`error: option '${option.flags}' argument missing`);
    }
  }
}

function helpWidth(): number {
  return drawableColumns(columnsOf(process.stdout));
}

/** Keeps paragraphs, but wraps their lines to the terminal's width instead of the source's. */
function unbroken(description: string): string {
  return description.replace(/(\S)\n(?=\S)/g, "$1 ");
}

/** @returns the exit code. */
async function reportFailure(error: unknown, args: readonly string[]): Promise<number> {
  if (error instanceof CommanderError && error.exitCode === 0) {
    return 0;
  }
  const known = error instanceof CommanderError ? await plainUsageError(error, args) : error;
  const failure =
    known instanceof TidemarkError ? known : (diskFailure(known) ?? internalError(known));
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

/** Names the kind of a file that the command cannot read, and the command that can; "" if the kind is unknown. */
async function otherFile({ id, cause }: TidemarkError): Promise<string> {
  const { otherPath = "" } = (cause ?? {}) as Partial<OtherFile>;
  if (otherPath === "") {
    return "";
  }
  const text = (await import("./options/target.js")).otherFileText(otherPath) ?? "";
  // `import` refused it itself, and names the formats that it reads.
  return id === "TM-E018" && text.includes("tidemark import") ? "" : text;
}

/** The owner of the file, or of the folder it would be in: "app.tidemark belongs to root", or "". */
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

/** A file in the same folder with a similar name: "did you mean app.tidemark?", or "". */
async function nearFile({ cause }: TidemarkError): Promise<string> {
  const { missingPath = "" } = (cause ?? {}) as Partial<MissingFile>;
  return missingPath === "" ? "" : (await import("./options/guess.js")).guessFile(missingPath);
}

/** Screens are loaded only when there is something to print, so that `--help` stays fast. */
async function printFailure(message: string): Promise<void> {
  const { printError } = await import("./text/output.js");
  printError(message);
}

/** `tidemark summary REC | head` ends like any other program whose output pipe was closed. */
function leaveQuietlyOnClosedPipe(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", async (error: NodeJS.ErrnoException) => {
      // If stderr is closed, nothing can be reported, but `run` must still return the program's exit code.
      if (stream === process.stderr) {
        return;
      }
      if (error.code !== "EPIPE") {
        await printFailure(fileUnusable("standard output", "write", error.message).message);
      }
      process.exit(error.code === "EPIPE" ? 0 : 2);
    });
  }
}
