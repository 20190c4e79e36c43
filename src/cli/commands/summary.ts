import { Command } from "commander";
import { diagnoseRecording, summarize } from "../../inspect/index.js";
import { isUnknown } from "../../model/profile/imported.js";
import { MOMENT_HELP, openRecordingAt, parseMoment } from "../files/recordings.js";
import type { CommandAbout } from "../options/about.js";
import {
  type CommonOptions,
  type ListOptions,
  withCommonOptions,
  withExamples,
  withListOptions,
} from "../options/options.js";
import {
  type ByOption,
  type WhereOption,
  withByOption,
  withWhereOption,
} from "../options/row_options.js";
import { summaryWithVerdict } from "../options/select_sites.js";
import { printVerdict } from "../screens/diagnosis.js";
import { DEFAULT_SITES } from "../screens/site_ranking.js";
import { printSummary } from "../screens/summary.js";
import { summaryContext } from "../screens/summary_context.js";
import { printJson, screenOf } from "../text/output.js";
import { withProgress } from "../text/progress.js";

interface SummaryOptions extends CommonOptions, ListOptions, WhereOption, ByOption {
  readonly at: string;
}

export const about: CommandAbout = {
  group: "recordings",
  summary: "summarize a recording at its end, its peak or any other time",
  rows: "sized",
};

export function buildCommand(): Command {
  const command = new Command("summary")
    .description(
      "Print the summary that `tidemark run` printed, or the same figures at any moment.",
    )
    .argument(
      "<recording>",
      "a .tidemark file; one that is still being written is read up to its last complete frame",
    )
    .option("--at <moment>", MOMENT_HELP, "end");
  withWhereOption(command);
  withByOption(command, "live bytes and growth", "thread, process, rank, label, domain, step");
  withListOptions(command, "sites", DEFAULT_SITES);
  withCommonOptions(command, "stdout");
  return withExamples(
    command,
    "tidemark summary app.tidemark",
    "tidemark summary app.tidemark --at peak --top 20",
    "tidemark summary app.tidemark --at 90s --json",
    "tidemark summary app.tidemark --by thread",
    "tidemark summary app.tidemark --where endpoint=/search",
  ).action(summary);
}

async function summary(path: string, options: SummaryOptions): Promise<void> {
  const recording = openRecordingAt(path);
  const { moment, name } = parseMoment(options.at, recording);
  const { where = [], by } = options;
  const document = summarize(recording, moment, { where, by });
  const diagnosis =
    name === "end" && !isUnknown(document.imported, "rss")
      ? await withProgress(path, "snapshots", options, (onProgress) =>
          diagnoseRecording(recording, onProgress, where),
        )
      : null;
  if (options.json === true) {
    printJson(summaryWithVerdict(document, diagnosis, options));
    return;
  }
  const screen = screenOf(process.stdout);
  printSummary(screen, summaryContext(recording, document, name, null), options);
  if (diagnosis !== null) {
    printVerdict(screen, diagnosis);
  }
}
