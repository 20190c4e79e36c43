import { Command, Option } from "commander";
import {
  importFile as convertFile,
  type PlainValue,
  PROFILE_IMPORTERS,
} from "../../inspect/index.js";
import type { Pid } from "../../model/base/units.js";
import { badUsage, recordingExists, TidemarkError } from "../../model/errors/errors.js";
import { statOf } from "../files/files.js";
import { ownKind } from "../files/own_files.js";
import { requireOtherFile, writeWhole } from "../files/write_whole.js";
import { sayWritten } from "../files/written_files.js";
import type { CommandAbout } from "../options/about.js";
import { type CommonOptions, withCommonOptions, withExamples } from "../options/options.js";
import { parsePid } from "../options/pids.js";
import { printNote } from "../text/output.js";

/** nothingThere(). */
const NO_PROFILE = "TM-E014";

interface ImportOptions extends CommonOptions {
  readonly output?: string;
  readonly force?: boolean;
  readonly pid?: Pid;
  readonly value?: PlainValue;
}

export const about: CommandAbout = {
  group: "recordings",
  summary: "convert a file of another tool, or an agent's pool file, to a recording",
  rows: "none",
};

export function buildCommand(): Command {
  const command = new Command("import")
    .description(
      `Convert files of other tools to recordings for report, summary, lines and diff. The content decides the\n` +
        `format, not the name. What a tool does not measure is shown as unknown.\n\n${formatList()}\n\n` +
        "Also converts a pool file, which the agent writes to DIR in a process that was started with\n" +
        "LD_PRELOAD=.../libtidemark.so TIDEMARK=dir=DIR; the process may still be running. The pools that its\n" +
        "children left in DIR are included, unless several files are given.",
    )
    .argument(
      "<file...>",
      "files of other tools, or tidemark-PID.pool files; each becomes one recording",
    )
    .option(
      "-o, --output <file>",
      "output file if one file is given (default: its name with .tidemark)",
    );
  command.option("--pid <pid>", "only this process, from a pool file", parsePid);
  command.addOption(
    new Option("--value <figure>", "what the numbers of folded stacks are, in bytes").choices([
      "live",
      "peak",
      "allocated",
    ]),
  );
  command.option("-f, --force", "overwrite the recording");
  withCommonOptions(command, "stdout");
  return withExamples(
    command,
    "tidemark import memray-app.py.4242.bin -o app.tidemark",
    "tidemark import massif.out.4242 snapshot.pickle",
    "tidemark import stacks.folded --value live",
    "tidemark import /var/lib/profiles/*.pool",
    "tidemark summary app.tidemark",
  ).action(importFiles);
}

function formatList(): string {
  return PROFILE_IMPORTERS.map(({ description }) => `  ${description}`).join("\n");
}

/** Skips files of processes without samples if several are given; children of a shell leave such files. */
async function importFiles(paths: readonly string[], options: ImportOptions): Promise<void> {
  if (paths.length > 1 && (options.output ?? options.pid) !== undefined) {
    throw badUsage(
      `${options.output === undefined ? "--pid" : "--output"} needs exactly one file, and ${paths.length} were given`,
      "import one file at a time",
    );
  }
  const written: string[] = [];
  let empty = 0;
  for (const path of paths) {
    try {
      written.push(await importFile(path, options, paths.length === 1));
    } catch (error) {
      if (paths.length === 1 || !(error instanceof TidemarkError) || error.id !== NO_PROFILE) {
        sayWritten("tidemark", written, options);
        throw error;
      }
      empty += 1;
    }
  }
  if (empty > 0) {
    printNote(
      `${empty} of ${paths.length} files contain no profile: their processes have no samples.`,
    );
  }
  sayWritten("tidemark", written, options);
}

/** @returns the recording's path */
async function importFile(
  path: string,
  options: ImportOptions,
  withChildren: boolean,
): Promise<string> {
  const output = options.output ?? `${path.replace(/\.pool$/, "")}.tidemark`;
  requireOtherFile(output, path);
  if (options.force !== true && statOf(output)?.isFile()) {
    throw recordingExists(output);
  }
  await writeWhole(output, { force: true, isOwn: ownKind("recording") }, async (file) =>
    convertFile(path, file, {
      pid: options.pid ?? null,
      withChildren,
      value: options.value ?? null,
    }),
  );
  return output;
}
