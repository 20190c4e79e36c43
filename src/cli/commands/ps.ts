import { Command } from "commander";
import {
  listPids,
  readAttachPermission,
  readCommand,
  readContainer,
  readInterpreter,
  readRollup,
  readStat,
  readStatus,
  userName,
} from "../../linux/index.js";
import type { PsJson } from "../../model/documents.js";
import type { Millis, Pid } from "../../model/units.js";
import { requireLinux } from "../installation.js";
import { type LastLook, processKey, readLastLook, writeLastLook } from "../last_look.js";
import {
  type CommonOptions,
  type ListOptions,
  selectRows,
  withCommonOptions,
  withExamples,
  withListOptions,
} from "../options.js";
import { printJson, screenOf } from "../output.js";
import { printProcessList } from "../screens/process_list.js";

type PsOptions = CommonOptions & ListOptions;
type PsRow = PsJson["processes"][number];

const NO_LIMIT = 0;

export function buildCommand(): Command {
  const command = new Command("ps").description(
    "The Python processes of this host: memory, growth since the last `tidemark ps`, and whether\n" +
      "they can be attached to.",
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

function ps(options: PsOptions): void {
  requireLinux();
  const { rows, sinceMs } = look();
  const chosen = selectRows(
    rows,
    options,
    NO_LIMIT,
    (row) => row.rssBytes,
    (row) => `${row.pid} ${row.user} ${row.container} ${row.command.join(" ")}`,
  );
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
function look(): { rows: PsRow[]; sinceMs: Millis | null } {
  const before = readLastLook();
  const sizes = new Map<string, number>();
  const rows: PsRow[] = [];
  for (const pid of listPids()) {
    const row = pid === process.pid ? null : readRow(pid, before, sizes);
    if (row !== null) {
      rows.push(row);
    }
  }
  const now = Date.now();
  writeLastLook({ timeMs: now, sizes });
  rows.sort((a, b) => b.rssBytes - a.rssBytes);
  return { rows, sinceMs: before === null ? null : now - before.timeMs };
}

/** null for a process that runs no Python, or has gone. */
function readRow(pid: Pid, before: LastLook | null, sizes: Map<string, number>): PsRow | null {
  const python = readInterpreter(pid);
  const status = python === null ? null : readStatus(pid);
  const stat = python === null ? null : readStat(pid);
  if (python === null || status === null || stat === null || stat.state === "Z") {
    return null;
  }
  const key = processKey(pid, stat.startTicks);
  const rollup = readRollup(pid);
  const earlier = before?.sizes.get(key);
  sizes.set(key, status.rssBytes);
  return {
    pid,
    parentPid: stat.parentPid,
    user: userName(status.uid),
    python,
    command: readCommand(pid) ?? [],
    container: readContainer(pid),
    rssBytes: status.rssBytes,
    pssBytes: rollup?.pssBytes ?? 0,
    ussBytes: rollup?.ussBytes ?? 0,
    growthBytes: earlier === undefined ? 0 : status.rssBytes - earlier,
    threads: status.threads,
    attach: readAttachPermission(pid),
  };
}
