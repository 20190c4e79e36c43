import { Command } from "commander";
import { readDeviceUse } from "../../gpu/device_totals.js";
import { readLastLook, writeLastLook } from "../../inspect/live/previous_sizes.js";
import { filterText, keyOf, type ProcessRow, processRow } from "../../inspect/live/process_rows.js";
import { readPythonProcesses } from "../../linux/index.js";
import type { PsJson } from "../../model/documents.js";
import type { Millis } from "../../model/units.js";
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
  const { rows, sinceMs } = await look();
  const chosen = selectRows(rows, options, NO_LIMIT, (row) => row.rssBytes, filterText);
  if (options.json === true) {
    printJson({ schema: "tidemark.ps/1", processes: chosen.rows } satisfies PsJson);
  } else {
    printProcessList(screenOf(process.stdout), chosen.rows, {
      leftOut: chosen.leftOut,
      sinceMs,
      quiet: options.quiet === true,
    });
  }
}

/** All Python processes by RSS, largest first, and how long ago the last look was. */
async function look(): Promise<{ rows: ProcessRow[]; sinceMs: Millis | null }> {
  const before = readLastLook();
  const device = readDeviceUse();
  const processes = readPythonProcesses(true);
  const now = Date.now();
  writeLastLook({
    timeMs: now,
    sizes: new Map(processes.map((process) => [keyOf(process), process.rssBytes])),
  });
  const use = await device;
  const rows = processes.map((process) => processRow(process, before?.sizes ?? null, use));
  rows.sort((a, b) => b.rssBytes - a.rssBytes);
  return { rows, sinceMs: before === null ? null : now - before.timeMs };
}
