import { Command } from "commander";
import { filterText, listProcesses } from "../../inspect/index.js";
import type { PsJson } from "../../model/documents/documents.js";
import type { CommandAbout } from "../options/about.js";
import {
  type CommonOptions,
  type ListOptions,
  selectRows,
  withCommonOptions,
  withExamples,
  withListOptions,
} from "../options/options.js";
import { requireLinux } from "../options/requirements.js";
import { printProcessList } from "../screens/process_list.js";
import { printJson, screenOf } from "../text/output.js";

type PsOptions = CommonOptions & ListOptions;

const NO_LIMIT = 0;

export const about: CommandAbout = {
  group: "processes",
  summary: "list the Python processes of this host and their memory",
  rows: "sized",
};

export function buildCommand(): Command {
  const command = new Command("ps").description(
    "The Python processes of this host, containers included: memory, growth since the last\n" +
      "`tidemark ps`, and whether they can be attached to.",
  );
  withListOptions(command, "processes", NO_LIMIT);
  withCommonOptions(command, "stdout");
  return withExamples(
    command,
    "tidemark ps",
    "tidemark ps --filter uvicorn --min 100MiB",
    "tidemark ps --json",
  ).action(ps);
}

async function ps(options: PsOptions): Promise<void> {
  requireLinux();
  const { document, sinceMs } = await listProcesses();
  const chosen = selectRows(
    document.processes,
    options,
    NO_LIMIT,
    (row) => row.rssBytes,
    filterText,
  );
  if (options.json === true) {
    printJson({ ...document, processes: chosen.rows } satisfies PsJson);
  } else {
    printProcessList(screenOf(process.stdout), chosen.rows, {
      leftOut: chosen.leftOut,
      unmatched: chosen.unmatched,
      sinceMs,
      quiet: options.quiet === true,
    });
  }
}
