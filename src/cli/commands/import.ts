import { Command } from "commander";
import { importPool } from "../../inspect/index.js";
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
}

export const about: CommandAbout = {
  group: "recordings",
  summary: "convert an agent's pool file to a recording",
  rows: "none",
};

export function buildCommand(): Command {
  const command = new Command("import")
    .description(
      "Convert a pool file to a recording. The agent writes the pool file to DIR in a process that was\n" +
        "started with LD_PRELOAD=.../libtidemark.so TIDEMARK=dir=DIR; the process may still be running.",
    )
    .argument("<file...>", "tidemark-PID.pool files; each becomes one recording")
    .option(
      "-o, --output <file>",
      "output file if one pool file is given (default: its name with .tidemark)",
    );
  command.option("--pid <pid>", "only this process from the pool", parsePid);
  command.option("-f, --force", "overwrite the recording");
  withCommonOptions(command, "stdout");
  return withExamples(
    command,
    "tidemark import /var/lib/profiles/tidemark-4242.pool -o app.tidemark",
    "tidemark import /var/lib/profiles/*.pool",
    "tidemark summary app.tidemark",
  ).action(importFiles);
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
      written.push(await importFile(path, options));
    } catch (error) {
      if (paths.length === 1 || !(error instanceof TidemarkError) || error.id !== NO_PROFILE) {
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
async function importFile(path: string, options: ImportOptions): Promise<string> {
  const output = options.output ?? `${path.replace(/\.pool$/, "")}.tidemark`;
  requireOtherFile(output, path);
  if (options.force !== true && statOf(output)?.isFile()) {
    throw recordingExists(output);
  }
  await writeWhole(output, { force: true, isOwn: ownKind("recording") }, async (file) =>
    importPool(path, file, options.pid ?? null),
  );
  return output;
}
