import { Command } from "commander";
import { reportDocument } from "../../inspect/index.js";
import { badUsage } from "../../model/errors/errors.js";
import { ownKind } from "../files/own_files.js";
import { openRecordingAt, sayMissing } from "../files/recordings.js";
import { writeReport } from "../files/report_page.js";
import { requireOtherFile, writeWhole } from "../files/write_whole.js";
import { sayWritten } from "../files/written_files.js";
import type { CommandAbout } from "../options/about.js";
import {
  type CommonOptions,
  withCommonOptions,
  withExamples,
  withForceOption,
} from "../options/options.js";
import { type WhereOption, withWhereOption } from "../options/row_options.js";
import { withProgress } from "../text/progress.js";

interface ReportOptions extends CommonOptions, WhereOption {
  readonly output?: string;
  readonly force?: boolean;
  readonly source: boolean;
}

export const about: CommandAbout = {
  group: "recordings",
  summary: "write a recording as one self-contained HTML page",
  rows: "none",
};

export function buildCommand(): Command {
  const command = new Command("report")
    .description(
      "Write a recording as one self-contained HTML page: timeline, flame graph, sites, verdict.\n" +
        "It opens in any browser and needs no network.",
    )
    .argument("<recording>", "a .tidemark file")
    .option("-o, --output <file>", "the page (default: the recording's name with .html)")
    .option("--no-source", "leave the program's source text out of the page");
  withWhereOption(command);
  withForceOption(command);
  withCommonOptions(command, "stdout");
  return withExamples(
    command,
    "tidemark report app.tidemark",
    "tidemark report app.tidemark -o /tmp/app.html",
    "tidemark report app.tidemark --where endpoint=/search",
  ).action(report);
}

async function report(path: string, options: ReportOptions): Promise<void> {
  if (options.output === "-") {
    throw badUsage("report writes a page to a file, not to stdout", "name a file with -o");
  }
  const recording = openRecordingAt(path);
  const output = options.output ?? `${path.replace(/\.tidemark$/, "")}.html`;
  requireOtherFile(output, path);
  await writeWhole(output, { force: options.force, isOwn: ownKind("page") }, async (file) => {
    const document = await withProgress(path, "snapshots", options, (onProgress) =>
      reportDocument(recording, onProgress, options),
    );
    await withProgress(output, "MiB", options, (onProgress) =>
      writeReport(document, file, onProgress),
    );
  });
  sayWritten("html", [output], options);
  sayMissing(recording);
}
