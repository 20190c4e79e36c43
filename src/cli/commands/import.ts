import { Command } from "commander";
import { importPool } from "../../inspect/index.js";
import type { Pid } from "../../model/base/units.js";
import { recordingExists } from "../../model/errors/errors.js";
import { statOf } from "../files/files.js";
import { ownKind } from "../files/own_files.js";
import { requireOtherFile, writeWhole } from "../files/write_whole.js";
import { sayWritten } from "../files/written_files.js";
import type { CommandAbout } from "../options/about.js";
import { type CommonOptions, withCommonOptions, withExamples } from "../options/options.js";
import { parsePid } from "../options/pids.js";

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
    .argument("<file>", "a tidemark-PID.pool file")
    .option("-o, --output <file>", "the recording (default: the file's name with .tidemark)");
  command.option("--pid <pid>", "only this process of those in the pool", parsePid);
  command.option("-f, --force", "overwrite the recording");
  withCommonOptions(command, "stdout");
  return withExamples(
    command,
    "tidemark import /var/lib/profiles/tidemark-4242.pool -o app.tidemark",
    "tidemark summary app.tidemark",
  ).action(importFile);
}

async function importFile(path: string, options: ImportOptions): Promise<void> {
  const output = options.output ?? `${path.replace(/\.pool$/, "")}.tidemark`;
  requireOtherFile(output, path);
  if (options.force !== true && statOf(output)?.isFile()) {
    throw recordingExists(output);
  }
  await writeWhole(output, { force: true, isOwn: ownKind("recording") }, async (file) =>
    importPool(path, file, options.pid ?? null),
  );
  sayWritten("tidemark", [output], options);
}
