import { Command, Option } from "commander";
import { filterText, watchedDocument, watchProcesses } from "../../inspect/index.js";
import type { Millis } from "../../model/base/units.js";
import type { PsJson } from "../../model/documents/documents.js";
import type { CommandAbout } from "../options/about.js";
import {
  type CommonOptions,
  type ListOptions,
  parseInterval,
  selectRows,
  withCommonOptions,
  withExamples,
  withListOptions,
} from "../options/options.js";
import { requireLinux } from "../options/requirements.js";
import { printJson } from "../text/output.js";
import { showFullScreen } from "../views/full_screen.js";
import { SORT_KEYS, type SortKey, topView } from "../views/top_view.js";

interface TopOptions extends CommonOptions, ListOptions {
  readonly sort: SortKey;
  readonly tree?: boolean;
  readonly interval: Millis;
}

const INTERVAL_MS = 1000;

export const about: CommandAbout = {
  group: "processes",
  summary: "show the Python processes of this host in a live view",
  rows: "sized",
};

export function buildCommand(): Command {
  const command = new Command("top")
    .description(
      "A live view of this host's Python processes: memory, growth since the view started, its sparkline,\n" +
        "threads, children, and device memory if nvidia-smi answers.",
    )
    .addOption(new Option("--sort <by>", "sort by").choices(SORT_KEYS).default("rss"))
    .option("--tree", "show children below their parents")
    .addOption(
      new Option("--interval <time>", "refresh interval")
        .default(INTERVAL_MS, "1s")
        .argParser(parseInterval),
    );
  withListOptions(command, "processes", 0);
  withCommonOptions(command, "stdout");
  return withExamples(
    command,
    "tidemark top",
    "tidemark top --sort growth --filter uvicorn",
    "tidemark top --json --top 5",
  ).action(top);
}

async function top(options: TopOptions): Promise<void> {
  requireLinux();
  if (options.json === true) {
    const document = watchedDocument(await watchProcesses(null));
    const { rows } = selectRows(document.processes, options, 0, (row) => row.rssBytes, filterText);
    printJson({ ...document, processes: rows } satisfies PsJson);
    return;
  }
  const choice = {
    sort: options.sort,
    tree: options.tree === true,
    filter: options.filter ?? "",
    typing: false,
    firstRow: 0,
  };
  await showFullScreen(topView(choice, options, options.interval));
}
